// Properties of characters that pre-tokenizer patterns ask for.
#ifndef COLIBRI_NATIVE_UNICODE_H
#define COLIBRI_NATIVE_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A set of general categories, one bit each in the order of unicode_table.h.
typedef uint32_t category_set;

// The categories of a property name such as "L", "Lu" or "N"; 0 for a name that is not known.
category_set unicode_property(const char *name, size_t size);

bool unicode_in(uint32_t character, category_set categories);

// Numeric (N) and white space as the property of that name defines it.
bool unicode_is_number(uint32_t character);
bool unicode_is_space(uint32_t character);

// Letter, mark, number or connector punctuation: what a word is made of.
bool unicode_is_word(uint32_t character);

// The character for a comparison that ignores case, as far as the apostrophe suffixes of patterns need it.
uint32_t unicode_fold(uint32_t character);

#endif
