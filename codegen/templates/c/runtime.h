/* ---------------------------------------------------------------- values and faults */

/* Bytes that belong to somebody else; never terminated by NUL. */
typedef struct colibri_bytes {
    const char *data;
    size_t size;
} colibri_bytes;

/* What is wrong with a message: the field by its name in the spec ("" when no single field is), and the rule. */
typedef struct colibri_fault {
    const char *field;
    colibri_rule rule;
} colibri_fault;

static inline colibri_bytes colibri_text(const char *text) {
    colibri_bytes bytes;
    bytes.data = text;
    bytes.size = strlen(text);
    return bytes;
}

static inline bool colibri_fail(colibri_fault *fault, const char *field, colibri_rule rule) {
    if (fault != NULL) {
        fault->field = field;
        fault->rule = rule;
    }
    return false;
}

/* ---------------------------------------------------------------- writing */

/* The end of what is written so far. Every writer checks once that its longest form fits, then writes unchecked. */
typedef struct colibri_out {
    char *at;
} colibri_out;

static inline void colibri_put_char(colibri_out *out, char character) { *out->at++ = character; }

static inline void colibri_put_bytes(colibri_out *out, const char *data, size_t size) {
    if (size != 0) {
        memcpy(out->at, data, size);
        out->at += size;
    }
}

static const char colibri_digit_pairs[201] =
    "0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849"
    "5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";

/* Decimal digits of value; at most 20 bytes. */
static inline void colibri_put_uint(colibri_out *out, uint64_t value) {
    char digits[20];
    size_t at = sizeof digits;
    while (value >= 100u) {
        const size_t pair = (size_t)(value % 100u) * 2u;
        value /= 100u;
        digits[--at] = colibri_digit_pairs[pair + 1u];
        digits[--at] = colibri_digit_pairs[pair];
    }
    if (value >= 10u) {
        const size_t pair = (size_t)value * 2u;
        digits[--at] = colibri_digit_pairs[pair + 1u];
        digits[--at] = colibri_digit_pairs[pair];
    } else {
        digits[--at] = (char)('0' + (int)value);
    }
    colibri_put_bytes(out, digits + at, sizeof digits - at);
}

/* Exactly `places` decimal digits of value, zero padded on the left. */
static inline void colibri_put_padded(colibri_out *out, uint64_t value, unsigned places) {
    char *const start = out->at;
    unsigned at = places;
    while (at > 0u) {
        start[--at] = (char)('0' + (int)(value % 10u));
        value /= 10u;
    }
    out->at = start + places;
}

/* The longest output of colibri_put_fixed: sign, 309 digits, point, 9 decimals. */
#define COLIBRI_FIXED_BYTES 320u

/* An integer of 2^53 and above, written exactly: significand * 2^exponent with exponent in 1..971. */
static inline void colibri_put_large(colibri_out *out, uint64_t significand, unsigned exponent) {
    uint32_t limbs[34] = {0};
    uint32_t groups[36];
    const unsigned first = exponent / 32u;
    const unsigned shift = exponent % 32u;
    const uint64_t low = (significand & UINT64_C(0xffffffff)) << shift;
    const uint64_t high = (significand >> 32u) << shift;
    unsigned top = first + 3u;
    unsigned count = 0u;
    uint64_t carry;
    limbs[first] = (uint32_t)(low & UINT64_C(0xffffffff));
    carry = (low >> 32u) + (high & UINT64_C(0xffffffff));
    limbs[first + 1u] = (uint32_t)(carry & UINT64_C(0xffffffff));
    limbs[first + 2u] = (uint32_t)((high >> 32u) + (carry >> 32u));
    while (top > 0u && limbs[top - 1u] == 0u) {
        top--;
    }
    while (top > 0u) {
        uint64_t remainder = 0u;
        unsigned at = top;
        while (at > 0u) {
            at--;
            remainder = (remainder << 32u) | limbs[at];
            limbs[at] = (uint32_t)(remainder / UINT64_C(1000000000));
            remainder %= UINT64_C(1000000000);
        }
        groups[count++] = (uint32_t)remainder;
        while (top > 0u && limbs[top - 1u] == 0u) {
            top--;
        }
    }
    colibri_put_uint(out, groups[count - 1u]);
    while (--count > 0u) {
        colibri_put_padded(out, groups[count - 1u], 9u);
    }
}

/* value with exactly `decimals` (0..9) digits after the point: the bytes of printf("%.*f"), rounded half to even on
 * the exact binary value, whatever the locale; nan, inf and -inf are spelled so. At most COLIBRI_FIXED_BYTES bytes. */
