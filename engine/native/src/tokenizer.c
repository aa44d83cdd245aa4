#include "tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "added.h"
#include "base.h"
#include "json.h"
#include "merging.h"
#include "normalizer.h"
#include "pretokenizer.h"

#define TOKENIZER_FILE "tokenizer.json"
#define TOKENIZER_DEPTH 64u

struct tokenizer {
    char *path;
    vocabulary words;
    pretokenizer *cutter;
    normalizer normal;
    added_tokens before; // looked for in the text as it is
    added_tokens after;  // looked for in the normalised rest
    merger merge;
};

void token_list_add(token_list *list, uint32_t token) {
    if (list->count == list->capacity) {
        list->capacity = most(64, 2u * list->capacity);
        list->tokens = reallocate(list->tokens, list->capacity, sizeof(uint32_t));
    }
    list->tokens[list->count++] = token;
}

void token_list_free(token_list *list) {
    free(list->tokens);
    *list = (token_list){NULL, 0, 0};
}

static void check_decoder(const json_value *decoder, const char *path) {
    const json_value *parts = json_member(decoder, "decoders");
    bool found = json_is(json_member(decoder, "type"), "ByteLevel");
    for (const json_value *part = parts == NULL ? NULL : parts->first; part != NULL; part = part->next) {
        found = found || json_is(json_member(part, "type"), "ByteLevel");
    }
    if (!found) {
        char text[128];
        refuse_launch("%s: decoder %s is not supported (supported: byte level)", path,
                      json_describe(json_member(decoder, "type"), text, sizeof text));
    }
}

static void load_added(tokenizer *words, const json_value *list) {
    for (const json_value *item = list == NULL ? NULL : list->first; item != NULL; item = item->next) {
        const json_value *id = json_member(item, "id");
        const json_value *content = json_member(item, "content");
        const json_value *special = json_member(item, "special");
        const json_value *normalized = json_member(item, "normalized");
        uint64_t token;
        if (!json_count(id, NO_TOKEN - 1u, &token) || content == NULL || content->kind != JSON_STRING) {
            refuse_launch("%s is not a valid tokenizer: an added token without id or content", words->path);
        }
        vocabulary_set_piece(&words->words, token, content->text, content->size, special != NULL && special->truth,
                             words->path);
        added_tokens_add(normalized != NULL && normalized->truth ? &words->after : &words->before, item,
                         (uint32_t)token);
    }
    added_tokens_sort(&words->before);
    added_tokens_sort(&words->after);
}

/* Refuses ids that the model does not have, naming the largest. */
static void check_ids(const json_value *root, size_t count, const char *path) {
    const json_value *vocab = json_member(json_member(root, "model"), "vocab");
    const json_value *added = json_member(root, "added_tokens");
    uint64_t largest = 0;
    uint64_t token = 0;
    for (const json_value *item = vocab == NULL ? NULL : vocab->first; item != NULL; item = item->next) {
        largest = json_count(item, NO_TOKEN, &token) && token > largest ? token : largest;
    }
    for (const json_value *item = added == NULL ? NULL : added->first; item != NULL; item = item->next) {
        largest = json_count(json_member(item, "id"), NO_TOKEN, &token) && token > largest ? token : largest;
    }
    if (largest >= count) {
        refuse_launch("%s has token id %llu, but the model's vocabulary ends at %zu", path, (unsigned long long)largest,
                      count - 1u);
    }
}

tokenizer *tokenizer_load(const char *directory, size_t vocabulary) {
    tokenizer *words = allocate(1, sizeof *words);
    buffer text;
    json_document document;
    words->path = join_path(directory, TOKENIZER_FILE);
    text = read_file(words->path);
    if (!json_read(&document, text.data, text.size, TOKENIZER_DEPTH)) {
        refuse_launch("%s is not a valid tokenizer: %s at byte %zu", words->path, document.fault, document.fault_at);
    }
    buffer_free(&text);
    check_ids(document.root, vocabulary, words->path);
    vocabulary_load(&words->words, json_member(document.root, "model"), vocabulary, words->path);
    normalizer_load(&words->normal, json_member(document.root, "normalizer"), words->path);
    words->cutter = pretokenizer_load(json_member(document.root, "pre_tokenizer"), words->path);
    check_decoder(json_member(document.root, "decoder"), words->path);
    load_added(words, json_member(document.root, "added_tokens"));
    json_free(&document);
    return words;
}

void tokenizer_free(tokenizer *words) {
    vocabulary_free(&words->words);
    pretokenizer_free(words->cutter);
    added_tokens_free(&words->before);
    added_tokens_free(&words->after);
    normalizer_free(&words->normal);
    merger_free(&words->merge);
    free(words->path);
    free(words);
}

void tokenizer_require(const tokenizer *words, const uint32_t *tokens, size_t count) {
    uint32_t missing = NO_TOKEN;
    for (size_t index = 0; index < count; index++) {
        if ((tokens[index] >= words->words.count || words->words.pieces[tokens[index]].data == NULL) &&
            tokens[index] < missing) {
            missing = tokens[index];
        }
    }
    if (missing != NO_TOKEN) {
        refuse_launch("%s lacks the model's end token %u", words->path, missing);
    }
}

const token_piece *tokenizer_piece(const tokenizer *words, uint32_t token) { return &words->words.pieces[token]; }

uint32_t tokenizer_added(const tokenizer *words, const char *text) {
    const uint32_t token = added_tokens_find(&words->before, text);
    return token != NO_TOKEN ? token : added_tokens_find(&words->after, text);
}

size_t tokenizer_longest_piece(const tokenizer *words) {
    size_t longest = 0;
    if (words->normal.composes || words->words.unknown != NO_TOKEN || !pretokenizer_keeps_all(words->cutter) ||
        added_tokens_strip(&words->before) || added_tokens_strip(&words->after)) {
        return 0;
    }
    for (int byte = 0; byte < 256; byte++) {
        if (words->words.byte_tokens[byte] == NO_TOKEN) {
            return 0; // such a byte vanishes
        }
    }
    for (size_t token = 0; token < words->words.count; token++) {
        longest = most(longest, words->words.pieces[token].size);
    }
    return longest;
}

// ---------------------------------------------------------------- encoding

typedef struct encoding {
    tokenizer *words;
    token_list *to;
} encoding;

static void take_word(void *context, const char *word, size_t size) {
    const encoding *const job = context;
    merger_run(&job->words->merge, &job->words->words, word, size, job->to);
}

static void encode_plain(void *context, const char *text, size_t size, uint32_t token) {
    const encoding *const job = context;
    if (token != NO_TOKEN) {
        token_list_add(job->to, token);
    } else {
        pretokenizer_run(job->words->cutter, text, size, take_word, context);
    }
}

/* A piece of the text between two tokens that are looked for before normalising. */
static void encode_between(void *context, const char *text, size_t size, uint32_t token) {
    const encoding *const job = context;
    if (token != NO_TOKEN) {
        token_list_add(job->to, token);
    } else {
        buffer composed = {NULL, 0, 0};
        const bool changed = normalizer_run(&job->words->normal, text, size, &composed);
        added_tokens_cut(&job->words->after, changed ? composed.data : text, changed ? composed.size : size,
                         encode_plain, context);
        buffer_free(&composed);
    }
}

void tokenizer_encode(tokenizer *words, const char *text, size_t size, token_list *to) {
    encoding job = {words, to};
    added_tokens_cut(&words->before, text, size, encode_between, &job);
}
