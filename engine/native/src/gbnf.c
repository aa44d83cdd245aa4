#include "gbnf.h"

#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "names.h"
#include "utf8.h"

#define GROUP_DEPTH 64u
#define MOST_RANGES 4096u
#define MOST_TIMES 100000u
#define ANY_NUMBER SIZE_MAX

typedef struct named_rule {
    const char *name;
    size_t size;
    uint32_t number;
    bool defined;
} named_rule;

typedef struct parser {
    rules *to;
    const char *at;
    const char *end;
    named_rule *names;
    size_t count;
    size_t room;
    name_table places; // in `names`
    code_range *ranges; // of the character class being read
    unsigned depth;
} parser;

static bool fail(parser *from, const char *fault) { return rules_fail(from->to, fault); }

static bool good(const parser *from) { return from->to->fault == NULL; }

/* Skips blanks and comments, and line ends too if `lines`. */
static void skip(parser *from, bool lines) {
    while (from->at < from->end) {
        if (*from->at == '#') {
            while (from->at < from->end && *from->at != '\n') {
                from->at++;
            }
        } else if (*from->at == ' ' || *from->at == '\t' || *from->at == '\r' || (lines && *from->at == '\n')) {
            from->at++;
        } else {
            return;
        }
    }
}

static bool take(parser *from, const char *text) {
    const size_t size = strlen(text);
    if ((size_t)(from->end - from->at) < size || memcmp(from->at, text, size) != 0) {
        return false;
    }
    from->at += size;
    return true;
}

static bool is_name(char character) {
    return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
           (character >= '0' && character <= '9') || character == '-' || character == '_';
}

static size_t name_length(const parser *from) {
    size_t length = 0;
    while (from->at + length < from->end && is_name(from->at[length])) {
        length++;
    }
    return length;
}

static named_rule *find_rule(parser *from, const char *name, size_t size) {
    uint32_t *const place = name_table_place(&from->places, name, size);
    if (*place != NO_NAME) {
        return &from->names[*place];
    }
    *place = (uint32_t)from->count;
    if (from->count == from->room) {
        from->room = most(64, 2u * from->room);
        from->names = reallocate(from->names, from->room, sizeof(named_rule));
    }
    from->names[from->count] = (named_rule){name, size, rules_add(from->to), false};
    return &from->names[from->count++];
}

static uint32_t hexadecimal(parser *from, size_t digits) {
    uint32_t value = 0;
    for (size_t digit = 0; digit < digits; digit++) {
        const char character = from->at < from->end ? *from->at++ : '\0';
        if (character >= '0' && character <= '9') {
            value = value << 4u | (uint32_t)(character - '0');
        } else if (character >= 'a' && character <= 'f') {
            value = value << 4u | ((uint32_t)(character - 'a') + 10u);
        } else if (character >= 'A' && character <= 'F') {
            value = value << 4u | ((uint32_t)(character - 'A') + 10u);
        } else {
            fail(from, "a malformed escape");
        }
    }
    return value;
}

/* One character of a literal or class, escapes included. */
static uint32_t character_of(parser *from) {
    static const char plain[] = "nrt\\\"[]^-";
    static const char meaning[] = "\n\r\t\\\"[]^-";
    uint32_t character = 0;
    size_t length;
    if (from->at < from->end && *from->at != '\\') {
        length = utf8_read(from->at, (size_t)(from->end - from->at), &character);
        from->at += most(length, 1);
        return character;
    }
    from->at++;
    if (from->at < from->end) {
        const char *const found = *from->at == '\0' ? NULL : strchr(plain, *from->at);
        const char kind = *from->at++;
        if (found != NULL) {
            return (uint32_t)meaning[found - plain];
        }
        if (kind == 'x' || kind == 'u' || kind == 'U') {
            character = hexadecimal(from, kind == 'x' ? 2u : kind == 'u' ? 4u : 8u);
            if (character <= 0x10ffffu && (character < 0xd800u || character > 0xdfffu)) {
                return character;
            }
        }
    }
    fail(from, "an unknown escape");
    return 0;
}

/* A line end in it stands for itself: whoever writes a grammar in a program's string has one where "\n" was meant. */
static void parse_literal(parser *from, sequence *run) {
    while (good(from) && !take(from, "\"")) {
        char bytes[4];
        if (from->at == from->end) {
            fail(from, "a literal without end");
            return;
        }
        sequence_text(run, bytes, utf8_write(bytes, character_of(from)));
    }
}

static void parse_class(parser *from, sequence *run) {
    code_range *const ranges = from->ranges;
    size_t count = 0;
    const bool negated = take(from, "^");
    while (good(from) && !take(from, "]")) {
        if (from->at == from->end || count == MOST_RANGES) {
            fail(from, from->at == from->end ? "a character class without end" : "the grammar is too large");
            break;
        }
        ranges[count].first = ranges[count].last = character_of(from);
        if (from->end - from->at >= 2 && from->at[0] == '-' && from->at[1] != ']') {
            from->at++;
            ranges[count].last = character_of(from);
        }
        if (ranges[count].last < ranges[count].first) {
            fail(from, "a range that ends before it begins");
        }
        count++;
    }
    if (good(from)) {
        const element class = rules_characters(from->to, ranges, count, negated);
        sequence_add(run, class.kind, class.value);
    }
}

static void parse_choices(parser *from, uint32_t number, bool nested);

