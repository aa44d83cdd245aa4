#include "unicode.h"

#include <string.h>

#include "base.h"
#include "unicode_table.h"

static const char *const category_names[] = {"Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl",
                                             "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc",
                                             "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co", "Cn"};
#define CATEGORY_COUNT (sizeof category_names / sizeof category_names[0])
#define BIT(category) (UINT32_C(1) << (category))
#define NUMBERS (BIT(UNICODE_ND) | BIT(UNICODE_NL) | BIT(UNICODE_NO))
#define WORDS                                                                                                          \
    (BIT(UNICODE_LU) | BIT(UNICODE_LL) | BIT(UNICODE_LT) | BIT(UNICODE_LM) | BIT(UNICODE_LO) | BIT(UNICODE_MN) |       \
     BIT(UNICODE_MC) | BIT(UNICODE_ME) | NUMBERS | BIT(UNICODE_PC))

category_set unicode_property(const char *name, size_t size) {
    category_set found = 0;
    for (size_t index = 0; index < CATEGORY_COUNT; index++) {
        if ((size == 1 || size == 2) && memcmp(category_names[index], name, size) == 0) {
            found |= BIT(index);
        }
    }
    return found;
}

static unsigned category_of(uint32_t character) {
    size_t low = 0;
    size_t high = sizeof unicode_runs / sizeof unicode_runs[0];
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2u;
        if (unicode_runs[middle] >> 5u <= character) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return unicode_runs[low] & 31u;
}

bool unicode_in(uint32_t character, category_set categories) {
    return (BIT(category_of(character)) & categories) != 0;
}

bool unicode_is_number(uint32_t character) {
    return character < 0x80u ? character - '0' < 10u : unicode_in(character, NUMBERS);
}

bool unicode_is_space(uint32_t character) {
    if (character < 0x80u) {
        return character == ' ' || (character >= 9u && character <= 13u);
    }
    return character == 0x85u || character == 0xa0u || character == 0x1680u ||
           (character >= 0x2000u && character <= 0x200au) || character == 0x2028u || character == 0x2029u ||
           character == 0x202fu || character == 0x205fu || character == 0x3000u;
}

bool unicode_is_word(uint32_t character) { return unicode_in(character, WORDS); }

uint32_t unicode_fold(uint32_t character) {
    if (character >= 'A' && character <= 'Z') {
        return character + ('a' - 'A');
    }
    if (character == 0x17fu) { // long s
        return 's';
    }
    return character == 0x212au ? 'k' : character; // Kelvin sign
}
