#include "json_rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "utf8.h"

#define MORE_DIGITS 15u    // behind the first one of an integer
#define FRACTION_DIGITS 16u
#define EXPONENT_DIGITS 2u
#define LONGEST_KEY 256u // bytes that are told apart
#define MOST_DIGITS 20u

static element characters(rules *to, uint32_t first, uint32_t last) {
    code_range range = {first, last};
    return rules_characters(to, &range, 1, false);
}

static void add(sequence *run, element what) { sequence_add(run, what.kind, what.value); }

static element as_rule(uint32_t number) { return (element){ELEMENT_RULE, number}; }

/* A rule with one alternative, which is freed. */
static uint32_t single(rules *to, sequence *run) {
    const uint32_t number = rules_add(to);
    rules_alternative(to, number, run);
    sequence_free(run);
    return number;
}

static uint32_t word(rules *to, const char *text) {
    sequence run = {NULL, 0, 0};
    sequence_word(&run, text);
    return single(to, &run);
}

static void add_word(rules *to, uint32_t number, const char *text) { rules_alternative_rule(to, number, word(to, text)); }

static element one_of(rules *to, const char *letters) {
    code_range ranges[16];
    const size_t count = strlen(letters);
    for (size_t index = 0; index < count; index++) {
        ranges[index].first = ranges[index].last = (unsigned char)letters[index];
    }
    return rules_characters(to, ranges, count, false);
}

static element hexadecimal(rules *to) {
    code_range ranges[3] = {{'0', '9'}, {'A', 'F'}, {'a', 'f'}};
    return rules_characters(to, ranges, 3, false);
}

/* Escapes of four digits, without the surrogates. */
static void add_unicode_escapes(rules *to, uint32_t number) {
    code_range free_digits[5] = {{'0', '9'}, {'A', 'C'}, {'E', 'F'}, {'a', 'c'}, {'e', 'f'}};
    const element digit = hexadecimal(to);
    sequence run = {NULL, 0, 0};
    sequence_word(&run, "\\u");
    add(&run, rules_characters(to, free_digits, 5, false));
    sequence_repeat(to, &run, digit, 3, 3);
    rules_alternative(to, number, &run);
    run.count = 0;
    sequence_word(&run, "\\u");
    add(&run, one_of(to, "dD"));
    add(&run, characters(to, '0', '7'));
    sequence_repeat(to, &run, digit, 2, 2);
    rules_alternative(to, number, &run);
    sequence_free(&run);
}

static void open_strings(json_rules *parts) {
    rules *const to = parts->to;
    code_range escaped[3] = {{0, 0x1fu}, {'"', '"'}, {'\\', '\\'}};
    const uint32_t character = rules_add(to);
    sequence run = {NULL, 0, 0};
    parts->bare = rules_characters(to, escaped, 3, true);
    rules_alternative_rule(to, character, parts->bare.value);
    sequence_word(&run, "\\");
    add(&run, one_of(to, "\"\\/bfnrt"));
    rules_alternative(to, character, &run);
    add_unicode_escapes(to, character);
    parts->character = as_rule(character);
    run.count = 0;
    sequence_word(&run, "\"");
    sequence_repeat(to, &run, parts->character, 0, SIZE_MAX);
    sequence_word(&run, "\"");
    parts->string = single(to, &run);
}

static void open_numbers(json_rules *parts) {
    rules *const to = parts->to;
    const element digit = characters(to, '0', '9');
    const element minus = as_rule(word(to, "-"));
    const uint32_t whole = rules_add(to);
    uint32_t fraction;
    uint32_t exponent;
    sequence run = {NULL, 0, 0};
    add_word(to, whole, "0");
    add(&run, characters(to, '1', '9'));
    sequence_repeat(to, &run, digit, 0, MORE_DIGITS);
    rules_alternative(to, whole, &run);
    run.count = 0;
    sequence_repeat(to, &run, minus, 0, 1);
    add(&run, as_rule(whole));
    parts->integer = single(to, &run);
    sequence_word(&run, ".");
    sequence_repeat(to, &run, digit, 1, FRACTION_DIGITS);
    fraction = single(to, &run);
    add(&run, one_of(to, "eE"));
    sequence_repeat(to, &run, one_of(to, "+-"), 0, 1);
    sequence_repeat(to, &run, digit, 1, EXPONENT_DIGITS);
    exponent = single(to, &run);
    add(&run, as_rule(parts->integer));
    sequence_repeat(to, &run, as_rule(fraction), 0, 1);
    sequence_repeat(to, &run, as_rule(exponent), 0, 1);
    parts->number = single(to, &run);
}

