// Memory for weights: taken bit by bit and given back at once. Weights that are read one after the other lie one behind
// the other, in large pages where the system has them: a small model is then read noticeably faster.
#ifndef COLIBRI_NATIVE_ARENA_H
#define COLIBRI_NATIVE_ARENA_H

#include <stddef.h>

// An arena of zeros is empty and valid.
typedef struct arena {
    struct arena_block *blocks;
} arena;

// Zeroed memory that begins at a cache line; refuses the launch when there is none.
void *arena_take(arena *from, size_t size);
void arena_free(arena *from);

#endif
