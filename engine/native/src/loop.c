#include "loop.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "frames.h"
#include "host.h"
#include "utf8.h"

#define WORDS_BYTES 128u
#define FAULT_BYTES 256u

// What the masks of one step take together before further ones wait; those that took little so far do not.
#define STEP_WORK MOST_WORK
#define LIGHT_WORK (MOST_WORK / 20u)

// Words of an ERROR of the engine's own: no code of the wire says it.
#define GRAMMAR_FAILED "grammar failed"

void loop_open(engine_loop *loop, model *served) {
    memset(loop, 0, sizeof *loop);
    loop->served = served;
    loop->grammars = grammar_words_open(served->words, &served->config);
    loop->requests = allocate(served->slot_count, sizeof(request));
    loop->step_slots = allocate(served->slot_count, sizeof(size_t));
    loop->step_tokens = allocate(served->slot_count, sizeof(uint32_t));
    sampling_space_open(&loop->space, served->config.vocabulary);
}

static void remove_request(engine_loop *loop, request *done) {
    if (done->constraint != NULL) {
        grammar_close(done->constraint);
    }
    token_list_free(&done->prompt);
    free(done->logits);
    memset(done, 0, sizeof *done);
    loop->in_flight--;
    loop->urgent = true;
}

void loop_close(engine_loop *loop) {
    for (size_t slot = 0; slot < loop->served->slot_count; slot++) {
        if (loop->requests[slot].phase != REQUEST_NONE) {
            remove_request(loop, &loop->requests[slot]);
        }
    }
    grammar_words_close(loop->grammars);
    command_reader_free(&loop->reader);
    buffer_free(&loop->output);
    sampling_space_close(&loop->space);
    free(loop->requests);
    free(loop->step_slots);
    free(loop->step_tokens);
    memset(loop, 0, sizeof *loop);
}

void loop_greet(engine_loop *loop) {
    colibri_stat facts = {0};
    facts.rss_gb = host_resident();
    facts.has_prompt_tokens = true;
    facts.has_length_limited = true;
    put_ready(&loop->output, &facts);
    put_machine(&loop->output);
}

// ---------------------------------------------------------------- the end of a request

static size_t slot_of(const engine_loop *loop, const request *one) { return (size_t)(one - loop->requests); }

/* Ends a request in order: the turn's telemetry, then DONE. */
static void finish(engine_loop *loop, request *done, bool length_limited) {
    const double now = seconds_now();
    const double wall = now - done->accepted_at;
    const work_totals *const work = &loop->served->network.totals;
    colibri_prof profile = {0};
    colibri_done frame = {0};
    profile.wall_s = wall;
    profile.prompt_tokens = (double)(done->prefilled - done->reused);
    profile.completion_tokens = (double)done->produced;
    profile.wait_s = (done->prefill_began_at == 0.0 ? now : done->prefill_began_at) - done->accepted_at;
    profile.matmul_s = work->matmul - done->work_before.matmul;
    profile.attention_s = work->attention - done->work_before.attention;
    profile.head_s = work->head - done->work_before.head;
    profile.forwards = (double)(work->forwards - done->work_before.forwards);
    frame.id = done->id;
    frame.completion_tokens = done->produced;
    frame.tokens_per_second = wall > 0.0 ? (double)done->produced / wall : 0.0;
    frame.cache_hit_percent = 100.0 * (double)done->reused / (double)done->prompt.count;
    frame.rss_gb = host_resident();
    frame.has_prompt_tokens = true;
    frame.prompt_tokens = done->prompt.count;
    frame.has_length_limited = true;
    frame.length_limited = length_limited ? 1 : 0;
    put_machine(&loop->output);
    put_prof(&loop->output, &profile);
    put_done(&loop->output, &frame);
    remove_request(loop, done);
}

// ---------------------------------------------------------------- commands

static request *find_request(engine_loop *loop, uint64_t id) {
    for (size_t slot = 0; slot < loop->served->slot_count; slot++) {
        if (loop->requests[slot].phase != REQUEST_NONE && loop->requests[slot].id == id) {
            return &loop->requests[slot];
        }
    }
    return NULL;
}

