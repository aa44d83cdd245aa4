#include "model.h"

#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "colibri_wire.h"
#include "host.h"

// Multiply-adds worth a thread: a few times what it costs to bring two together.
#define SHARE 20000u

// Without a wish, a model of weights below this leaves the other processors to the gateway while it decodes for one
// request, whose products are over in microseconds; several rows at once, and larger models, use all of them.
#define SMALL_WEIGHTS_BYTES (64u << 20u)
#define SHARED_ROWS_OF_SMALL 2u

static size_t checkpoint_bytes(const checkpoint *files) {
    size_t total = 0;
    for (size_t index = 0; index < files->count; index++) {
        total += files->shards[index].map_size;
    }
    return total;
}

static void check_context(model *served, size_t wanted) {
    served->context = wanted == 0 ? served->config.max_positions : wanted;
    if (served->context > served->config.max_positions) {
        refuse_launch("context %zu exceeds the model's max_position_embeddings %zu", served->context,
                      served->config.max_positions);
    }
    if (served->context < 2) {
        refuse_launch("context %zu has no room for a prompt and an answer", served->context);
    }
}

static void check_pieces(const model *served) {
    for (size_t token = 0; token < served->config.vocabulary; token++) {
        if (tokenizer_piece(served->words, (uint32_t)token)->size > COLIBRI_LIMIT_PAYLOAD_BYTES) {
            refuse_launch("token %zu is longer than a frame's payload", token);
        }
    }
}

void model_open(model *served, const launch *with) {
    checkpoint files;
    size_t threads = with->threads;
    size_t shared_rows = 1;
    const size_t rows = most(PREFILL_CHUNK, with->slots);
    memset(served, 0, sizeof *served);
    config_read(&served->config, with->directory);
    check_context(served, with->context);
    served->words = tokenizer_load(with->directory, served->config.vocabulary);
    tokenizer_require(served->words, served->config.end_tokens, served->config.end_token_count);
    check_pieces(served);
    served->longest_piece = tokenizer_longest_piece(served->words);
    checkpoint_open(&files, with->directory);
    if (threads == 0) {
        threads = host_cores();
        shared_rows = checkpoint_bytes(&files) < SMALL_WEIGHTS_BYTES ? SHARED_ROWS_OF_SMALL : 1u;
    }
    weights_load(&served->weights, &files, &served->config);
    checkpoint_close(&files);
    served->pool = threads_start(threads, SHARE);
    cache_open(&served->cache, &served->config, with->slots, served->context);
    transformer_open(&served->network, &served->config, &served->weights, &served->cache, rows, served->pool,
                     shared_rows);
    served->slot_count = with->slots;
    served->slots = allocate(with->slots, sizeof(slot_state));
    served->places = allocate(rows, sizeof(row_place));
    served->seed = with->seed;
}

void model_close(model *served) {
    for (size_t slot = 0; slot < served->slot_count; slot++) {
        token_list_free(&served->slots[slot].history);
        token_list_free(&served->slots[slot].pinned);
        free(served->slots[slot].snapshot.data);
    }
    free(served->slots);
    free(served->places);
    transformer_close(&served->network);
    cache_close(&served->cache);
    threads_stop(served->pool);
    weights_free(&served->weights);
    tokenizer_free(served->words);
    config_free(&served->config);
    memset(served, 0, sizeof *served);
}

static size_t common_beginning(const token_list *known, const uint32_t *prompt, size_t count) {
    size_t length = 0;
    while (length < count && length < known->count && known->tokens[length] == prompt[length]) {
        length++;
    }
    return length;
}

size_t model_begin(model *served, size_t slot, const uint32_t *prompt, size_t count, bool reuse) {
    slot_state *const state = &served->slots[slot];
    const size_t usable = reuse ? count - 1u : 0;
    size_t kept = least(common_beginning(&state->history, prompt, count), usable);
    const size_t pinned = least(common_beginning(&state->pinned, prompt, count), usable);
    if (pinned > kept) {
        cache_restore(&served->cache, slot, &state->snapshot);
        kept = pinned;
    }
    state->history.count = 0;
    for (size_t index = 0; index < kept; index++) {
        token_list_add(&state->history, prompt[index]);
    }
    return kept;
}

void model_prefill(model *served, size_t slot, const uint32_t *tokens, size_t count, bool every_position) {
    slot_state *const state = &served->slots[slot];
    for (size_t index = 0; index < count; index++) {
        served->places[index] = (row_place){slot, state->history.count + index};
    }
    transformer_run(&served->network, tokens, served->places, count, every_position);
    for (size_t index = 0; index < count; index++) {
        token_list_add(&state->history, tokens[index]);
    }
}

void model_decode(model *served, const size_t *slots, const uint32_t *tokens, size_t count) {
    for (size_t index = 0; index < count; index++) {
        served->places[index] = (row_place){slots[index], served->slots[slots[index]].history.count};
    }
    transformer_run(&served->network, tokens, served->places, count, true);
    for (size_t index = 0; index < count; index++) {
        token_list_add(&served->slots[slots[index]].history, tokens[index]);
    }
}

void model_pin(model *served, size_t slot) {
    slot_state *const state = &served->slots[slot];
    state->pinned.count = 0;
    if (!cache_save(&served->cache, slot, state->history.count, &state->snapshot)) {
        log_line("slot %zu: no memory to keep its state", slot);
        return;
    }
    for (size_t index = 0; index < state->history.count; index++) {
        token_list_add(&state->pinned, state->history.tokens[index]);
    }
}
