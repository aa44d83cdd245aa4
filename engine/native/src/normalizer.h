// The normaliser of a tokenizer: none, or canonical composition (NFC).
#ifndef COLIBRI_NATIVE_NORMALIZER_H
#define COLIBRI_NATIVE_NORMALIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base.h"
#include "json.h"

// A pair of characters and what they compose to.
typedef struct composition {
    uint32_t first;
    uint32_t second;
    uint32_t composed;
} composition;

typedef struct normalizer {
    bool composes;
    composition *pairs; // in order of first, second
    size_t count;
} normalizer;

// Refuses the launch, naming `path`, for any other normaliser.
void normalizer_load(normalizer *to, const json_value *description, const char *path);
void normalizer_free(normalizer *from);

// Normalises a valid UTF-8 text into `to`. False: the text is normal already and `to` is left alone.
bool normalizer_run(const normalizer *from, const char *text, size_t size, buffer *to);

#endif