/* open, item, any number of `, item`, close; or nothing between the brackets. */
static uint32_t listing(rules *to, const char *opening, element item, const char *closing) {
    const uint32_t number = rules_add(to);
    sequence run = {NULL, 0, 0};
    uint32_t further;
    sequence_word(&run, ",");
    add(&run, item);
    further = single(to, &run);
    sequence_word(&run, opening);
    sequence_word(&run, closing);
    rules_alternative(to, number, &run);
    run.count = 0;
    sequence_word(&run, opening);
    add(&run, item);
    sequence_repeat(to, &run, as_rule(further), 0, SIZE_MAX);
    sequence_word(&run, closing);
    rules_alternative(to, number, &run);
    sequence_free(&run);
    return number;
}

void json_rules_open(json_rules *parts, rules *to) {
    sequence run = {NULL, 0, 0};
    memset(parts, 0, sizeof *parts);
    parts->to = to;
    open_strings(parts);
    open_numbers(parts);
    parts->null = word(to, "null");
    parts->boolean = rules_add(to);
    add_word(to, parts->boolean, "true");
    add_word(to, parts->boolean, "false");
    parts->value = rules_add(to);
    parts->array = listing(to, "[", as_rule(parts->value), "]");
    add(&run, as_rule(parts->string));
    sequence_word(&run, ":");
    add(&run, as_rule(parts->value));
    parts->object = listing(to, "{", as_rule(single(to, &run)), "}");
    {
        const uint32_t kinds[] = {parts->object, parts->array,   parts->string,
                                  parts->number, parts->boolean, parts->null};
        for (size_t index = 0; index < sizeof kinds / sizeof kinds[0]; index++) {
            rules_alternative_rule(to, parts->value, kinds[index]);
        }
    }
}

// ---------------------------------------------------------------- literals

#define LONGEST_PLACES 400L // of a plain number; doubles take less

// A number's digits without zeros before and behind them, and where among them the point is.
typedef struct plain_number {
    char digits[JSON_NUMBER_BYTES];
    long count;
    long point;
} plain_number;

static void read_plain(plain_number *to, const char *text, size_t size) {
    char copy[JSON_NUMBER_BYTES];
    const char *at = copy;
    bool fraction = false;
    memcpy(copy, text, size);
    copy[size] = '\0';
    memset(to, 0, sizeof *to);
    for (at += *at == '-' ? 1 : 0; *at != '\0' && *at != 'e' && *at != 'E'; at++) {
        if (*at == '.') {
            fraction = true;
        } else if (to->count != 0 || *at != '0') {
            to->digits[to->count++] = *at;
            to->point += fraction ? 0 : 1;
        } else {
            to->point -= fraction ? 1 : 0;
        }
    }
    while (to->count != 0 && to->digits[to->count - 1] == '0') {
        to->count--;
    }
    if (*at != '\0') {
        const long exponent = strtol(at + 1, NULL, 10);
        to->point += exponent > 0 ? (exponent < 2 * LONGEST_PLACES ? exponent : 2 * LONGEST_PLACES)
                                  : (exponent > -2 * LONGEST_PLACES ? exponent : -2 * LONGEST_PLACES);
    }
}

/* One text for all spellings of a value: no exponent, no zeros that say nothing. All digits count, not the nearest double. */
static void literal_number(sequence *run, const char *text, size_t size) {
    plain_number plain;
    read_plain(&plain, text, size);
    if (plain.count != 0 && (plain.point > LONGEST_PLACES || plain.point < -LONGEST_PLACES)) {
        sequence_text(run, text, size);
        return;
    }
    sequence_word(run, *text == '-' ? "-" : "");
    sequence_word(run, plain.count == 0 || plain.point <= 0 ? "0" : "");
    for (long place = plain.point < 0 ? plain.point : 0; plain.count != 0 && (place < plain.count || place < plain.point);
         place++) {
        if (place == plain.point) {
            sequence_word(run, ".");
        }
        sequence_text(run, place >= 0 && place < plain.count ? &plain.digits[place] : "0", 1);
    }
}

static void literal_string(sequence *run, const char *text, size_t size) {
    static const char short_escapes[] = "\b\f\n\r\t";
    sequence_word(run, "\"");
    for (size_t at = 0; at < size; at++) {
        const unsigned char byte = (unsigned char)text[at];
        char escape[8];
        if (byte == '"' || byte == '\\') {
            sequence_word(run, "\\");
        }
        if (byte < 0x20u) {
            const char *const found = byte == 0 ? NULL : strchr(short_escapes, byte);
            if (found != NULL) {
                snprintf(escape, sizeof escape, "\\%c", "bfnrt"[found - short_escapes]);
            } else {
                snprintf(escape, sizeof escape, "\\u%04x", byte);
            }
            sequence_word(run, escape);
        } else {
            sequence_text(run, text + at, 1);
        }
    }
    sequence_word(run, "\"");
}

