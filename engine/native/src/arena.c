#include "arena.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base.h"

#define CACHE_LINE 64u
#define HUGE_PAGE ((size_t)1 << 21u)
#define BLOCK_BYTES ((size_t)1 << 24u)

typedef struct arena_block {
    struct arena_block *next;
    unsigned char *map; // what the system gave
    size_t map_size;
    unsigned char *free; // next free byte
    size_t left;
} arena_block;

static arena_block *add_block(arena *to, size_t size) {
    arena_block *added = allocate(1, sizeof *added);
    added->map_size = most(size, BLOCK_BYTES) + HUGE_PAGE;
    added->map = mmap(NULL, added->map_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (added->map == MAP_FAILED) {
        refuse_launch("not enough memory for %zu bytes of weights", size);
    }
    added->free = added->map + (HUGE_PAGE - (size_t)((uintptr_t)added->map % HUGE_PAGE)) % HUGE_PAGE;
    added->left = added->map_size - (size_t)(added->free - added->map);
#ifdef MADV_HUGEPAGE
    (void)madvise(added->free, added->left, MADV_HUGEPAGE);
#endif
    added->next = to->blocks;
    to->blocks = added;
    return added;
}

void *arena_take(arena *from, size_t size) {
    arena_block *block = from->blocks;
    void *taken;
    if (size > SIZE_MAX / 2u) {
        refuse_launch("not enough memory for %zu bytes of weights", size);
    }
    size = round_up(size, CACHE_LINE);
    if (block == NULL || block->left < size) {
        block = add_block(from, size);
    }
    taken = block->free;
    block->free += size;
    block->left -= size;
    return taken;
}

void arena_free(arena *from) {
    while (from->blocks != NULL) {
        arena_block *const block = from->blocks;
        from->blocks = block->next;
        munmap(block->map, block->map_size);
        free(block);
    }
}
