// Softmax attention of the new rows of a forward pass over their slots' caches. A row's bits depend on its own slot's
// history only: scores and weighted sums are added in the order of the positions, and positions a row may not see
// contribute an exact zero.
#ifndef COLIBRI_NATIVE_ATTENTION_H
#define COLIBRI_NATIVE_ATTENTION_H

#include <stddef.h>

#include "cache.h"
#include "threads.h"

// One row: the slot it belongs to and its position there. Rows of one slot are neighbours, positions ascending.
typedef struct row_place {
    size_t slot;
    size_t position;
} row_place;

typedef struct attention attention;

attention *attention_open(const model_config *config, const key_value_cache *cache, size_t most_rows,
                          thread_pool *pool);
void attention_close(attention *work);

// `queries` are scaled and rotated, (row, head, dim) with rows `query_stride` floats apart; the result goes to `out` in the
// same arrangement with rows `out_stride` apart. Keys and values of the rows are in the cache already.
void attention_run(attention *work, size_t layer, const row_place *places, size_t rows, const float *queries,
                   size_t query_stride, float *out, size_t out_stride);

#endif
