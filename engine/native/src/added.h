// Added tokens: literal texts, such as turn markers, that become one token wherever they stand.
#ifndef COLIBRI_NATIVE_ADDED_H
#define COLIBRI_NATIVE_ADDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "json.h"

typedef struct added_token {
    char *text;
    size_t size;
    uint32_t token;
    bool single_word;
    bool strip_left;
    bool strip_right;
} added_token;

// A list of zeros is empty and valid.
typedef struct added_tokens {
    added_token *tokens; // by first byte, longest first
    size_t count;
    size_t first[257]; // where the tokens of each first byte begin
} added_tokens;

// Token of exactly this text, or NO_TOKEN.
uint32_t added_tokens_find(const added_tokens *list, const char *text);

// What is done with each part of a text: a token, or (with NO_TOKEN) text that is not empty.
typedef void (*part_taker)(void *context, const char *text, size_t size, uint32_t token);

// Adds an entry of tokenizer.json; sort once all are there.
void added_tokens_add(added_tokens *list, const json_value *entry, uint32_t token);
void added_tokens_sort(added_tokens *list);
void added_tokens_free(added_tokens *list);

// Whether a token of the list swallows white space next to it.
bool added_tokens_strip(const added_tokens *list);

// Cuts a valid UTF-8 text at the tokens in it: from the left, the longest of those that begin at the same place.
void added_tokens_cut(const added_tokens *list, const char *text, size_t size, part_taker take, void *context);

#endif
