#include "grammar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "colibri_wire.h"
#include "gbnf.h"
#include "schema.h"
#include "utf8.h"

// A token as the mask looks at it: its bytes, and how many of them are those of the token before.
typedef struct word {
    const char *data;
    size_t size;
    uint32_t token;
    size_t shared;
} word;

struct grammar_words {
    const tokenizer *pieces;
    const model_config *config;
    word *words; // in the order of their bytes
    size_t count;
    size_t longest;
    size_t mask_words;
    uint32_t opens;      // the tags of a reasoning, or NO_TOKEN when the tokenizer has not both
    uint32_t closes;
    uint64_t *reasoning; // what may come within one: all but the ends of a turn
};

struct grammar {
    const grammar_words *words;
    rules grammar;
    machine runner;
    uint32_t now;   // state of the text so far
    uint32_t *path; // states after each byte of the word being looked at
    uint64_t *allowed;
    bool fresh; // `allowed` is that of `now`
    bool any;   // and has a token
    size_t work; // that it took
    bool reasons; // the text has not begun
};

static int by_bytes(const void *left, const void *right) {
    const word *const one = left;
    const word *const other = right;
    const int order = memcmp(one->data, other->data, least(one->size, other->size));
    if (order != 0) {
        return order;
    }
    return one->size < other->size ? -1 : one->size > other->size;
}

static void allow(uint64_t *mask, uint32_t token) { mask[token / 64u] |= UINT64_C(1) << token % 64u; }

static void find_reasoning(grammar_words *words) {
    words->opens = tokenizer_added(words->pieces, COLIBRI_MARKUP_GLM_REASONING_OPEN);
    words->closes = tokenizer_added(words->pieces, COLIBRI_MARKUP_GLM_REASONING_CLOSE);
    if (words->closes == NO_TOKEN || config_is_end(words->config, words->closes)) {
        words->opens = NO_TOKEN;
    }
    words->reasoning = allocate(words->mask_words, sizeof(uint64_t));
    for (uint32_t token = 0; token < words->config->vocabulary; token++) {
        if (!config_is_end(words->config, token)) {
            allow(words->reasoning, token);
        }
    }
}

/* Special tokens are no text, so no grammar allows one. */
grammar_words *grammar_words_open(const tokenizer *tokens, const model_config *config) {
    grammar_words *made = allocate(1, sizeof *made);
    made->pieces = tokens;
    made->config = config;
    made->words = allocate(config->vocabulary, sizeof(word));
    made->mask_words = (config->vocabulary + 63u) / 64u;
    for (uint32_t token = 0; token < config->vocabulary; token++) {
        const token_piece *const piece = tokenizer_piece(tokens, token);
        if (piece->size != 0 && !piece->special && !config_is_end(config, token)) {
            made->words[made->count++] = (word){piece->data, piece->size, token, 0};
            made->longest = most(made->longest, piece->size);
        }
    }
    qsort(made->words, made->count, sizeof(word), by_bytes);
    for (size_t index = 1; index < made->count; index++) {
        const word *const before = &made->words[index - 1u];
        word *const now = &made->words[index];
        while (now->shared < least(before->size, now->size) && before->data[now->shared] == now->data[now->shared]) {
            now->shared++;
        }
    }
    find_reasoning(made);
    return made;
}

void grammar_words_close(grammar_words *words) {
    free(words->reasoning);
    free(words->words);
    free(words);
}

/* Whether the text is meant as a JSON Schema: any JSON object or boolean is. */
static bool read_grammar(grammar *state, const char *text, size_t size, uint32_t *root) {
    json_document document;
    bool good;
    if (!utf8_valid(text, size)) {
        return rules_fail(&state->grammar, "the grammar is not UTF-8 text");
    }
    if (json_read(&document, text, size, COLIBRI_LIMIT_JSON_DEPTH) &&
        (document.root->kind == JSON_OBJECT || document.root->kind == JSON_BOOLEAN)) {
        good = schema_compile(&state->grammar, document.root, root);
    } else {
        good = gbnf_compile(&state->grammar, text, size, root);
    }
    json_free(&document);
    return good;
}

/* Whether a token is text of nothing but blanks. */
static bool is_blank(const token_piece *piece) {
    for (size_t at = 0; at < piece->size; at++) {
        if (memchr(" \t\r\n", piece->data[at], 4) == NULL) {
            return false;
        }
    }
    return piece->size != 0;
}

