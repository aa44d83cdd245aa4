// The forward pass of a dense decoder-only transformer over the cache of its slots.
//
// The caller keeps track of which position comes next in each slot. The logits of a row depend on nothing but the tokens
// of its slot: not on other rows, on where a prompt was cut into chunks, or on the number of threads.
#ifndef COLIBRI_NATIVE_TRANSFORMER_H
#define COLIBRI_NATIVE_TRANSFORMER_H

#include <stdint.h>

#include "attention.h"
#include "cache.h"
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
    attention *attention;
    work_totals totals;
    size_t most_rows;
    float *rotation; // [position][pair] cosine, sine
    // rows of the present pass
    float *stream;
    float *normed;
    float *fused;
    float *attended;
    float *projected;
    float *gate_up;
    float *logits;
    size_t logit_rows;
} transformer;

// `most_rows`: rows of the largest pass.
void transformer_open(transformer *model, const model_config *config, const model_weights *weights,
                      key_value_cache *cache, size_t most_rows, thread_pool *pool);
void transformer_close(transformer *model);

// Appends tokens at their places; puts the logits of all rows, or of the last one only, into `model->logits`, one row
// every matrix_stride(head) floats.
void transformer_run(transformer *model, const uint32_t *tokens, const row_place *places, size_t rows, bool every_row);

// Logits of a row of the last pass.
const float *transformer_logits(const transformer *model, size_t row);

#endif
