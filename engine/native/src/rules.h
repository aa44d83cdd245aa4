// A grammar over bytes: rules of alternatives, each a run of sets of bytes and references to rules.
#ifndef COLIBRI_NATIVE_RULES_H
#define COLIBRI_NATIVE_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A larger grammar is refused, and so is a run of more.
#define MOST_ELEMENTS 2000000u

typedef enum element_kind { ELEMENT_END, ELEMENT_SET, ELEMENT_RULE } element_kind;

typedef struct element {
    element_kind kind;
    uint32_t value; // a set or the number of a rule
} element;

typedef struct rule {
    uint32_t *starts; // of its alternatives, as places in `elements`
    uint32_t count;
} rule;

// A grammar of zeros is empty and valid.
typedef struct rules {
    element *elements;
    size_t count;
    size_t room;
    rule *rules;
    size_t rule_count;
    size_t rule_room;
    size_t repeated;   // elements that repetitions have written so far
    const char *fault; // the first thing that was wrong
} rules;

// A run of elements in the making. A sequence of zeros is empty and valid.
typedef struct sequence {
    element *elements;
    size_t count;
    size_t room;
} sequence;

// A set is a range of bytes, the last one above the first one; a single byte is its own set.
static inline uint32_t rules_set(unsigned first, unsigned last) { return first == last ? first : (last << 8u | first); }
static inline bool rules_in_set(uint32_t set, unsigned char byte) {
    return set < 256u ? byte == set : byte >= (set & 0xffu) && byte <= set >> 8u;
}

void rules_close(rules *grammar);

// Notes what is wrong, if nothing was before; returns false.
bool rules_fail(rules *grammar, const char *fault);

// A new rule without alternatives. When there are too many the grammar fails, and the number is that of an older one.
uint32_t rules_add(rules *grammar);
void rules_alternative(rules *grammar, uint32_t number, const sequence *alternative);
void rules_alternative_rule(rules *grammar, uint32_t number, uint32_t other);
void rules_alternative_empty(rules *grammar, uint32_t number);

// Fails a grammar with left recursion: a rule that calls itself before it has read anything, and has something left to
// do after that call. Calls at the end of an alternative leave nothing behind, so that cycles of them are harmless.
bool rules_check(rules *grammar);

void sequence_add(sequence *run, element_kind kind, uint32_t value);
void sequence_text(sequence *run, const char *text, size_t size);
void sequence_word(sequence *run, const char *text);
void sequence_free(sequence *run);

// Adds one set or rule `least` to `most` times (`most` SIZE_MAX: any number of times).
void sequence_repeat(rules *grammar, sequence *run, element what, size_t least_times, size_t most_times);

// Code points first .. last.
typedef struct code_range {
    uint32_t first;
    uint32_t last;
} code_range;

// The element for one character that is (not, if `negated`) in one of the ranges, in UTF-8. Orders the ranges.
element rules_characters(rules *grammar, code_range *ranges, size_t count, bool negated);

#endif