/* Decimal token ids separated by single spaces, each within the vocabulary. */
static bool read_ids(const engine_loop *loop, colibri_bytes text, token_list *to) {
    const size_t bound = loop->served->config.vocabulary;
    size_t at = 0;
    while (at < text.size || (at != 0 && at == text.size && text.data[at - 1u] == ' ')) {
        uint64_t token = 0;
        const size_t start = at;
        while (at < text.size && colibri_is_digit(text.data[at]) && token < bound) {
            token = token * 10u + (uint64_t)(text.data[at++] - '0');
        }
        if (at == start || token >= bound || (at < text.size && text.data[at] != ' ')) {
            return false;
        }
        token_list_add(to, (uint32_t)token);
        if (at == text.size) {
            break;
        }
        at++;
    }
    return true;
}

/* The prompt's tokens; NULL, or the words of the refusal. */
static const char *read_prompt(const engine_loop *loop, const colibri_submit *command, size_t limit, token_list *to,
                               char *words) {
    const size_t longest = loop->served->longest_piece;
    if (command->ids != 0) {
        if (!read_ids(loop, command->prompt, to)) {
            return COLIBRI_ERROR_BAD_REQUEST;
        }
    } else if (longest != 0 && command->prompt.size / longest > limit) {
        /* Certain without tokenizing, which for the largest prompts would hold up everyone else for seconds. */
        snprintf(words, WORDS_BYTES, "%s %zu %zu", COLIBRI_ERROR_CONTEXT_EXCEEDED, limit + 1u, limit);
        return words;
    } else if (!utf8_valid(command->prompt.data, command->prompt.size)) {
        return COLIBRI_ERROR_BAD_REQUEST;
    } else {
        tokenizer_encode(loop->served->words, command->prompt.data, command->prompt.size, to);
    }
    if (to->count == 0) {
        return COLIBRI_ERROR_EMPTY_PROMPT;
    }
    if (to->count > limit) {
        snprintf(words, WORDS_BYTES, "%s %zu %zu", COLIBRI_ERROR_CONTEXT_EXCEEDED, to->count, limit);
        return words;
    }
    return NULL;
}

static void take_in(engine_loop *loop, const colibri_submit *command, const token_list *prompt, grammar *constraint) {
    request *const added = &loop->requests[command->slot];
    const colibri_accept frame = {command->id, prompt->count};
    added->phase = REQUEST_PREFILLING;
    added->id = command->id;
    added->order = loop->arrivals++;
    added->prompt = *prompt;
    added->max_tokens = command->max_tokens;
    added->chooser = sampler_start(command->temperature, command->top_p, loop->served->seed, command->id);
    added->constraint = constraint;
    added->logprobs = command->logprobs;
    added->pin = command->pin != 0;
    added->accepted_at = seconds_now();
    added->work_before = loop->served->network.totals;
    loop->in_flight++;
    put_accept(&loop->output, &frame);
}

/* Checks a SUBMIT in the order: request id, slot, prompt, context, grammar; then takes it in. */
static void submit(engine_loop *loop, const colibri_submit *command) {
    const uint64_t image_for = loop->image_for;
    const size_t limit = loop->served->context - (command->max_tokens != 0 ? 1u : 0u);
    token_list prompt = {NULL, 0, 0};
    grammar *constraint = NULL;
    char words[WORDS_BYTES];
    const char *refusal = NULL;
    loop->image_for = 0;
    if (find_request(loop, command->id) != NULL) {
        refusal = COLIBRI_ERROR_DUPLICATE_ID;
    } else if (image_for == command->id || command->slot >= loop->served->slot_count) {
        refusal = COLIBRI_ERROR_BAD_REQUEST;
    } else if (loop->requests[command->slot].phase != REQUEST_NONE) {
        refusal = COLIBRI_ERROR_SLOT_BUSY;
    } else {
        refusal = read_prompt(loop, command, limit, &prompt, words);
    }
    if (refusal == NULL && command->extra.size != 0) {
        char fault[FAULT_BYTES];
        constraint = grammar_open(loop->grammars, command->extra.data, command->extra.size, &prompt, fault, sizeof fault);
        if (constraint == NULL) {
            log_line("request %llu: invalid grammar: %s", (unsigned long long)command->id, fault);
            refusal = COLIBRI_ERROR_BAD_REQUEST;
        }
    }
    if (refusal != NULL) {
        token_list_free(&prompt);
        put_error_words(&loop->output, command->id, refusal);
        return;
    }
    take_in(loop, command, &prompt, constraint);
}

