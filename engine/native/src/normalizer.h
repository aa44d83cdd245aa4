// The normaliser of a tokenizer: none, or canonical composition (NFC).
#ifndef COLIBRI_NATIVE_NORMALIZER_H
#define COLIBRI_NATIVE_NORMALIZER_H

#include <stdbool.h>
#include <stddef.h>

#include "base.h"
#include "json.h"

typedef struct normalizer {
    bool composes;
} normalizer;

// Refuses the launch, naming `path`, for any other normaliser.
void normalizer_load(normalizer *to, const json_value *description, const char *path);

// Normalises a valid UTF-8 text into `to`. False: the text is normal already and `to` is left alone.
bool normalizer_run(const normalizer *from, const char *text, size_t size, buffer *to);

#endif
