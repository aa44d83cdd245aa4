// Keys and values of every slot. Keys lie in panels of LANES positions (position last), values position by position
// with heads padded to whole vectors, so that attention is the same product as everything else.
#ifndef COLIBRI_NATIVE_CACHE_H
#define COLIBRI_NATIVE_CACHE_H

#include <stddef.h>

#include "config.h"
#include "matrix.h"

typedef struct key_value_cache {
    size_t layers;
    size_t slots;
    size_t heads; // key/value heads
    size_t context;
    size_t dim;
    size_t padded_dim;
    size_t key_size;   // floats of one head of one slot of one layer
    size_t value_size; // likewise
    float *keys;       // [layer][slot][head][panel][dim][LANES]
    float *values;     // [layer][slot][head][position][padded dim]
    size_t key_bytes;
    size_t value_bytes;
} key_value_cache;

// A copy of the first positions of one slot.
typedef struct cache_snapshot {
    size_t length;
    float *data;
} cache_snapshot;

// Reserves the cache; pages are taken from the system when they are first written.
void cache_open(key_value_cache *cache, const model_config *config, size_t slots, size_t context);
void cache_close(key_value_cache *cache);

// Stores one head's key and value of one position.
void cache_store(key_value_cache *cache, size_t layer, size_t slot, size_t head, size_t position, const float *key,
                 const float *value);

// The first `length` positions of one head as the weights of a product: keys give a score per position (the last panel
// may hold positions behind `length`), values give the weighted sum.
panel_view cache_keys(const key_value_cache *cache, size_t layer, size_t slot, size_t head, size_t length);
panel_view cache_values(const key_value_cache *cache, size_t layer, size_t slot, size_t head, size_t length);

// Copies the first `length` positions of a slot into the snapshot, in place of what it held. False: no memory.
bool cache_save(const key_value_cache *cache, size_t slot, size_t length, cache_snapshot *snapshot);
void cache_restore(key_value_cache *cache, size_t slot, const cache_snapshot *snapshot);

#endif