static void parse_group(parser *from, sequence *run) {
    const uint32_t number = rules_add(from->to);
    if (from->depth == GROUP_DEPTH) {
        fail(from, "groups nested too deeply");
        return;
    }
    from->depth++;
    skip(from, true);
    parse_choices(from, number, true);
    from->depth--;
    if (good(from) && !take(from, ")")) {
        fail(from, "a group without end");
    }
    sequence_add(run, ELEMENT_RULE, number);
}

static size_t parse_times(parser *from) {
    size_t value = 0;
    const char *const start = from->at;
    while (from->at < from->end && *from->at >= '0' && *from->at <= '9' && value <= MOST_TIMES) {
        value = value * 10u + (size_t)(*from->at++ - '0');
    }
    if (from->at == start || value > MOST_TIMES) {
        fail(from, "a malformed repetition");
    }
    return value;
}

/* Applies `least` to `most` repetitions to everything in `run` from `first` on. */
static void repeat(parser *from, sequence *run, size_t first, size_t least_times, size_t most_times) {
    element what = run->count - first == 1u ? run->elements[first] : (element){ELEMENT_RULE, 0};
    if (run->count - first != 1u) {
        const sequence part = {run->elements + first, run->count - first, 0};
        what.value = rules_add(from->to);
        rules_alternative(from->to, what.value, run->count == first ? &(sequence){NULL, 0, 0} : &part);
    }
    run->count = first;
    sequence_repeat(from->to, run, what, least_times, most_times);
}

/* The numbers of a repetition in braces. */
static bool parse_bounds(parser *from, size_t *least_times, size_t *most_times) {
    skip(from, false);
    *least_times = *most_times = parse_times(from);
    skip(from, false);
    if (take(from, ",")) {
        skip(from, false);
        *most_times = from->at < from->end && *from->at == '}' ? ANY_NUMBER : parse_times(from);
        skip(from, false);
    }
    return (take(from, "}") && *most_times >= *least_times) || fail(from, "a malformed repetition");
}

/* Repetitions behind an item, each of which repeats what the ones before it made. Blanks may come before one; line ends
 * too in a group, but outside they end the rule. */
static void parse_repetitions(parser *from, sequence *run, size_t first, bool nested) {
    skip(from, nested);
    while (good(from)) {
        size_t least_times = 0;
        size_t most_times = ANY_NUMBER;
        if (take(from, "+")) {
            least_times = 1;
        } else if (take(from, "?")) {
            most_times = 1;
        } else if (!take(from, "*") && (!take(from, "{") || !parse_bounds(from, &least_times, &most_times))) {
            return;
        }
        if (good(from)) {
            repeat(from, run, first, least_times, most_times);
        }
        skip(from, nested);
    }
}

/* One item with its repetition. False: there is none. */
static bool parse_item(parser *from, sequence *run, bool nested) {
    const size_t first = run->count;
    const size_t length = name_length(from);
    if (take(from, "\"")) {
        parse_literal(from, run);
    } else if (take(from, "[")) {
        parse_class(from, run);
    } else if (take(from, "(")) {
        parse_group(from, run);
    } else if (take(from, ".")) {
        const element any = rules_characters(from->to, NULL, 0, true);
        sequence_add(run, any.kind, any.value);
    } else if (length != 0) {
        sequence_add(run, ELEMENT_RULE, find_rule(from, from->at, length)->number);
        from->at += length;
    } else {
        return false;
    }
    if (good(from)) {
        parse_repetitions(from, run, first, nested);
    }
    return good(from);
}

/* Whether only blank lines and comments are between here and a bar. */
static bool goes_on(parser *from) {
    const char *const here = from->at;
    skip(from, true);
    if (take(from, "|")) {
        skip(from, true);
        return true;
    }
    from->at = here;
    return false;
}

static void parse_choices(parser *from, uint32_t number, bool nested) {
    do {
        sequence run = {NULL, 0, 0};
        while (parse_item(from, &run, nested)) {
        }
        if (good(from)) {
            rules_alternative(from->to, number, &run);
        }
        sequence_free(&run);
    } while (good(from) && goes_on(from));
}

static void parse_rule(parser *from) {
    const size_t length = name_length(from);
    named_rule *name;
    uint32_t number;
    if (length == 0) {
        fail(from, "a rule without a name");
        return;
    }
    name = find_rule(from, from->at, length);
    from->at += length;
    skip(from, false);
    if (name->defined || !take(from, "::=")) {
        fail(from, "a rule that is defined twice or not at all");
        return;
    }
    name->defined = true;
    number = name->number;
    skip(from, true);
    parse_choices(from, number, false);
    skip(from, false);
    if (good(from) && from->at < from->end && *from->at != '\n') {
        fail(from, "something unknown in a rule");
    }
    skip(from, true);
}

bool gbnf_compile(rules *grammar, const char *text, size_t size, uint32_t *root) {
    parser from = {grammar, text, text + size, NULL, 0, 0, {NULL, 0, 0}, NULL, 0};
    bool found = false;
    from.ranges = allocate(MOST_RANGES, sizeof(code_range));
    skip(&from, true);
    while (good(&from) && from.at < from.end) {
        parse_rule(&from);
    }
    for (size_t index = 0; index < from.count && good(&from); index++) {
        if (!from.names[index].defined) {
            fail(&from, "a rule that is used and not defined");
        }
        if (text_is(from.names[index].name, from.names[index].size, "root")) {
            *root = from.names[index].number;
            found = true;
        }
    }
    free(from.names);
    free(from.ranges);
    name_table_free(&from.places);
    if (good(&from) && !found) {
        fail(&from, "no rule named root");
    }
    return good(&from);
}
