#include "pattern.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "unicode.h"
#include "utf8.h"

#define NO_MATCH SIZE_MAX
#define GROUP_DEPTH 32u

// A set of characters: ranges, categories and named sets, perhaps negated.
typedef struct range {
    uint32_t first;
    uint32_t last;
} range;

typedef struct character_set {
    bool negated;
    bool fold; // compare without case
    bool space;
    bool not_space;
    bool word;
    bool not_word;
    category_set inside;
    category_set outside; // a character of none of these categories belongs to the set
    range *ranges;
    size_t count;
} character_set;

// A step of the compiled pattern; it goes on with `next`.
typedef enum operation { REPEAT, EITHER, EMPTY, AHEAD, NOT_AHEAD, ACCEPT } operation;

typedef struct step {
    operation what;
    size_t next;
    size_t other; // EITHER: second choice; lookahead: what must match
    character_set set;
    size_t least;
    size_t most;
    bool possessive;
} step;

struct pattern {
    step *steps;
    size_t count;
    size_t start;
};

typedef struct compiler {
    const char *at;
    const char *end;
    const char *fault;
    pattern *to;
    bool fold;
    unsigned depth;
} compiler;

static size_t fail(compiler *from, const char *fault) {
    if (from->fault == NULL) {
        from->fault = fault;
    }
    return 0;
}

static size_t add(compiler *from, operation what, size_t next) {
    pattern *const to = from->to;
    to->steps = reallocate(to->steps, to->count + 1u, sizeof(step));
    memset(&to->steps[to->count], 0, sizeof(step));
    to->steps[to->count].what = what;
    to->steps[to->count].next = next;
    return to->count++;
}

static void add_range(character_set *set, uint32_t first, uint32_t last) {
    set->ranges = reallocate(set->ranges, set->count + 1u, sizeof(range));
    set->ranges[set->count++] = (range){first, last};
}

static bool peek(const compiler *from, const char *text) {
    const size_t size = strlen(text);
    return (size_t)(from->end - from->at) >= size && memcmp(from->at, text, size) == 0;
}

static bool take(compiler *from, const char *text) {
    const bool there = peek(from, text);
    from->at += there ? strlen(text) : 0;
    return there;
}

static uint32_t take_character(compiler *from) {
    uint32_t character = 0;
    const size_t length = utf8_read(from->at, (size_t)(from->end - from->at), &character);
    if (length == 0) {
        fail(from, "unfinished pattern");
        from->at = from->end;
    }
    from->at += length;
    return character;
}

static void read_property(compiler *from, character_set *set, bool outside) {
    const char *closing;
    category_set found;
    if (!take(from, "{")) {
        fail(from, "a property without braces");
        return;
    }
    closing = memchr(from->at, '}', (size_t)(from->end - from->at));
    if (closing == NULL) {
        fail(from, "a property without end");
        return;
    }
    if (*from->at == '^') {
        from->at++;
        outside = !outside;
    }
    found = unicode_property(from->at, (size_t)(closing - from->at));
    if (found == 0) {
        fail(from, "an unknown property");
    }
    from->at = closing + 1;
    if (!outside) {
        set->inside |= found;
    } else if (set->outside != 0) {
        fail(from, "two negated properties in one class");
    } else {
        set->outside = found;
    }
}

/* What follows a backslash. Returns a character, or UINT32_MAX when it was a set and went into `set`. */
static uint32_t read_escape(compiler *from, character_set *set) {
    static const char names[] = "nrtvf";
    static const char meanings[] = "\n\r\t\v\f";
    const uint32_t character = take_character(from);
    const char *name = character != 0 && character < 0x80u ? strchr(names, (int)character) : NULL;
    if (name != NULL) {
        return (uint32_t)meanings[name - names];
    }
    switch (character) {
    case 's':
        set->space = true;
        return UINT32_MAX;
    case 'S':
        set->not_space = true;
        return UINT32_MAX;
    case 'w':
        set->word = true;
        return UINT32_MAX;
    case 'W':
        set->not_word = true;
        return UINT32_MAX;
    case 'd':
        set->inside |= unicode_property("Nd", 2);
        return UINT32_MAX;
    case 'D':
        set->outside = unicode_property("Nd", 2);
        return UINT32_MAX;
    case 'p':
    case 'P':
        read_property(from, set, character == 'P');
        return UINT32_MAX;
    default:
        if ((character >= '0' && character <= '9') || (character >= 'a' && character <= 'z') ||
            (character >= 'A' && character <= 'Z')) {
            fail(from, "an unknown escape");
        }
        return character;
    }
}

