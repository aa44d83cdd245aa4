// Byte-pair merging of one word: the pair of lowest rank first, of equal ones the leftmost, in O(n log n).
#ifndef COLIBRI_NATIVE_MERGING_H
#define COLIBRI_NATIVE_MERGING_H

#include "tokenizer.h"

typedef struct merge_symbol {
    uint32_t token; // NO_TOKEN: swallowed by its left neighbour
    size_t before;
    size_t after;
} merge_symbol;

typedef struct merge_candidate {
    uint32_t rank;
    uint32_t token; // what the pair becomes
    size_t place;   // of the left symbol
} merge_candidate;

// Working memory, kept from word to word. A merger of zeros is valid.
typedef struct merger {
    merge_symbol *symbols;
    size_t symbol_room;
    merge_candidate *heap;
    size_t heap_count;
    size_t heap_room;
    char *letters;
    size_t letter_room;
} merger;

void merger_run(merger *work, const vocabulary *words, const char *word, size_t size, token_list *to);
void merger_free(merger *work);

#endif
