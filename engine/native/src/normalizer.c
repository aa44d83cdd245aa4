#include "normalizer.h"

#include <stdlib.h>
#include <string.h>

#include "unicode_normal.h"
#include "utf8.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

// Hangul: syllables are leading consonant, vowel and perhaps trailing consonant by arithmetic.
#define SYLLABLE 0xac00u
#define LEADING 0x1100u
#define VOWEL 0x1161u
#define TRAILING 0x11a7u
#define LEADINGS 19u
#define VOWELS 21u
#define TRAILINGS 28u
#define SYLLABLES (LEADINGS * VOWELS * TRAILINGS)

// Characters with their combining classes.
typedef struct code_list {
    uint32_t *codes;
    uint8_t *classes;
    size_t count;
    size_t room;
} code_list;

static int by_pair(const void *left, const void *right) {
    const composition *const one = left;
    const composition *const other = right;
    if (one->first != other->first) {
        return one->first < other->first ? -1 : 1;
    }
    return one->second < other->second ? -1 : one->second > other->second;
}

static bool is_composition(const json_value *description) {
    const json_value *type = json_member(description, "type");
    const json_value *parts = json_member(description, "normalizers");
    return json_is(type, "NFC") || (json_is(type, "Sequence") && parts != NULL && parts->count == 1 &&
                                    json_is(json_member(parts->first, "type"), "NFC"));
}

void normalizer_load(normalizer *to, const json_value *description, const char *path) {
    memset(to, 0, sizeof *to);
    if (description == NULL || description->kind == JSON_NULL) {
        return;
    }
    if (!is_composition(description)) {
        char text[128];
        refuse_launch("%s: the normalizer %s is not supported (supported: NFC)", path,
                      json_describe(json_member(description, "type"), text, sizeof text));
    }
    to->composes = true;
    to->pairs = allocate(LENGTH(pair_decompositions) / 3u, sizeof(composition));
    for (size_t at = 0; at < LENGTH(pair_decompositions); at += 3) {
        if ((pair_decompositions[at] & PAIR_ONE_WAY) == 0) {
            to->pairs[to->count++] =
                (composition){pair_decompositions[at + 1u], pair_decompositions[at + 2u], pair_decompositions[at]};
        }
    }
    qsort(to->pairs, to->count, sizeof(composition), by_pair);
}

void normalizer_free(normalizer *from) {
    free(from->pairs);
    memset(from, 0, sizeof *from);
}

static uint8_t combining_class(uint32_t code) {
    size_t low = 0;
    size_t high = LENGTH(combining_runs);
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2u;
        if (combining_runs[middle] >> 8u <= code) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return (uint8_t)(combining_runs[low] & 0xffu);
}

/* Place of a code point in a table of rows of `width`, or NULL. */
static const uint32_t *find_row(const uint32_t *table, size_t length, size_t width, uint32_t code) {
    size_t low = 0;
    size_t high = length / width;
    while (low < high) {
        const size_t middle = low + (high - low) / 2u;
        const uint32_t found = table[middle * width] & ~PAIR_ONE_WAY;
        if (found == code) {
            return table + middle * width;
        }
        if (found < code) {
            low = middle + 1u;
        } else {
            high = middle;
        }
    }
    return NULL;
}

/* Puts a character behind the others, before those of a higher combining class. */
static void add_code(code_list *list, uint32_t code) {
    const uint8_t class = combining_class(code);
    size_t at = list->count;
    if (list->count == list->room) {
        list->room = most(256, 2u * list->room);
        list->codes = reallocate(list->codes, list->room, sizeof(uint32_t));
        list->classes = reallocate(list->classes, list->room, 1);
    }
    while (class != 0 && at > 0 && list->classes[at - 1u] > class) {
        list->codes[at] = list->codes[at - 1u];
        list->classes[at] = list->classes[at - 1u];
        at--;
    }
    list->codes[at] = code;
    list->classes[at] = class;
    list->count++;
}

static void decompose(code_list *list, uint32_t code) {
    const uint32_t *row;
    if (code >= SYLLABLE && code < SYLLABLE + SYLLABLES) {
        const uint32_t index = code - SYLLABLE;
        add_code(list, LEADING + index / (VOWELS * TRAILINGS));
        add_code(list, VOWEL + index % (VOWELS * TRAILINGS) / TRAILINGS);
        if (index % TRAILINGS != 0) {
            add_code(list, TRAILING + index % TRAILINGS);
        }
        return;
    }
    row = find_row(single_decompositions, LENGTH(single_decompositions), 2, code);
    if (row != NULL) {
        decompose(list, row[1]);
        return;
    }
    row = find_row(pair_decompositions, LENGTH(pair_decompositions), 3, code);
    if (row != NULL) {
        decompose(list, row[1]); // only the first ones decompose further
        add_code(list, row[2]);
        return;
    }
    add_code(list, code);
}

/* What two characters compose to; 0: nothing. */
static uint32_t compose(const normalizer *from, uint32_t first, uint32_t second) {
    const composition wanted = {first, second, 0};
    const composition *found;
    if (first - LEADING < LEADINGS && second - VOWEL < VOWELS) {
        return SYLLABLE + ((first - LEADING) * VOWELS + (second - VOWEL)) * TRAILINGS;
    }
    if (first - SYLLABLE < SYLLABLES && (first - SYLLABLE) % TRAILINGS == 0 && second > TRAILING &&
        second < TRAILING + TRAILINGS) {
        return first + (second - TRAILING);
    }
    found = bsearch(&wanted, from->pairs, from->count, sizeof(composition), by_pair);
    return found == NULL ? 0 : found->composed;
}

/* Composes in place: each character with the last starter before it, unless one of its class or above stands between. */
static void compose_all(const normalizer *from, code_list *list) {
    size_t kept = 0;
    size_t starter = SIZE_MAX;
    for (size_t at = 0; at < list->count; at++) {
        const uint8_t class = list->classes[at];
        const bool blocked = starter != SIZE_MAX && kept > starter + 1u &&
                             (list->classes[kept - 1u] >= class || list->classes[kept - 1u] == 0);
        const uint32_t composed =
            starter == SIZE_MAX || blocked ? 0 : compose(from, list->codes[starter], list->codes[at]);
        if (composed != 0) {
            list->codes[starter] = composed;
            continue;
        }
        list->codes[kept] = list->codes[at];
        list->classes[kept] = class;
        if (class == 0) {
            starter = kept;
        }
        kept++;
    }
    list->count = kept;
}

/* Whether composing cannot change a character, whatever stands around it. Below U+0300 everything is composed. */
static bool is_plain(uint32_t code) {
    if (code < 0x300u || (code >= 0x3400u && code < 0xa000u) || (code >= SYLLABLE && code < SYLLABLE + SYLLABLES)) {
        return true;
    }
    return false;
}

bool normalizer_run(const normalizer *from, const char *text, size_t size, buffer *to) {
    code_list list = {NULL, NULL, 0, 0};
    bool plain = true;
    uint32_t code;
    for (size_t at = 0; at < size && plain && from->composes;) {
        at += utf8_read(text + at, size - at, &code);
        plain = is_plain(code);
    }
    if (plain) {
        return false;
    }
    for (size_t at = 0; at < size;) {
        at += utf8_read(text + at, size - at, &code);
        decompose(&list, code);
    }
    compose_all(from, &list);
    for (size_t index = 0; index < list.count; index++) {
        to->size += utf8_write(buffer_reserve(to, 4), list.codes[index]);
    }
    free(list.codes);
    free(list.classes);
    return true;
}
