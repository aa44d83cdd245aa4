// GBNF grammars: rules `name ::= ...` of literals, character classes, groups, alternatives and repetitions.
#ifndef COLIBRI_NATIVE_GBNF_H
#define COLIBRI_NATIVE_GBNF_H

#include "rules.h"

// Adds the rules of a valid UTF-8 text to an empty grammar; `*root` is the rule of that name. False: `fault` says why.
bool gbnf_compile(rules *grammar, const char *text, size_t size, uint32_t *root);

#endif
