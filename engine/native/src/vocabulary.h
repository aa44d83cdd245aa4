// Words, ids and merges of a byte-level BPE model, and the bytes each token stands for.
#ifndef COLIBRI_NATIVE_VOCABULARY_H
#define COLIBRI_NATIVE_VOCABULARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "json.h"
#include "names.h"

#define NO_TOKEN NO_NAME

// A token's own bytes.
typedef struct token_piece {
    char *data; // NULL: the tokenizer does not know this id
    size_t size;
    bool special;
} token_piece;

typedef struct merge_entry {
    uint64_t pair; // left token << 32 | right token
    uint32_t rank;
    uint32_t token; // NO_TOKEN: free
} merge_entry;

typedef struct vocabulary {
    token_piece *pieces;
    size_t count; // token ids of the model
    name_table tokens; // by word
    char *letters;     // of all words
    merge_entry *merges;
    size_t merge_mask;
    uint32_t byte_tokens[256]; // token of each single byte, or NO_TOKEN
    uint32_t unknown;          // token for bytes without one, or NO_TOKEN
    bool whole_words_first;    // a word that is a token is not merged
} vocabulary;

// Reads `model` of a tokenizer.json for a model with `count` token ids; refuses the launch, naming `path`, when it is not
// what this engine computes.
void vocabulary_load(vocabulary *words, const json_value *model, size_t count, const char *path);
void vocabulary_free(vocabulary *words);

// Makes `token` stand for literal text. Refuses the launch when the model has no such id.
void vocabulary_set_piece(vocabulary *words, uint64_t token, const char *data, size_t size, bool special,
                          const char *path);

// Token of a word written in the byte alphabet, or NO_TOKEN.
uint32_t vocabulary_find(const vocabulary *words, const char *text, size_t size);

// What a neighbouring pair becomes, or NULL.
const merge_entry *vocabulary_merge(const vocabulary *words, uint32_t left, uint32_t right);

// The character that stands for a byte in the byte alphabet.
uint32_t vocabulary_letter(unsigned char byte);

#endif
