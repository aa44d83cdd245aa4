#include "rules.h"

#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "utf8.h"

#define MOST_RULES 1000000u
#define TOO_LARGE "the grammar is too large"
#define LAST_CODE 0x10ffffu
#define FIRST_SURROGATE 0xd800u
#define LAST_SURROGATE 0xdfffu

void rules_close(rules *grammar) {
    for (size_t number = 0; number < grammar->rule_count; number++) {
        free(grammar->rules[number].starts);
    }
    free(grammar->rules);
    free(grammar->elements);
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
    if (grammar->rule_count == MOST_RULES) {
        rules_fail(grammar, TOO_LARGE);
        return MOST_RULES - 1u;
    }
    grammar->rules = grown(grammar->rules, grammar->rule_count, &grammar->rule_room, sizeof(rule));
    grammar->rules[grammar->rule_count] = (rule){NULL, 0};
    return (uint32_t)grammar->rule_count++;
}

static void put_element(rules *grammar, element added) {
    if (grammar->count >= MOST_ELEMENTS) {
        rules_fail(grammar, TOO_LARGE);
        return;
    }
    grammar->elements = grown(grammar->elements, grammar->count, &grammar->room, sizeof(element));
    grammar->elements[grammar->count++] = added;
}

void rules_alternative(rules *grammar, uint32_t number, const sequence *alternative) {
    rule *const to = &grammar->rules[number];
    if ((to->count & (to->count - 1u)) == 0) { // none, or a power of two: the room is used up
        to->starts = reallocate(to->starts, most(1, 2u * to->count), sizeof(uint32_t));
    }
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
    // What a repetition writes ends up in the grammar sooner or later, so it counts at once.
    if (least_times > MOST_ELEMENTS - grammar->repeated ||
        (most_times != SIZE_MAX && most_times - least_times > MOST_ELEMENTS)) {
        rules_fail(grammar, TOO_LARGE);
        return;
    }
    grammar->repeated += least_times;
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
        sequence_add(&run, ELEMENT_SET, rules_set((unsigned char)low[at], (unsigned char)high[at]));
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

// ---------------------------------------------------------------- left recursion

#define NO_PLACE UINT32_MAX

// About one element: where the rule it calls is called next, and in which alternative this is. About the first element
// of an alternative: whose it is, and how many of its elements are not known to read nothing.
typedef struct left_note {
    uint32_t next;
    uint32_t start;
    uint32_t owner;
    uint32_t missing;
} left_note;

// The next call to look at in an alternative of a rule.
typedef struct left_place {
    uint32_t number;
    uint32_t alternative;
    size_t place;
} left_place;

// Rules that lead to each other by calls before which nothing may have been read make a group.
typedef struct left_search {
    const rules *grammar;
    bool *nullable;    // rules that may read nothing
    uint32_t *order;   // when a rule was met, from 1 on
    uint32_t *low;     // the earliest rule without a group that it leads to
    uint32_t *group;   // 0: not known yet
    uint32_t *waiting; // rules without a group, in the order they were met
    size_t waiting_count;
    left_place *frames;
    size_t depth;
    uint32_t met;
} left_search;

/* Lists the calls of each rule, from `heads` on, in alternatives of nothing but calls. */
static void note_calls(const rules *grammar, left_note *notes, uint32_t *heads) {
    memset(heads, 0xff, grammar->rule_count * sizeof *heads);
    for (uint32_t number = 0; number < grammar->rule_count; number++) {
        for (uint32_t index = 0; index < grammar->rules[number].count; index++) {
            const uint32_t start = grammar->rules[number].starts[index];
            uint32_t end = start;
            while (grammar->elements[end].kind == ELEMENT_RULE) {
                end++;
            }
            notes[start].owner = number;
            notes[start].missing = end - start;
            for (uint32_t place = start; place < end && grammar->elements[end].kind == ELEMENT_END; place++) {
                notes[place].start = start;
                notes[place].next = heads[grammar->elements[place].value];
                heads[grammar->elements[place].value] = place;
            }
        }
    }
}

static void find_nullable(const rules *grammar, bool *nullable) {
    left_note *notes = allocate(grammar->count, sizeof *notes);
    uint32_t *heads = allocate(grammar->rule_count, sizeof *heads);
    uint32_t *found = allocate(grammar->rule_count, sizeof *found);
    size_t count = 0;
    note_calls(grammar, notes, heads);
    for (uint32_t number = 0; number < grammar->rule_count; number++) {
        for (uint32_t index = 0; index < grammar->rules[number].count && !nullable[number]; index++) {
            if (grammar->elements[grammar->rules[number].starts[index]].kind == ELEMENT_END) {
                nullable[number] = true;
                found[count++] = number;
            }
        }
    }
    while (count != 0) {
        for (uint32_t place = heads[found[--count]]; place != NO_PLACE; place = notes[place].next) {
            left_note *const first = &notes[notes[place].start];
            if (--first->missing == 0 && !nullable[first->owner]) {
                nullable[first->owner] = true;
                found[count++] = first->owner;
            }
        }
    }
    free(notes);
    free(heads);
    free(found);
}

static left_place first_place(const rules *grammar, uint32_t number) {
    const rule *const its = &grammar->rules[number];
    return (left_place){number, 0, its->count == 0 ? 0 : its->starts[0]};
}

/* The next rule called before anything may have been read, and whether its alternative ends there. False: no more. */
static bool next_call(const left_search *search, left_place *now, uint32_t *called, bool *last) {
    const rule *const its = &search->grammar->rules[now->number];
    while (now->alternative < its->count) {
        const element *const here = &search->grammar->elements[now->place];
        const bool calls = here->kind == ELEMENT_RULE;
        *called = here->value;
        *last = calls && here[1].kind == ELEMENT_END;
        if (calls && search->nullable[here->value]) {
            now->place++;
        } else if (++now->alternative < its->count) {
            now->place = its->starts[now->alternative];
        }
        if (calls) {
            return true;
        }
    }
    return false;
}

static void enter(left_search *search, uint32_t number) {
    search->order[number] = search->low[number] = ++search->met;
    search->waiting[search->waiting_count++] = number;
    search->frames[search->depth++] = first_place(search->grammar, number);
}

static void leave(left_search *search, uint32_t number) {
    uint32_t member;
    search->depth--;
    if (search->depth != 0) {
        uint32_t *const low = &search->low[search->frames[search->depth - 1u].number];
        *low = *low < search->low[number] ? *low : search->low[number];
    }
    if (search->low[number] == search->order[number]) {
        do {
            member = search->waiting[--search->waiting_count];
            search->group[member] = search->order[number];
        } while (member != number);
    }
}

/* Tarjan's search, with frames of its own: rules call each other as deeply as a client likes. */
static void find_groups(left_search *search) {
    uint32_t called;
    bool last;
    for (uint32_t number = 0; number < search->grammar->rule_count; number++) {
        if (search->order[number] == 0) {
            enter(search, number);
        }
        while (search->depth != 0) {
            left_place *const now = &search->frames[search->depth - 1u];
            const uint32_t caller = now->number;
            if (!next_call(search, now, &called, &last)) {
                leave(search, caller);
            } else if (search->order[called] == 0) {
                enter(search, called);
            } else if (search->group[called] == 0 && search->order[called] < search->low[caller]) {
                search->low[caller] = search->order[called];
            }
        }
    }
}

bool rules_check(rules *grammar) {
    const size_t count = grammar->rule_count;
    left_search search = {.grammar = grammar};
    search.nullable = allocate(count, sizeof(bool));
    search.order = allocate(count, sizeof(uint32_t));
    search.low = allocate(count, sizeof(uint32_t));
    search.group = allocate(count, sizeof(uint32_t));
    search.waiting = allocate(count, sizeof(uint32_t));
    search.frames = allocate(count, sizeof(left_place));
    find_nullable(grammar, search.nullable);
    find_groups(&search);
    for (uint32_t number = 0; number < count; number++) {
        left_place now = first_place(grammar, number);
        uint32_t called;
        bool last;
        while (next_call(&search, &now, &called, &last)) {
            if (!last && search.group[called] == search.group[number]) {
                rules_fail(grammar, "a rule begins with itself");
            }
        }
    }
    free(search.nullable);
    free(search.order);
    free(search.low);
    free(search.group);
    free(search.waiting);
    free(search.frames);
    return grammar->fault == NULL;
}