/* Whether a prompt ends with the tag that opens a reasoning; some templates put a line end behind it. */
static bool opens_reasoning(const grammar_words *words, const token_list *prompt) {
    size_t end = prompt->count;
    while (end != 0 && is_blank(tokenizer_piece(words->pieces, prompt->tokens[end - 1u]))) {
        end--;
    }
    return words->opens != NO_TOKEN && end != 0 && prompt->tokens[end - 1u] == words->opens;
}

static bool may_go_on(grammar *state) {
    return !state->runner.exhausted || rules_fail(&state->grammar, "the grammar takes too long");
}

/* How many bytes of a word can be read; the states after the first `known` of them are on the path already. */
static size_t follow(grammar *state, const char *data, size_t size, size_t known) {
    for (size_t length = known; length < size; length++) {
        const uint32_t next = machine_step(&state->runner, state->path[length], (unsigned char)data[length]);
        if (next == STATE_NONE) {
            return length;
        }
        state->path[length + 1u] = next;
    }
    return size;
}

/* Makes the mask of the present state. */
static void find_allowed(grammar *state) {
    const grammar_words *const words = state->words;
    size_t reach = 0; // how many bytes of the word before could be read
    memset(state->allowed, 0, words->mask_words * sizeof(uint64_t));
    state->now = machine_begin(&state->runner, state->now);
    state->path[0] = state->now;
    state->any = false;
    state->fresh = true;
    for (size_t index = 0; index < words->count && !state->runner.exhausted; index++) {
        const word *const now = &words->words[index];
        if (index != 0 && now->shared > reach) {
            continue; // begins with bytes that cannot be read
        }
        reach = follow(state, now->data, now->size, now->shared);
        if (reach == now->size) {
            allow(state->allowed, now->token);
            state->any = true;
        }
    }
    state->work = MOST_WORK - state->runner.work_left;
    if (machine_may_end(&state->runner, state->now)) {
        for (size_t index = 0; index < words->config->end_token_count; index++) {
            allow(state->allowed, words->config->end_tokens[index]);
            state->any = true;
        }
    }
}

/* Makes the first mask of a compiled grammar, so that one that takes too long is refused before it holds anybody up. */
static bool begin(grammar *state, uint32_t root) {
    state->path = allocate(state->words->longest + 1u, sizeof(uint32_t));
    state->allowed = allocate(state->words->mask_words, sizeof(uint64_t));
    state->now = machine_start(&state->runner, root);
    if (!may_go_on(state)) {
        return false;
    }
    if (state->now == STATE_NONE) {
        return rules_fail(&state->grammar, "the grammar allows no text");
    }
    find_allowed(state);
    return may_go_on(state);
}

grammar *grammar_open(grammar_words *words, const char *text, size_t text_size, const token_list *prompt, char *fault,
                      size_t size) {
    grammar *state = allocate(1, sizeof *state);
    uint32_t root = 0;
    bool good;
    state->words = words;
    state->reasons = opens_reasoning(words, prompt);
    good = words->config->end_token_count != 0 || rules_fail(&state->grammar, "the model has no end token");
    good = good && read_grammar(state, text, text_size, &root) && state->grammar.fault == NULL;
    machine_open(&state->runner, &state->grammar);
    if (!good || !rules_check(&state->grammar) || !begin(state, root)) {
        snprintf(fault, size, "%s", state->grammar.fault);
        grammar_close(state);
        return NULL;
    }
    return state;
}

void grammar_close(grammar *state) {
    machine_close(&state->runner);
    rules_close(&state->grammar);
    free(state->path);
    free(state->allowed);
    free(state);
}

bool grammar_is_ready(const grammar *state) { return state->reasons || state->fresh; }

size_t grammar_work(const grammar *state) { return state->work; }

const uint64_t *grammar_allowed(grammar *state) {
    if (state->reasons) {
        return state->words->reasoning;
    }
    if (!state->fresh) {
        find_allowed(state);
    }
    return state->any && !state->runner.exhausted ? state->allowed : NULL;
}

bool grammar_accept(grammar *state, uint32_t token) {
    const token_piece *const piece = tokenizer_piece(state->words->pieces, token);
    uint32_t next = state->now;
    if (state->reasons) {
        state->reasons = token != state->words->closes;
        return false;
    }
    if (config_is_end(state->words->config, token)) {
        return true;
    }
    for (size_t at = 0; at < piece->size; at++) {
        next = machine_step(&state->runner, next, (unsigned char)piece->data[at]);
    }
    if (next != STATE_NONE) {
        state->now = next;
        state->fresh = false;
    }
    return machine_must_end(&state->runner, state->now);
}
