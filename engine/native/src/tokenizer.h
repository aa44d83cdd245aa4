// tokenizer.json as text to token ids and token ids to bytes, equal to what the `tokenizers` library makes of the file.
#ifndef COLIBRI_NATIVE_TOKENIZER_H
#define COLIBRI_NATIVE_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vocabulary.h"

// Token ids that grow. A list of zeros is empty and valid.
typedef struct token_list {
    uint32_t *tokens;
    size_t count;
    size_t capacity;
} token_list;

void token_list_add(token_list *list, uint32_t token);
void token_list_free(token_list *list);

typedef struct tokenizer tokenizer;

// Loads the tokenizer of a model directory for a model with `vocabulary` ids; refuses the launch when the file is
// missing or malformed, has ids the model lacks, or asks for what this engine does not compute.
tokenizer *tokenizer_load(const char *directory, size_t vocabulary);
void tokenizer_free(tokenizer *words);

// Refuses the launch when a token is unknown to the tokenizer.
void tokenizer_require(const tokenizer *words, const uint32_t *tokens, size_t count);

// Appends the ids of a valid UTF-8 text: markers in it become their tokens, nothing is added at either end.
void tokenizer_encode(tokenizer *words, const char *text, size_t size, token_list *to);

// The bytes of a token; empty for an id of the model that the tokenizer does not know.
const token_piece *tokenizer_piece(const tokenizer *words, uint32_t token);

// The added token of exactly this text, or NO_TOKEN.
uint32_t tokenizer_added(const tokenizer *words, const char *text);

// Most bytes of a text that become one token; 0 where that has no bound.
size_t tokenizer_longest_piece(const tokenizer *words);

#endif
