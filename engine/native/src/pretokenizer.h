// Cuts a text into the words that byte-pair merging works on, as tokenizer.json describes it.
//
// Understood: null, Sequence, Digits, Split (by a regular expression or a string; isolated or removed) and, as the last
// one, ByteLevel with or without its own pattern. Anything else refuses the launch.
#ifndef COLIBRI_NATIVE_PRETOKENIZER_H
#define COLIBRI_NATIVE_PRETOKENIZER_H

#include <stdbool.h>
#include <stddef.h>

#include "json.h"

typedef struct pretokenizer pretokenizer;

// What is done with each word.
typedef void (*word_taker)(void *context, const char *word, size_t size);

// `path` is named in the refusal.
pretokenizer *pretokenizer_load(const json_value *description, const char *path);
void pretokenizer_free(pretokenizer *cutter);

// Whether every byte of a text is in one of its words.
bool pretokenizer_keeps_all(const pretokenizer *cutter);

// Hands the words of a valid UTF-8 text to `take` in order.
void pretokenizer_run(const pretokenizer *cutter, const char *text, size_t size, word_taker take, void *context);

#endif
