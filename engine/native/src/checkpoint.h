// The tensors of a model directory by name: one safetensors file, or the shards that an index file lists.
#ifndef COLIBRI_NATIVE_CHECKPOINT_H
#define COLIBRI_NATIVE_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>

#include "safetensors.h"

typedef struct checkpoint {
    const char *directory;
    safetensors *shards;
    size_t count;
} checkpoint;

// Opens every weight file; refuses the launch when one is missing, malformed, or lacks what the index promises.
void checkpoint_open(checkpoint *weights, const char *directory);
void checkpoint_close(checkpoint *weights);

// The tensor of that name with exactly `rows` x `columns` elements (`rows` 0: a vector of `columns`), of a type that can
// be read, all finite; refuses the launch otherwise.
const tensor *checkpoint_find(const checkpoint *weights, const char *name, size_t rows, size_t columns);

#endif
