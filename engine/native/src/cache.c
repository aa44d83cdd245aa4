#include "cache.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base.h"

static float *reserve(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* left * right, or 0 when that does not fit. */
static size_t times(size_t left, size_t right) { return right != 0 && left > SIZE_MAX / right ? 0 : left * right; }

void cache_open(key_value_cache *cache, const model_config *config, size_t slots, size_t context) {
    size_t heads;
    memset(cache, 0, sizeof *cache);
    cache->layers = config->layers;
    cache->slots = slots;
    cache->heads = config->key_value_heads;
    cache->context = context;
    cache->dim = config->head_dim;
    cache->padded_dim = round_up(config->head_dim, LANES);
    cache->key_size = times(round_up(context, LANES), cache->dim);
    cache->value_size = times(context, cache->padded_dim);
    heads = times(times(cache->layers, slots), cache->heads);
    cache->key_bytes = times(times(heads, cache->key_size), sizeof(float));
    cache->value_bytes = times(times(heads, cache->value_size), sizeof(float));
    cache->keys = cache->key_bytes == 0 ? NULL : reserve(cache->key_bytes);
    cache->values = cache->value_bytes == 0 ? NULL : reserve(cache->value_bytes);
    if (cache->keys == NULL || cache->values == NULL) {
        refuse_launch("not enough memory for the model and %zu slots of %zu", slots, context);
    }
}

void cache_close(key_value_cache *cache) {
    munmap(cache->keys, cache->key_bytes);
    munmap(cache->values, cache->value_bytes);
    memset(cache, 0, sizeof *cache);
}

static size_t head_index(const key_value_cache *cache, size_t layer, size_t slot, size_t head) {
    return (layer * cache->slots + slot) * cache->heads + head;
}

static float *head_keys(const key_value_cache *cache, size_t layer, size_t slot, size_t head) {
    return cache->keys + head_index(cache, layer, slot, head) * cache->key_size;
}

static float *head_values(const key_value_cache *cache, size_t layer, size_t slot, size_t head) {
    return cache->values + head_index(cache, layer, slot, head) * cache->value_size;
}

void cache_store(key_value_cache *cache, size_t layer, size_t slot, size_t head, size_t position, const float *key,
                 const float *value) {
    float *keys = head_keys(cache, layer, slot, head) + position / LANES * cache->dim * LANES + position % LANES;
    for (size_t element = 0; element < cache->dim; element++) {
        keys[element * LANES] = key[element];
    }
    memcpy(head_values(cache, layer, slot, head) + position * cache->padded_dim, value, cache->dim * sizeof(float));
}

panel_view cache_keys(const key_value_cache *cache, size_t layer, size_t slot, size_t head, size_t length) {
    const panel_view view = {head_keys(cache, layer, slot, head), cache->dim * LANES, LANES, cache->dim,
                             (length + LANES - 1u) / LANES};
    return view;
}

panel_view cache_values(const key_value_cache *cache, size_t layer, size_t slot, size_t head, size_t length) {
    const panel_view view = {head_values(cache, layer, slot, head), LANES, cache->padded_dim, length,
                             cache->padded_dim / LANES};
    return view;
}

/* Floats of keys and of values that hold the first `length` positions of a head. */
static size_t kept_keys(const key_value_cache *cache, size_t length) { return round_up(length, LANES) * cache->dim; }

static size_t kept_values(const key_value_cache *cache, size_t length) { return length * cache->padded_dim; }

bool cache_save(const key_value_cache *cache, size_t slot, size_t length, cache_snapshot *snapshot) {
    const size_t keys = kept_keys(cache, length);
    const size_t values = kept_values(cache, length);
    float *to = malloc(most(cache->layers * cache->heads * (keys + values) * sizeof(float), 1));
    free(snapshot->data);
    snapshot->data = to;
    snapshot->length = to == NULL ? 0 : length;
    if (to == NULL) {
        return false;
    }
    for (size_t layer = 0; layer < cache->layers; layer++) {
        for (size_t head = 0; head < cache->heads; head++) {
            memcpy(to, head_keys(cache, layer, slot, head), keys * sizeof(float));
            memcpy(to + keys, head_values(cache, layer, slot, head), values * sizeof(float));
            to += keys + values;
        }
    }
    return true;
}

void cache_restore(key_value_cache *cache, size_t slot, const cache_snapshot *snapshot) {
    const size_t keys = kept_keys(cache, snapshot->length);
    const size_t values = kept_values(cache, snapshot->length);
    const float *from = snapshot->data;
    for (size_t layer = 0; layer < cache->layers; layer++) {
        for (size_t head = 0; head < cache->heads; head++) {
            memcpy(head_keys(cache, layer, slot, head), from, keys * sizeof(float));
            memcpy(head_values(cache, layer, slot, head), from + keys, values * sizeof(float));
            from += keys + values;
        }
    }
}