void json_rules_literal(sequence *run, const json_value *value) {
    const bool object = value->kind == JSON_OBJECT;
    bool first = true;
    switch (value->kind) {
    case JSON_NULL:
        sequence_word(run, "null");
        return;
    case JSON_BOOLEAN:
        sequence_word(run, value->truth ? "true" : "false");
        return;
    case JSON_NUMBER:
        literal_number(run, value->text, value->size);
        return;
    case JSON_STRING:
        literal_string(run, value->text, value->size);
        return;
    case JSON_ARRAY:
    case JSON_OBJECT:
    default:
        break;
    }
    sequence_word(run, object ? "{" : "[");
    for (const json_value *item = value->first; item != NULL && run->count <= MOST_ELEMENTS; item = item->next) {
        if (object && json_find(value, item->name, item->name_size) != item) {
            continue; // given again: the last one counts
        }
        sequence_word(run, first ? "" : ",");
        first = false;
        if (object) {
            literal_string(run, item->name, item->name_size);
            sequence_word(run, ":");
        }
        json_rules_literal(run, item);
    }
    sequence_word(run, object ? "}" : "]");
}

// ---------------------------------------------------------------- keys that are not others

static int by_name(const void *left, const void *right) {
    const json_value *const one = *(const json_value *const *)left;
    const json_value *const other = *(const json_value *const *)right;
    const int order = memcmp(one->name, other->name, least(one->name_size, other->name_size));
    if (order != 0) {
        return order;
    }
    return one->name_size < other->name_size ? -1 : one->name_size > other->name_size;
}

/* What may follow the first `depth` bytes, which keys first .. end - 1 share: `rest` once it differs from all of them. */
static uint32_t differing(json_rules *parts, const json_value **keys, size_t count, size_t depth, uint32_t rest) {
    const uint32_t number = rules_add(parts->to);
    code_range *taken = allocate(count + 3u, sizeof(code_range));
    size_t ranges = 0;
    size_t first = 0;
    sequence run = {NULL, 0, 0};
    if (keys[0]->name_size == depth) {
        first = 1; // this key ends here: the string must not
    } else {
        sequence_word(&run, "\"");
        rules_alternative(parts->to, number, &run);
    }
    while (first < count && depth < LONGEST_KEY && parts->to->fault == NULL) {
        const char *const at = keys[first]->name + depth;
        uint32_t character = 0;
        const size_t length = utf8_read(at, keys[first]->name_size - depth, &character);
        size_t end = first + 1u;
        while (end < count && keys[end]->name_size >= depth + length && memcmp(keys[end]->name + depth, at, length) == 0) {
            end++;
        }
        taken[ranges].first = taken[ranges].last = character;
        ranges++;
        run.count = 0;
        sequence_text(&run, at, length);
        add(&run, as_rule(differing(parts, keys + first, end - first, depth + length, rest)));
        rules_alternative(parts->to, number, &run);
        first = end;
    }
    taken[ranges++] = (code_range){0, 0x1fu};
    taken[ranges++] = (code_range){'"', '"'};
    taken[ranges++] = (code_range){'\\', '\\'};
    run.count = 0;
    if (depth < LONGEST_KEY) {
        add(&run, rules_characters(parts->to, taken, ranges, true));
        add(&run, as_rule(rest));
        rules_alternative(parts->to, number, &run);
    }
    sequence_free(&run);
    free(taken);
    return number;
}

static bool needs_escape(const json_value *key) {
    for (size_t at = 0; at < key->name_size; at++) {
        const unsigned char byte = (unsigned char)key->name[at];
        if (byte < 0x20u || byte == '"' || byte == '\\') {
            return true;
        }
    }
    return false;
}

uint32_t json_rules_other_key(json_rules *parts, const json_value *const *keys, size_t count) {
    const json_value **sorted = allocate(count, sizeof *sorted);
    size_t kept = 0;
    uint32_t rest;
    uint32_t number;
    sequence run = {NULL, 0, 0};
    for (size_t index = 0; index < count; index++) {
        if (!needs_escape(keys[index])) { // such a key cannot be written without
            sorted[kept++] = keys[index];
        }
    }
    qsort(sorted, kept, sizeof *sorted, by_name);
    sequence_repeat(parts->to, &run, parts->bare, 0, SIZE_MAX);
    sequence_word(&run, "\"");
    rest = single(parts->to, &run);
    sequence_word(&run, "\"");
    add(&run, as_rule(kept == 0 ? rest : differing(parts, sorted, kept, 0, rest)));
    number = single(parts->to, &run);
    free(sorted);
    return number;
}

