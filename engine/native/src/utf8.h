// UTF-8 as the standard defines it: no overlong forms, no surrogates, nothing above U+10FFFF.
#ifndef COLIBRI_NATIVE_UTF8_H
#define COLIBRI_NATIVE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Length in bytes (1..4) of the character at the start of `data`, which is put into `*character`; 0 when it is malformed
// or incomplete.
size_t utf8_read(const char *data, size_t size, uint32_t *character);

// Writes a character (no surrogate, at most U+10FFFF) and returns its length; needs 4 bytes of room.
size_t utf8_write(char *to, uint32_t character);

// Whether all of `data` is well formed.
bool utf8_valid(const char *data, size_t size);

#endif