static void handle(engine_loop *loop, const colibri_command *command) {
    request *known = NULL;
    loop->urgent = true;
    if (command->kind == COLIBRI_COMMAND_SUBMIT) {
        submit(loop, &command->as.submit);
        return;
    }
    if (command->kind == COLIBRI_COMMAND_IMAGE) {
        loop->image_for = command->id; // refused with the SUBMIT it belongs to, so that there is one answer
        return;
    }
    known = find_request(loop, command->id);
    if (known == NULL) {
        put_error_words(&loop->output, command->id, COLIBRI_ERROR_NOT_FOUND);
    } else if (command->kind == COLIBRI_COMMAND_STOP) {
        finish(loop, known, false);
    } else {
        remove_request(loop, known);
        put_error_words(&loop->output, command->id, COLIBRI_ERROR_CANCELLED);
    }
}

void loop_receive(engine_loop *loop) {
    colibri_command command;
    for (;;) {
        switch (command_reader_next(&loop->reader, &command)) {
        case COMMAND_READY:
            handle(loop, &command);
            break;
        case COMMAND_REFUSED:
            loop->urgent = true;
            put_error_words(&loop->output, command.id, COLIBRI_ERROR_BAD_REQUEST);
            break;
        case COMMAND_BROKEN:
            loop->broken = true;
            loop->urgent = true;
            log_line("command stream broken at request %llu", (unsigned long long)command.id);
            put_error_words(&loop->output, command.id, COLIBRI_ERROR_BAD_FRAME);
            return;
        case COMMAND_NONE:
        default:
            return;
        }
    }
}

void loop_end_input(engine_loop *loop) {
    if (command_reader_inside(&loop->reader)) {
        log_line("input ended inside a command");
    }
}

// ---------------------------------------------------------------- steps

/* The bytes of a token as a payload. */
static colibri_bytes payload(const engine_loop *loop, uint32_t token) {
    const token_piece *const piece = tokenizer_piece(loop->served->words, token);
    return (colibri_bytes){piece->data == NULL ? "" : piece->data, piece->size};
}

static void send_token(engine_loop *loop, const request *one, const float *row, uint32_t token, bool ended) {
    uint32_t tokens[COLIBRI_LIMIT_TOP_K];
    double logprobs[COLIBRI_LIMIT_TOP_K];
    colibri_data frame = {0};
    frame.id = one->id;
    frame.payload = ended ? colibri_text("") : payload(loop, token);
    if (one->logprobs != 0) {
        frame.has_logprob = true;
        frame.k = (uint8_t)token_numbers(&loop->space, row, token, one->logprobs, &frame.logprob, tokens, logprobs);
        frame.tokens = tokens;
        frame.token_logprobs = logprobs;
    } else if (ended) {
        return; // a swallowed token shows in the numbers only
    }
    put_data(&loop->output, &frame);
}

/* Has a request wait with its logits when this step has no time for its mask. */
static bool waits(engine_loop *loop, request *one, const float *row) {
    const size_t bytes = loop->served->config.vocabulary * sizeof *row;
    if (one->constraint == NULL || grammar_is_ready(one->constraint) || loop->step_work < STEP_WORK ||
        grammar_work(one->constraint) <= LIGHT_WORK) {
        return false;
    }
    one->phase = REQUEST_WAITING;
    one->waiting = loop->waits++;
    one->logits = allocate(bytes, 1);
    memcpy(one->logits, row, bytes);
    return true;
}

/* The mask of a request under a grammar; NULL: the grammar cannot go on. */
static const uint64_t *make_mask(engine_loop *loop, request *one) {
    const bool ready = grammar_is_ready(one->constraint);
    const uint64_t *const allowed = grammar_allowed(one->constraint);
    loop->step_work += ready ? 0 : grammar_work(one->constraint);
    return allowed;
}

/* Samples from a row, sends the token, and ends the request where it ends. */
static void take_token(engine_loop *loop, request *one, const float *row) {
    const uint64_t *allowed;
    uint32_t token;
    bool ended;
    if (waits(loop, one, row)) {
        return;
    }
    allowed = one->constraint == NULL ? NULL : make_mask(loop, one);
    if (one->constraint != NULL && allowed == NULL) {
        const uint64_t id = one->id;
        log_line("request %llu: grammar failed: no token may follow", (unsigned long long)id);
        remove_request(loop, one);
        put_error_words(&loop->output, id, GRAMMAR_FAILED);
        return;
    }
    token = sampler_choose(&one->chooser, &loop->space, row, allowed);
    one->complete = one->constraint != NULL && grammar_accept(one->constraint, token);
    one->produced++;
    one->last_token = token;
    ended = config_is_end(&loop->served->config, token);
    send_token(loop, one, row, token, ended);
    if (ended || one->complete) {
        finish(loop, one, false);
    } else if (one->prompt.count + one->produced >= loop->served->context || one->produced >= one->max_tokens) {
        finish(loop, one, true);
    }
}

