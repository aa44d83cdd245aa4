#include "rules.h"

#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "utf8.h"

#define MOST_ELEMENTS 2000000u
#define LAST_CODE 0x10ffffu
#define FIRST_SURROGATE 0xd800u
#define LAST_SURROGATE 0xdfffu

void rules_open(rules *grammar) {
    memset(grammar, 0, sizeof *grammar);
    for (uint32_t byte = 0; byte < 256u; byte++) {
        byte_set single = {{0}};
        single.bits[byte / 64u] = UINT64_C(1) << byte % 64u;
        (void)rules_set(grammar, &single);
    }
}

void rules_close(rules *grammar) {
    for (size_t number = 0; number < grammar->rule_count; number++) {
        free(grammar->rules[number].starts);
    }
    free(grammar->rules);
    free(grammar->elements);
    free(grammar->sets);
    memset(grammar, 0, sizeof *grammar);
}

bool rules_fail(rules *grammar, const char *fault) {
    grammar->fault = grammar->fault == NULL ? fault : grammar->fault;
    return false;
}

/* Room for one more of something. */
static void *grown(void *old, size_t count, size_t *room, size_t size) {
    if (count < *room) {
        return old;
    }
    *room = most(64, 2u * *room);
    return reallocate(old, *room, size);
}

uint32_t rules_add(rules *grammar) {
    grammar->rules = grown(grammar->rules, grammar->rule_count, &grammar->rule_room, sizeof(rule));
    grammar->rules[grammar->rule_count] = (rule){NULL, 0};
    return (uint32_t)grammar->rule_count++;
}

static void put_element(rules *grammar, element added) {
    if (grammar->count >= MOST_ELEMENTS) {
        rules_fail(grammar, "the grammar is too large");
        return;
    }
    grammar->elements = grown(grammar->elements, grammar->count, &grammar->room, sizeof(element));
    grammar->elements[grammar->count++] = added;
}

void rules_alternative(rules *grammar, uint32_t number, const sequence *alternative) {
    rule *const to = &grammar->rules[number];
    to->starts = reallocate(to->starts, to->count + 1u, sizeof(uint32_t));
    to->starts[to->count++] = (uint32_t)grammar->count;
    for (size_t index = 0; index < alternative->count; index++) {
        put_element(grammar, alternative->elements[index]);
    }
    put_element(grammar, (element){ELEMENT_END, 0});
}

void rules_alternative_rule(rules *grammar, uint32_t number, uint32_t other) {
    element only = {ELEMENT_RULE, other};
    const sequence alternative = {&only, 1, 1};
    rules_alternative(grammar, number, &alternative);
}

void rules_alternative_empty(rules *grammar, uint32_t number) {
    const sequence nothing = {NULL, 0, 0};
    rules_alternative(grammar, number, &nothing);
}

uint32_t rules_set(rules *grammar, const byte_set *set) {
    for (size_t index = 0; index < grammar->set_count; index++) {
        if (memcmp(&grammar->sets[index], set, sizeof *set) == 0) {
            return (uint32_t)index;
        }
    }
    grammar->sets = grown(grammar->sets, grammar->set_count, &grammar->set_room, sizeof(byte_set));
    grammar->sets[grammar->set_count] = *set;
    return (uint32_t)grammar->set_count++;
}

void sequence_add(sequence *run, element_kind kind, uint32_t value) {
    run->elements = grown(run->elements, run->count, &run->room, sizeof(element));
    run->elements[run->count++] = (element){kind, value};
}

void sequence_text(sequence *run, const char *text, size_t size) {
    for (size_t at = 0; at < size; at++) {
        sequence_add(run, ELEMENT_SET, (unsigned char)text[at]);
    }
}

void sequence_word(sequence *run, const char *text) { sequence_text(run, text, strlen(text)); }

void sequence_free(sequence *run) {
    free(run->elements);
    memset(run, 0, sizeof *run);
}

#define NO_RULE UINT32_MAX

/* Fills a rule: `what` and then the rule `rest`, or nothing at all. */
static void fill_optional(rules *grammar, uint32_t number, element what, uint32_t rest) {
    element both[2] = {what, {ELEMENT_RULE, rest}};
    const sequence alternative = {both, rest == NO_RULE ? 1u : 2u, 2};
    rules_alternative(grammar, number, &alternative);
    rules_alternative_empty(grammar, number);
}