// ---------------------------------------------------------------- ranges of numbers

typedef struct digit_range {
    rules *to;
    uint32_t number;
    const sequence *tail;
    element digit;
    const char *prefix; // before all digits
} digit_range;

static void finish_digits(const digit_range *job, const char *fixed, size_t count, char low, char high, size_t free_digits) {
    sequence run = {NULL, 0, 0};
    sequence_word(&run, job->prefix);
    sequence_text(&run, fixed, count);
    if (low <= high) {
        add(&run, characters(job->to, (unsigned char)low, (unsigned char)high));
    }
    sequence_repeat(job->to, &run, job->digit, free_digits, free_digits);
    for (size_t index = 0; index < job->tail->count; index++) {
        add(&run, job->tail->elements[index]);
    }
    rules_alternative(job->to, job->number, &run);
    sequence_free(&run);
}

static bool all(const char *digits, size_t size, char digit) {
    for (size_t at = 0; at < size; at++) {
        if (digits[at] != digit) {
            return false;
        }
    }
    return true;
}

/* Numbers of `size` digits from `low` to `high`, whose first `same` digits are dealt with and equal. */
static void same_length(const digit_range *job, const char *low, const char *high, size_t same, size_t size) {
    char bound[MOST_DIGITS];
    char first;
    char last;
    while (same < size && low[same] == high[same]) {
        same++;
    }
    if (same == size || (all(low + same, size - same, '0') && all(high + same, size - same, '9'))) {
        finish_digits(job, low, same, '1', '0', size - same);
        return;
    }
    first = low[same];
    last = high[same];
    memcpy(bound, low, size);
    if (!all(low + same + 1u, size - same - 1u, '0')) {
        memset(bound + same + 1u, '9', size - same - 1u);
        same_length(job, low, bound, same + 1u, size);
        first++;
    }
    memcpy(bound, high, size);
    if (!all(high + same + 1u, size - same - 1u, '9')) {
        memset(bound + same + 1u, '0', size - same - 1u);
        same_length(job, bound, high, same + 1u, size);
        last--;
    }
    if (first <= last) {
        finish_digits(job, low, same, first, last, size - same - 1u);
    }
}

static void magnitudes(const digit_range *job, uint64_t low, uint64_t high) {
    uint64_t smallest = 0;
    uint64_t largest = 9;
    while (low <= high) {
        if (low <= largest) {
            char from[MOST_DIGITS + 1u];
            char to[MOST_DIGITS + 1u];
            const uint64_t end = high < largest ? high : largest;
            snprintf(from, sizeof from, "%llu", (unsigned long long)(low > smallest ? low : smallest));
            snprintf(to, sizeof to, "%llu", (unsigned long long)end);
            same_length(job, from, to, 0, strlen(to));
            low = end + 1u;
        }
        smallest = largest + 1u;
        largest = largest * 10u + 9u;
    }
}

void json_rules_integers(rules *to, uint32_t number, int64_t low, int64_t high, const sequence *tail) {
    digit_range job = {to, number, tail, {ELEMENT_RULE, 0}, ""};
    job.digit = characters(to, '0', '9');
    if (high >= 0 && low <= high) {
        magnitudes(&job, low > 0 ? (uint64_t)low : 0, (uint64_t)high);
    }
    if (low < 0 && low <= high) {
        job.prefix = "-";
        magnitudes(&job, high < 0 ? (uint64_t)-high : 1u, (uint64_t)-low);
    }
}

void json_rules_fractions(rules *to, uint32_t number, int64_t low, int64_t high) {
    sequence tail = {NULL, 0, 0};
    digit_range job = {to, number, &tail, {ELEMENT_RULE, 0}, ""};
    job.digit = characters(to, '0', '9');
    sequence_word(&tail, ".");
    sequence_repeat(to, &tail, job.digit, 1, FRACTION_DIGITS);
    if (high >= 1 && high > low) {
        magnitudes(&job, low > 0 ? (uint64_t)low : 0, (uint64_t)high - 1u);
    }
    if (low <= -1 && high > low) {
        job.prefix = "-";
        magnitudes(&job, high < 0 ? (uint64_t)-high : 0, (uint64_t)-low - 1u);
    }
    sequence_free(&tail);
}