/* ECHO of position 0 and of every prompt position that the rows from `first` on predict. */
static void echo(engine_loop *loop, const request *one, size_t first, size_t rows) {
    uint32_t tokens[COLIBRI_LIMIT_TOP_K];
    double logprobs[COLIBRI_LIMIT_TOP_K];
    colibri_echo frame = {0};
    frame.id = one->id;
    frame.tokens = tokens;
    frame.token_logprobs = logprobs;
    if (first == 0) {
        frame.logprob = NAN;
        frame.payload = payload(loop, one->prompt.tokens[0]);
        put_echo(&loop->output, &frame);
    }
    for (size_t row = 0; row < rows && first + row + 1u < one->prompt.count; row++) {
        const size_t position = first + row + 1u;
        const uint32_t token = one->prompt.tokens[position];
        frame.position = (uint32_t)position;
        frame.payload = payload(loop, token);
        frame.k = (uint8_t)token_numbers(&loop->space, transformer_logits(&loop->served->network, row), token,
                                         one->logprobs, &frame.logprob, tokens, logprobs);
        put_echo(&loop->output, &frame);
    }
}

static void prefill_chunk(engine_loop *loop, request *one) {
    model *const served = loop->served;
    const size_t slot = slot_of(loop, one);
    const bool scored = one->logprobs != 0;
    size_t first;
    size_t count;
    loop->urgent = true;
    if (one->prefill_began_at == 0.0) {
        one->prefill_began_at = seconds_now();
        one->reused = model_begin(served, slot, one->prompt.tokens, one->prompt.count, !scored);
        one->prefilled = one->reused;
        log_line("request %llu: slot %zu prefix %zu/%zu", (unsigned long long)one->id, slot, one->reused,
                 one->prompt.count);
    }
    first = one->prefilled;
    count = least(one->prompt.count - first, PREFILL_CHUNK);
    model_prefill(served, slot, one->prompt.tokens + first, count, scored);
    one->prefilled += count;
    if (scored) {
        echo(loop, one, first, count);
    }
    if (one->prefilled < one->prompt.count) {
        return;
    }
    if (one->pin) {
        model_pin(served, slot);
    }
    if (one->max_tokens == 0) {
        finish(loop, one, true);
        return;
    }
    one->phase = REQUEST_GENERATING;
    take_token(loop, one, transformer_logits(&served->network, served->network.logit_rows - 1u));
}

static request *oldest_prompt(engine_loop *loop) {
    request *found = NULL;
    for (size_t slot = 0; slot < loop->served->slot_count; slot++) {
        request *const one = &loop->requests[slot];
        if (one->phase == REQUEST_PREFILLING && (found == NULL || one->order < found->order)) {
            found = one;
        }
    }
    return found;
}

static request *longest_waiting(engine_loop *loop) {
    request *found = NULL;
    for (size_t slot = 0; slot < loop->served->slot_count; slot++) {
        request *const one = &loop->requests[slot];
        if (one->phase == REQUEST_WAITING && (found == NULL || one->waiting < found->waiting)) {
            found = one;
        }
    }
    return found;
}

/* Tokens of requests that have waited for their masks: the longest first, as many as there is time for. */
static void take_waiting(engine_loop *loop) {
    request *one = longest_waiting(loop);
    while (one != NULL && loop->step_work < STEP_WORK) {
        float *const row = one->logits;
        one->logits = NULL;
        one->phase = REQUEST_GENERATING;
        take_token(loop, one, row);
        free(row);
        one = longest_waiting(loop);
    }
}

void loop_step(engine_loop *loop) {
    request *const prompt = oldest_prompt(loop);
    size_t count = 0;
    loop->step_work = 0;
    take_waiting(loop);
    for (size_t slot = 0; slot < loop->served->slot_count; slot++) {
        if (loop->requests[slot].phase == REQUEST_GENERATING) {
            loop->step_slots[count] = slot;
            loop->step_tokens[count++] = loop->requests[slot].last_token;
        }
    }
    if (prompt != NULL) {
        prefill_chunk(loop, prompt);
    }
    if (count == 0) {
        return;
    }
    model_decode(loop->served, loop->step_slots, loop->step_tokens, count);
    for (size_t row = 0; row < count; row++) {
        take_token(loop, &loop->requests[loop->step_slots[row]], transformer_logits(&loop->served->network, row));
    }
}