static inline void colibri_put_fixed(colibri_out *out, double value, unsigned decimals) {
    static const uint64_t powers[10] = {UINT64_C(1),         UINT64_C(10),        UINT64_C(100),     UINT64_C(1000),
                                        UINT64_C(10000),     UINT64_C(100000),    UINT64_C(1000000), UINT64_C(10000000),
                                        UINT64_C(100000000), UINT64_C(1000000000)};
    uint64_t bits;
    uint64_t significand;
    uint64_t whole;
    uint64_t fraction = 0u;
    unsigned exponent;
    memcpy(&bits, &value, sizeof bits);
    exponent = (unsigned)(bits >> 52u) & 0x7ffu;
    significand = bits & UINT64_C(0xfffffffffffff);
    if (exponent == 0x7ffu && significand != 0u) {
        colibri_put_bytes(out, "nan", 3u);
        return;
    }
    if ((bits >> 63u) != 0u) {
        colibri_put_char(out, '-');
    }
    if (exponent == 0x7ffu) {
        colibri_put_bytes(out, "inf", 3u);
        return;
    }
    if (exponent == 0u) {
        exponent = 1u;
    } else {
        significand |= UINT64_C(1) << 52u;
    }
    if (exponent > 1075u) {
        colibri_put_large(out, significand, exponent - 1075u);
    } else {
        const unsigned shift = 1075u - exponent; /* value = significand / 2^shift */
        whole = shift < 64u ? significand >> shift : 0u;
        if (shift != 0u && shift < 128u) {
            /* fraction * 10^decimals < 2^53 * 2^30, so two 64-bit halves hold it */
            const uint64_t part = shift < 64u ? significand & ((UINT64_C(1) << shift) - 1u) : significand;
            const uint64_t low = (part & UINT64_C(0xffffffff)) * powers[decimals];
            const uint64_t middle = (part >> 32u) * powers[decimals] + (low >> 32u);
            const uint64_t product_low = (middle << 32u) | (low & UINT64_C(0xffffffff));
            const uint64_t product_high = middle >> 32u;
            uint64_t rest_high;
            uint64_t rest_low;
            uint64_t half_high;
            uint64_t half_low;
            if (shift < 64u) {
                fraction = (product_low >> shift) | (product_high << (64u - shift));
                rest_high = 0u;
                rest_low = product_low & ((UINT64_C(1) << shift) - 1u);
            } else if (shift == 64u) {
                fraction = product_high;
                rest_high = 0u;
                rest_low = product_low;
            } else {
                fraction = product_high >> (shift - 64u);
                rest_high = product_high & ((UINT64_C(1) << (shift - 64u)) - 1u);
                rest_low = product_low;
            }
            half_high = shift > 64u ? UINT64_C(1) << (shift - 65u) : 0u;
            half_low = shift > 64u ? 0u : UINT64_C(1) << (shift - 1u);
            if (rest_high > half_high || (rest_high == half_high && rest_low > half_low)) {
                fraction++;
            } else if (rest_high == half_high && rest_low == half_low) {
                fraction += decimals == 0u ? whole & 1u : fraction & 1u;
            }
            if (fraction == powers[decimals] && (decimals != 0u || fraction != 0u)) {
                fraction = 0u;
                whole++;
            }
        }
        colibri_put_uint(out, whole);
    }
    if (decimals != 0u) {
        colibri_put_char(out, '.');
        colibri_put_padded(out, fraction, decimals);
    }
}

/* ---------------------------------------------------------------- reading words */

/* A header line, and the place in it. */
typedef struct colibri_line {
    const char *at;
    const char *end;
} colibri_line;

static inline bool colibri_is_separator(char character) { return character == ' ' || character == '\t'; }

/* The next word of the line; false at its end. */
static inline bool colibri_next_word(colibri_line *line, colibri_bytes *word) {
    while (line->at != line->end && colibri_is_separator(*line->at)) {
        line->at++;
    }
    word->data = line->at;
    while (line->at != line->end && !colibri_is_separator(*line->at)) {
        line->at++;
    }
    word->size = (size_t)(line->at - word->data);
    return word->size != 0u;
}

static inline size_t colibri_count_words(colibri_line line) {
    size_t count = 0u;
    colibri_bytes word;
    while (colibri_next_word(&line, &word)) {
        count++;
    }
    return count;
}

/* What is left of the line, without the separators around it. */
static inline colibri_bytes colibri_rest(const colibri_line *line) {
    colibri_bytes rest;
    const char *start = line->at;
    const char *end = line->end;
    while (start != end && colibri_is_separator(*start)) {
        start++;
    }
    while (end != start && colibri_is_separator(end[-1])) {
        end--;
    }
    rest.data = start;
    rest.size = (size_t)(end - start);
    return rest;
}

static inline bool colibri_word_is(colibri_bytes word, const char *text) {
    return word.size == strlen(text) && memcmp(word.data, text, word.size) == 0;
}

static inline bool colibri_is_digit(char character) { return character >= '0' && character <= '9'; }

static inline int colibri_hex_digit(char character) {
    if (colibri_is_digit(character)) {
        return character - '0';
    }
    if (character >= 'a' && character <= 'f') {
        return character - 'a' + 10;
    }
    return character >= 'A' && character <= 'F' ? character - 'A' + 10 : -1;
}

/* Pairs of hexadecimal digits, at least one. */
static inline bool colibri_is_hex(colibri_bytes word) {
    size_t at;
    if (word.size == 0u || word.size % 2u != 0u) {
        return false;
    }
    for (at = 0u; at < word.size; at++) {
        if (colibri_hex_digit(word.data[at]) < 0) {
            return false;
        }
    }
    return true;
}

/* Free text for the rest of a line: no line feed, and at least `least` words. */
static inline bool colibri_is_text(colibri_bytes text, size_t least) {
    colibri_line line;
    line.at = text.data;
    line.end = text.size == 0u ? text.data : text.data + text.size;
    if (text.size != 0u && memchr(text.data, '\n', text.size) != NULL) {
        return false;
    }
    return colibri_count_words(line) >= least;
}

static inline size_t colibri_refuse(colibri_fault *fault, const char *field) {
    (void)colibri_fail(fault, field, COLIBRI_RULE_RANGE);
    return 0u;
}

/* Bytes of a number beyond the room that every number has: large ones are written in full. */
static inline size_t colibri_extra_room(double value) {
    return value < 9007199254740992.0 && value > -9007199254740992.0 ? 0u : (size_t)COLIBRI_FIXED_BYTES;
}
