// A grammar over bytes: rules of alternatives, each a run of byte sets and references to rules.
#ifndef COLIBRI_NATIVE_RULES_H
#define COLIBRI_NATIVE_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum element_kind { ELEMENT_END, ELEMENT_SET, ELEMENT_RULE } element_kind;

typedef struct element {
    element_kind kind;
    uint32_t value; // number of a set or rule
} element;

// One bit per byte.
typedef struct byte_set {
    uint64_t bits[4];
} byte_set;

typedef struct rule {
    uint32_t *starts; // of its alternatives, as places in `elements`
    uint32_t count;
} rule;

// Grammars of zeros are empty and valid. Sets 0..255 are the single bytes.
typedef struct rules {
    element *elements;
    size_t count;
    size_t room;
    rule *rules;
    size_t rule_count;
    size_t rule_room;
    byte_set *sets;
    size_t set_count;
    size_t set_room;
    const char *fault; // the first thing that was wrong
} rules;

// A run of elements in the making. A sequence of zeros is empty and valid.
typedef struct sequence {
    element *elements;
    size_t count;
    size_t room;
} sequence;

void rules_open(rules *grammar);
void rules_close(rules *grammar);

// Notes what is wrong, if nothing was before; returns false.
bool rules_fail(rules *grammar, const char *fault);

// A new rule without alternatives.
uint32_t rules_add(rules *grammar);
void rules_alternative(rules *grammar, uint32_t number, const sequence *alternative);
void rules_alternative_rule(rules *grammar, uint32_t number, uint32_t other);
void rules_alternative_empty(rules *grammar, uint32_t number);

uint32_t rules_set(rules *grammar, const byte_set *set);

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
