// A model directory ready to serve: tokenizer, transformer and the histories of the KV slots in one.
//
// Guarantee: what a slot's cache holds is always the state of exactly the tokens of its history; a beginning is reused
// only where the tokens are equal, and gives the same bits as computing it again.
#ifndef COLIBRI_NATIVE_MODEL_H
#define COLIBRI_NATIVE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launch.h"
#include "tokenizer.h"
#include "transformer.h"

// Prompt tokens of one step: long enough for efficient products, short enough to answer CANCEL at once.
#define PREFILL_CHUNK 64u

typedef struct slot_state {
    token_list history;
    token_list pinned; // tokens of the snapshot
    cache_snapshot snapshot;
} slot_state;

typedef struct model {
    model_config config;
    model_weights weights;
    key_value_cache cache;
    transformer network;
    thread_pool *pool;
    tokenizer *words;
    size_t longest_piece; // most prompt bytes of one token; 0: no bound
    size_t slot_count;
    size_t context;
    slot_state *slots;
    row_place *places;
    uint64_t seed;
} model;

// Loads everything; refuses the launch when the directory cannot be served.
void model_open(model *served, const launch *with);
void model_close(model *served);

// Takes a slot for a prompt; returns how many leading tokens are in its cache already (always fewer than all).
size_t model_begin(model *served, size_t slot, const uint32_t *prompt, size_t count, bool reuse);

// Appends at most PREFILL_CHUNK tokens to a slot; the logits of each position, or of the last one, are then in the network.
void model_prefill(model *served, size_t slot, const uint32_t *tokens, size_t count, bool every_position);

// Appends one token to each of `count` slots, which are different.
void model_decode(model *served, const size_t *slots, const uint32_t *tokens, size_t count);

// Keeps a copy of a slot's present state, in place of an earlier one.
void model_pin(model *served, size_t slot);

#endif