static void read_class(compiler *from, character_set *set) {
    bool first = true;
    set->negated = take(from, "^");
    while (from->fault == NULL && (first || !take(from, "]"))) {
        uint32_t low;
        uint32_t high;
        first = false;
        if (from->at == from->end || peek(from, "[") || peek(from, "&&")) {
            fail(from, "a class within a class, or without end");
            return;
        }
        low = take(from, "\\") ? read_escape(from, set) : take_character(from);
        if (low == UINT32_MAX) {
            continue;
        }
        high = low;
        if (peek(from, "-") && !peek(from, "-]")) {
            from->at++;
            high = take(from, "\\") ? read_escape(from, set) : take_character(from);
        }
        if (high < low || high == UINT32_MAX) {
            fail(from, "a range that ends before it begins");
            return;
        }
        add_range(set, low, high);
    }
}

/* A single character, class or dot. */
static character_set read_atom(compiler *from) {
    character_set set;
    memset(&set, 0, sizeof set);
    set.fold = from->fold;
    if (take(from, "[")) {
        read_class(from, &set);
    } else if (take(from, ".")) {
        set.negated = true;
        add_range(&set, '\n', '\n');
    } else {
        uint32_t character;
        if (strchr("?*+{}^$", *from->at) != NULL) {
            fail(from, "a special character out of place");
        }
        character = take(from, "\\") ? read_escape(from, &set) : take_character(from);
        if (character != UINT32_MAX) {
            add_range(&set, from->fold ? unicode_fold(character) : character,
                      from->fold ? unicode_fold(character) : character);
        }
    }
    return set;
}

static size_t read_bound(compiler *from) {
    size_t value = 0;
    if (from->at == from->end || *from->at < '0' || *from->at > '9') {
        return fail(from, "a malformed quantifier");
    }
    while (from->at < from->end && *from->at >= '0' && *from->at <= '9' && value < 100000u) {
        value = value * 10u + (size_t)(*from->at++ - '0');
    }
    return value;
}

/* The quantifier behind an atom, if there is one. */
static void read_quantifier(compiler *from, step *atom) {
    atom->least = 1;
    atom->most = 1;
    if (take(from, "?")) {
        atom->least = 0;
    } else if (take(from, "*")) {
        atom->least = 0;
        atom->most = SIZE_MAX;
    } else if (take(from, "+")) {
        atom->most = SIZE_MAX;
    } else if (take(from, "{")) {
        atom->least = read_bound(from);
        atom->most = atom->least;
        if (take(from, ",")) {
            atom->most = peek(from, "}") ? SIZE_MAX : read_bound(from);
        }
        if (!take(from, "}") || atom->most < atom->least) {
            fail(from, "a malformed quantifier");
        }
    } else {
        return;
    }
    if (take(from, "?")) {
        fail(from, "a lazy quantifier");
    }
    atom->possessive = take(from, "+");
}

static size_t read_choices(compiler *from, size_t next);

/* A group whose opening parenthesis is read. */
static size_t read_group(compiler *from, size_t next) {
    const bool outer_fold = from->fold;
    operation what = EMPTY;
    size_t inside;
    size_t last;
    if (take(from, "?=")) {
        what = AHEAD;
    } else if (take(from, "?!")) {
        what = NOT_AHEAD;
    } else if (take(from, "?i:")) {
        from->fold = true;
    } else if (!take(from, "?:") && peek(from, "?")) {
        return fail(from, "a group of an unknown kind");
    }
    if (from->depth == GROUP_DEPTH) {
        return fail(from, "groups nested too deeply");
    }
    from->depth++;
    last = what == EMPTY ? next : add(from, ACCEPT, 0);
    inside = read_choices(from, last);
    from->depth--;
    from->fold = outer_fold;
    if (!take(from, ")")) {
        return fail(from, "a group without end");
    }
    if (what != EMPTY) {
        const size_t look = add(from, what, next);
        from->to->steps[look].other = inside;
        inside = look;
    } else if (take(from, "?")) {
        const size_t choice = add(from, EITHER, inside);
        from->to->steps[choice].other = next;
        inside = choice;
    }
    if (from->at < from->end && strchr("?*+{", *from->at) != NULL) {
        return fail(from, "a repeated group");
    }
    return inside;
}

