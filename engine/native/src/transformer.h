// The forward pass of a dense decoder-only transformer over the cache of its slots.
//
// The caller keeps track of which position comes next in each slot. The logits of a row depend on nothing but the tokens
// of its slot: not on other rows, on where a prompt was cut into chunks, or on the number of threads.
#ifndef COLIBRI_NATIVE_TRANSFORMER_H
#define COLIBRI_NATIVE_TRANSFORMER_H

#include <stdint.h>

#include "attention.h"
#include "cache.h"
#include "threads.h"
#include "weights.h"

// Running totals: seconds in matrix products, attention and output head, and forward passes.
typedef struct work_totals {
    double matmul;
    double attention;
    double head;
    uint64_t forwards;
} work_totals;

typedef struct transformer {
    const model_config *config;
    const model_weights *weights;
    key_value_cache *cache;
    thread_pool *pool;
    size_t shared_rows;
    bool shared; // whether all threads took part in the last pass
    attention attention;
    work_totals totals;
    size_t most_rows;
    float *rotation; // [position][pair] cosine, sine
    // rows of the present pass, each row_stride of its width from the next
    float *memory; // of all that follow
    float *stream;
    float *normed;   // per thread: its own copy costs less than waiting for somebody else's
    size_t *norm_of; // per thread: which norm its copy is of; each has its number
    size_t norms;    // so far
    float *fused;    // queries, keys and values
    float *attended;
    float *projected;
    float *gate;
    float *up;
    float *logits;
    size_t logit_rows;
} transformer;

// `most_rows`: rows of the largest pass. A pass of fewer than `shared_rows` rows is computed by the calling thread alone.
void transformer_open(transformer *model, const model_config *config, const model_weights *weights,
                      key_value_cache *cache, size_t most_rows, thread_pool *pool, size_t shared_rows);
void transformer_close(transformer *model);

// Appends tokens at their places; puts the logits of all rows, or of the last one only, into `model->logits`.
void transformer_run(transformer *model, const uint32_t *tokens, const row_place *places, size_t rows, bool every_row);

// Logits of a row of the last pass.
const float *transformer_logits(const transformer *model, size_t row);

#endif
