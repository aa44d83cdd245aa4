// Grammar-constrained decoding: which tokens may come next.
//
// A grammar text is a JSON Schema (a JSON object or boolean) or a GBNF grammar. A constraint allows only tokens that keep
// the text a prefix of the language; the model may end its turn exactly where the text is complete. After a prompt that
// ends with the tag that opens a reasoning, maybe blanks behind it, the text is what follows the reasoning: until the tag that closes it, any token
// may come but those that end the turn.
#ifndef COLIBRI_NATIVE_GRAMMAR_H
#define COLIBRI_NATIVE_GRAMMAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config.h"
#include "machine.h"
#include "tokenizer.h"

// What all grammars of one model share.
typedef struct grammar_words grammar_words;

// The state of one request's grammar.
typedef struct grammar grammar;

grammar_words *grammar_words_open(const tokenizer *words, const model_config *config);
void grammar_words_close(grammar_words *words);

// Compiles a grammar text for what follows a prompt; NULL when it is none, and `fault` (of `size` bytes) says why.
grammar *grammar_open(grammar_words *words, const char *text, size_t text_size, const token_list *prompt, char *fault,
                      size_t size);
void grammar_close(grammar *state);

// Whether the next mask is there, and what the last one took: parts of about 8 ns, MOST_WORK of them at most. The next one is
// likely to take as much.
bool grammar_is_ready(const grammar *state);
size_t grammar_work(const grammar *state);

// One bit per token that may come next, valid until the next call; NULL: none may, the grammar cannot go on.
const uint64_t *grammar_allowed(grammar *state);

// Moves on by a token that was allowed. Returns whether nothing but the end of the turn may follow.
bool grammar_accept(grammar *state, uint32_t token);

#endif
