// Softmax attention of the new rows of a forward pass over their slots' caches. A row's bits depend on its own slot's
// history only: scores and weighted sums are added in the order of the positions, and positions a row may not see
// contribute an exact zero.
#ifndef COLIBRI_NATIVE_ATTENTION_H
#define COLIBRI_NATIVE_ATTENTION_H

#include <stdbool.h>
#include <stddef.h>

#include "cache.h"

// One row: the slot it belongs to and its position there. Rows of one slot are neighbours, positions ascending.
typedef struct row_place {
    size_t slot;
    size_t position;
} row_place;

// Query heads that share a key/value head and a slot, at most TILE_ROWS of them: pairs (row, head of the group) in order.
typedef struct attention_item {
    size_t head; // key/value head
    size_t row;  // first row of the slot
    size_t pair; // first pair, counted from that row
    size_t pairs;
} attention_item;

// The attention of one pass, cut into items that are computed each by itself.
typedef struct attention {
    const key_value_cache *cache;
    size_t group; // query heads per key/value head
    size_t heads; // key/value heads
    size_t dim;
    float *scratch; // per thread: queries, scores, results
    size_t scratch_size;
    // of the present pass
    const row_place *places;
    attention_item *items;
    size_t item_count;
    size_t adds;    // multiply-adds of an item
    bool separated; // each item is all there is of one row and key/value head
} attention;

void attention_open(attention *work, const model_config *config, const key_value_cache *cache, size_t most_rows,
                    size_t threads);
void attention_close(attention *work);

// Prepares for the rows of a pass.
void attention_plan(attention *work, const row_place *places, size_t rows);

// Computes an item. `queries` are scaled and rotated, (row, head, dim) with rows `query_stride` floats apart; the result goes
// to `out` in the same arrangement with rows `out_stride` apart. Keys and values of the rows are in the cache already.
void attention_attend(const attention *work, size_t index, size_t layer, size_t thread, const float *queries,
                      size_t query_stride, float *out, size_t out_stride);

#endif
