// Rules for the parts of compact JSON that every schema is made of.
#ifndef COLIBRI_NATIVE_JSON_RULES_H
#define COLIBRI_NATIVE_JSON_RULES_H

#include "json.h"
#include "rules.h"

typedef struct json_rules {
    rules *to;
    element character; // one character of a string, escapes included
    element bare;      // one character of a string that needs no escape
    uint32_t string;
    uint32_t integer;
    uint32_t number;
    uint32_t boolean;
    uint32_t null;
    uint32_t object; // of any values
    uint32_t array;  // likewise
    uint32_t value;
} json_rules;

void json_rules_open(json_rules *parts, rules *to);

// The exact text of a value.
void json_rules_literal(sequence *run, const json_value *value);

// A string that is none of `count` keys, without escapes and with its quotes.
uint32_t json_rules_other_key(json_rules *parts, const json_value *const *keys, size_t count);

// Alternatives of `number` for the integers low .. high, each with `tail` behind it.
void json_rules_integers(rules *to, uint32_t number, int64_t low, int64_t high, const sequence *tail);

// Alternatives of `number` for numbers with a fraction between the integers low and high.
void json_rules_fractions(rules *to, uint32_t number, int64_t low, int64_t high);

#endif