void sequence_repeat(rules *grammar, sequence *run, element what, size_t least_times, size_t most_times) {
    uint32_t rest = NO_RULE;
    if (least_times > MOST_ELEMENTS || (most_times != SIZE_MAX && most_times - least_times > MOST_ELEMENTS)) {
        rules_fail(grammar, "the grammar is too large");
        return;
    }
    for (size_t time = 0; time < least_times; time++) {
        sequence_add(run, what.kind, what.value);
    }
    if (most_times == SIZE_MAX) {
        rest = rules_add(grammar);
        fill_optional(grammar, rest, what, rest);
        sequence_add(run, ELEMENT_RULE, rest);
        return;
    }
    for (size_t time = least_times; time < most_times && grammar->fault == NULL; time++) {
        const uint32_t number = rules_add(grammar);
        fill_optional(grammar, number, what, rest);
        rest = number;
    }
    if (rest != NO_RULE) {
        sequence_add(run, ELEMENT_RULE, rest);
    }
}

// ---------------------------------------------------------------- characters as bytes

static void add_bytes(rules *grammar, sequence *run, unsigned first, unsigned last) {
    byte_set set = {{0}};
    for (unsigned byte = first; byte <= last; byte++) {
        set.bits[byte / 64u] |= UINT64_C(1) << byte % 64u;
    }
    sequence_add(run, ELEMENT_SET, rules_set(grammar, &set));
}

/* Alternatives of `number` for a range that is cut until each of its bytes varies on its own. */
static void add_range(rules *grammar, uint32_t number, uint32_t first, uint32_t last) {
    static const uint32_t bounds[] = {0x7fu, 0x7ffu, 0xffffu};
    char low[4];
    char high[4];
    size_t length;
    sequence run = {NULL, 0, 0};
    for (size_t index = 0; index < sizeof bounds / sizeof bounds[0]; index++) {
        if (first <= bounds[index] && last > bounds[index]) {
            add_range(grammar, number, first, bounds[index]);
            add_range(grammar, number, bounds[index] + 1u, last);
            return;
        }
    }
    for (uint32_t bits = 6; bits <= 18 && last > 0x7fu; bits += 6) {
        const uint32_t mask = (UINT32_C(1) << bits) - 1u;
        if ((first & ~mask) == (last & ~mask)) {
            continue;
        }
        if ((first & mask) != 0) {
            add_range(grammar, number, first, first | mask);
            add_range(grammar, number, (first | mask) + 1u, last);
            return;
        }
        if ((last & mask) != mask) {
            add_range(grammar, number, first, (last & ~mask) - 1u);
            add_range(grammar, number, last & ~mask, last);
            return;
        }
    }
    length = utf8_write(low, first);
    (void)utf8_write(high, last);
    for (size_t at = 0; at < length; at++) {
        add_bytes(grammar, &run, (unsigned char)low[at], (unsigned char)high[at]);
    }
    rules_alternative(grammar, number, &run);
    sequence_free(&run);
}

/* The same without the surrogates, which have no UTF-8. */
static void add_characters(rules *grammar, uint32_t number, uint32_t first, uint32_t last) {
    last = last > LAST_CODE ? LAST_CODE : last;
    if (first < FIRST_SURROGATE && last >= FIRST_SURROGATE) {
        add_characters(grammar, number, first, FIRST_SURROGATE - 1u);
        first = FIRST_SURROGATE;
    }
    if (first >= FIRST_SURROGATE && first <= LAST_SURROGATE) {
        first = LAST_SURROGATE + 1u;
    }
    if (first <= last) {
        add_range(grammar, number, first, last);
    }
}

static int by_first(const void *left, const void *right) {
    const code_range *const one = left;
    const code_range *const other = right;
    return one->first < other->first ? -1 : one->first > other->first;
}

element rules_characters(rules *grammar, code_range *ranges, size_t count, bool negated) {
    const uint32_t number = rules_add(grammar);
    uint32_t next = 0; // first code point that is not dealt with
    if (count != 0) {
        qsort(ranges, count, sizeof(code_range), by_first);
    }
    for (size_t index = 0; index < count; index++) {
        const code_range *const now = &ranges[index];
        if (negated && now->first > next) {
            add_characters(grammar, number, next, now->first - 1u);
        } else if (!negated && now->last >= next) {
            add_characters(grammar, number, now->first > next ? now->first : next, now->last);
        }
        next = now->last >= next ? now->last + 1u : next;
    }
    if (negated) {
        add_characters(grammar, number, next, LAST_CODE);
    }
    if (grammar->rules[number].count == 0) {
        rules_fail(grammar, "a character class that is empty");
    }
    return (element){ELEMENT_RULE, number};
}
