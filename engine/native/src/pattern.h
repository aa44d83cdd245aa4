// Regular expressions of pre-tokenizers: the part of the notation they use.
//
// Understood: alternatives, groups (?:...) and (?i:...), character classes with negation, ranges, \p{..} and \P{..}, \s \S
// \d \D \w \W \r \n \t \v \f, the dot, the quantifiers ? * + {n} {n,m} (greedy, or possessive with a + behind) on single
// characters and ? on groups, and the lookaheads (?=...) and (?!...). Anything else is refused when it is compiled.
// Matching needs a stack no deeper than the pattern is long, whatever the text.
#ifndef COLIBRI_NATIVE_PATTERN_H
#define COLIBRI_NATIVE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

typedef struct pattern pattern;

// Compiles `source`; NULL when it holds what is not understood, which `*fault` then says.
pattern *pattern_compile(const char *source, size_t size, const char **fault);
void pattern_free(pattern *compiled);

// The first match at or behind `start`, in UTF-8 text that is known to be valid: puts its place into `*first` and `*end`.
// Empty matches are passed over. False: there is none.
bool pattern_find(const pattern *compiled, const char *text, size_t size, size_t start, size_t *first, size_t *end);

#endif