/* A run of atoms and groups that goes on with `next`. Steps are made back to front, so the pieces are found first. */
static size_t read_sequence(compiler *from, size_t next) {
    const size_t first = add(from, EMPTY, next);
    size_t open = first; // the step whose successor is still to come
    while (from->fault == NULL && from->at < from->end && !peek(from, "|") && !peek(from, ")")) {
        size_t piece;
        const size_t join = add(from, EMPTY, next);
        if (take(from, "(")) {
            piece = read_group(from, join);
        } else {
            const character_set set = read_atom(from);
            piece = add(from, REPEAT, join);
            from->to->steps[piece].set = set;
            read_quantifier(from, &from->to->steps[piece]);
        }
        from->to->steps[open].next = piece;
        open = join;
    }
    return first;
}

static size_t read_choices(compiler *from, size_t next) {
    const size_t first = read_sequence(from, next);
    size_t choice;
    if (from->fault != NULL || !take(from, "|")) {
        return first;
    }
    choice = add(from, EITHER, first);
    {
        const size_t other = read_choices(from, next);
        from->to->steps[choice].other = other;
    }
    return choice;
}

pattern *pattern_compile(const char *source, size_t size, const char **fault) {
    compiler from = {source, source + size, NULL, allocate(1, sizeof(pattern)), false, 0};
    const size_t accept = add(&from, ACCEPT, 0);
    from.to->start = read_choices(&from, accept);
    if (from.fault == NULL && from.at != from.end) {
        fail(&from, "a parenthesis too many");
    }
    *fault = from.fault;
    if (from.fault != NULL) {
        pattern_free(from.to);
        return NULL;
    }
    return from.to;
}

void pattern_free(pattern *compiled) {
    for (size_t index = 0; compiled != NULL && index < compiled->count; index++) {
        free(compiled->steps[index].set.ranges);
    }
    if (compiled != NULL) {
        free(compiled->steps);
        free(compiled);
    }
}

// ---------------------------------------------------------------- matching

static bool contains(const character_set *set, uint32_t character) {
    bool found = (set->space && unicode_is_space(character)) || (set->not_space && !unicode_is_space(character)) ||
                 (set->word && unicode_is_word(character)) || (set->not_word && !unicode_is_word(character)) ||
                 (set->inside != 0 && unicode_in(character, set->inside)) ||
                 (set->outside != 0 && !unicode_in(character, set->outside));
    const uint32_t folded = set->fold ? unicode_fold(character) : character;
    for (size_t index = 0; index < set->count && !found; index++) {
        found = folded >= set->ranges[index].first && folded <= set->ranges[index].last;
    }
    return found != set->negated;
}

static size_t match(const pattern *compiled, size_t index, const char *text, size_t size, size_t at);

/* As many characters of the set as there are, then fewer and fewer until the rest matches. */
static size_t match_repeat(const pattern *compiled, const step *now, const char *text, size_t size, size_t at) {
    size_t count = 0;
    size_t place = at;
    while (count < now->most) {
        uint32_t character;
        const size_t length = utf8_read(text + place, size - place, &character);
        if (length == 0 || !contains(&now->set, character)) {
            break;
        }
        place += length;
        count++;
    }
    for (;;) {
        size_t end;
        if (count < now->least) {
            return NO_MATCH;
        }
        end = match(compiled, now->next, text, size, place);
        if (end != NO_MATCH || count == now->least || now->possessive) {
            return end;
        }
        do {
            place--;
        } while (((unsigned char)text[place] & 0xc0u) == 0x80u);
        count--;
    }
}

static size_t match(const pattern *compiled, size_t index, const char *text, size_t size, size_t at) {
    for (;;) {
        const step *const now = &compiled->steps[index];
        size_t end;
        switch (now->what) {
        case ACCEPT:
            return at;
        case REPEAT:
            return match_repeat(compiled, now, text, size, at);
        case EITHER:
            end = match(compiled, now->next, text, size, at);
            if (end != NO_MATCH) {
                return end;
            }
            index = now->other;
            break;
        case AHEAD:
        case NOT_AHEAD:
            end = match(compiled, now->other, text, size, at);
            if ((end != NO_MATCH) != (now->what == AHEAD)) {
                return NO_MATCH;
            }
            index = now->next;
            break;
        case EMPTY:
        default:
            index = now->next;
            break;
        }
    }
}

bool pattern_find(const pattern *compiled, const char *text, size_t size, size_t start, size_t *first, size_t *end) {
    uint32_t character;
    while (start < size) {
        const size_t found = match(compiled, compiled->start, text, size, start);
        if (found != NO_MATCH && found != start) {
            *first = start;
            *end = found;
            return true;
        }
        start += utf8_read(text + start, size - start, &character);
    }
    return false;
}
