/* ---------------------------------------------------------------- values and faults */

/* Bytes that belong to somebody else; never terminated by NUL. */
typedef struct colibri_bytes {
    const char *data;
    size_t size;
} colibri_bytes;

/* What is wrong with a message: the field by its name in the spec ("" when no single field is), the rule, and for an
 * extension key that does not exist the key. */
typedef struct colibri_fault {
    const char *field;
    colibri_rule rule;
    colibri_bytes key;
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
        fault->key = colibri_text("");
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

/* Whether the line has no word: readers skip such lines between messages. */
static inline bool colibri_is_blank(const char *data, size_t size) {
    colibri_line line;
    line.at = data;
    line.end = data + size;
    return colibri_count_words(line) == 0u;
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

/* ---------------------------------------------------------------- reading values */

/* Any bytes but control characters, space and DEL. */
static inline bool colibri_is_word(colibri_bytes word) {
    size_t at;
    for (at = 0u; at < word.size; at++) {
        const unsigned char byte = (unsigned char)word.data[at];
        if (byte <= 0x20u || byte == 0x7fu) {
            return false;
        }
    }
    return word.size != 0u;
}

/* An unsigned decimal. A minus sign before digits is out of range, anything else that is no digit is no number. */
static inline colibri_rule colibri_read_uint(colibri_bytes word, uint64_t low, uint64_t high, uint64_t *value) {
    const size_t start = word.size > 1u && word.data[0] == '-' ? 1u : 0u;
    uint64_t number = 0u;
    bool overflow = false;
    size_t at;
    for (at = start; at < word.size; at++) {
        const char character = word.data[at];
        uint64_t digit;
        if (!colibri_is_digit(character)) {
            return COLIBRI_RULE_WORD;
        }
        digit = (uint64_t)(character - '0');
        overflow = overflow || number > (UINT64_MAX - digit) / 10u;
        number = overflow ? 0u : number * 10u + digit;
    }
    if (word.size == 0u) {
        return COLIBRI_RULE_WORD;
    }
    if (start != 0u || overflow || number < low || number > high) {
        return COLIBRI_RULE_RANGE;
    }
    *value = number;
    return COLIBRI_RULE_NONE;
}

/* An unsigned decimal in low..high; `unreadable` for any other word. */
static inline colibri_rule colibri_read_uint_or(colibri_bytes word, uint64_t low, uint64_t high, uint64_t unreadable, uint64_t *value) {
    if (colibri_read_uint(word, low, high, value) != COLIBRI_RULE_NONE) {
        *value = unreadable;
    }
    return COLIBRI_RULE_NONE;
}

/* The shape of a decimal number; what is beyond 19 significant digits is left to strtod. */
typedef struct colibri_decimal {
    uint64_t digits;
    int exponent;
    bool exact;
    bool negative;
} colibri_decimal;

/* Read [+-]digits[.digits][e[+-]digits] from the whole word; the exponent only if `general`. */
static inline bool colibri_scan_decimal(colibri_bytes word, bool general, colibri_decimal *decimal) {
    size_t at = 0u;
    size_t count = 0u;
    unsigned significant = 0u;
    decimal->digits = 0u;
    decimal->exponent = 0;
    decimal->exact = true;
    decimal->negative = word.size != 0u && word.data[0] == '-';
    if (word.size != 0u && (word.data[0] == '-' || word.data[0] == '+')) {
        at++;
    }
    for (bool after_point = false; at < word.size; at++) {
        const char character = word.data[at];
        if (character == '.' && !after_point) {
            after_point = true;
        } else if (colibri_is_digit(character)) {
            count++;
            if (significant == 0u && character == '0') {
                decimal->exponent -= after_point && decimal->exponent > -10000 ? 1 : 0;
            } else if (significant < 19u) {
                significant++;
                decimal->digits = decimal->digits * 10u + (uint64_t)(character - '0');
                decimal->exponent -= after_point ? 1 : 0;
            } else {
                decimal->exact = false;
            }
        } else {
            break;
        }
    }
    if (count == 0u) {
        return false;
    }
    if (general && at < word.size && (word.data[at] == 'e' || word.data[at] == 'E')) {
        const size_t sign = at + 1u < word.size && (word.data[at + 1u] == '-' || word.data[at + 1u] == '+') ? 1u : 0u;
        const bool down = sign == 1u && word.data[at + 1u] == '-';
        int power = 0;
        at += 1u + sign;
        if (at == word.size) {
            return false;
        }
        for (; at < word.size && colibri_is_digit(word.data[at]); at++) {
            power = power < 10000 ? power * 10 + (word.data[at] - '0') : power;
        }
        decimal->exponent += down ? -power : power;
    }
    return at == word.size;
}

/* The double nearest to the decimal in the word: one exact operation where that is enough, else strtod (which reads
 * LC_NUMERIC; a program that sets it must set it to "C"). */
static inline double colibri_to_double(colibri_bytes word, const colibri_decimal *decimal) {
    static const double powers[23] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                      1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    double value;
    if (decimal->exact && decimal->digits <= (UINT64_C(1) << 53u) && decimal->exponent >= -22 && decimal->exponent <= 22) {
        value = (double)decimal->digits;
        value = decimal->exponent < 0 ? value / powers[-decimal->exponent] : value * powers[decimal->exponent];
        return decimal->negative ? -value : value;
    }
    return strtod(word.data, NULL); /* stops at the separator or line feed after the word */
}

/* A decimal, nan, inf or -inf. */
static inline colibri_rule colibri_read_real(colibri_bytes word, double *value) {
    colibri_decimal decimal;
    if (colibri_scan_decimal(word, false, &decimal)) {
        *value = colibri_to_double(word, &decimal);
        return COLIBRI_RULE_NONE;
    }
    if (colibri_word_is(word, "nan")) {
        *value = (double)NAN;
    } else if (colibri_word_is(word, "inf")) {
        *value = HUGE_VAL;
    } else if (colibri_word_is(word, "-inf")) {
        *value = -HUGE_VAL;
    } else {
        return COLIBRI_RULE_WORD;
    }
    return COLIBRI_RULE_NONE;
}

/* A finite decimal. */
static inline colibri_rule colibri_read_finite(colibri_bytes word, double *value) {
    const colibri_rule rule = colibri_read_real(word, value);
    return rule == COLIBRI_RULE_NONE && !isfinite(*value) ? COLIBRI_RULE_RANGE : rule;
}

/* A decimal, possibly with an exponent, in low..high. */
static inline colibri_rule colibri_read_ranged(colibri_bytes word, double low, double high, double *value) {
    colibri_decimal decimal;
    if (!colibri_scan_decimal(word, true, &decimal)) {
        const bool known = colibri_word_is(word, "nan") || colibri_word_is(word, "inf") || colibri_word_is(word, "-inf");
        return known ? COLIBRI_RULE_RANGE : COLIBRI_RULE_WORD;
    }
    *value = colibri_to_double(word, &decimal);
    return *value >= low && *value <= high ? COLIBRI_RULE_NONE : COLIBRI_RULE_RANGE;
}

/* Split an extension word key=value; false when it is none. */
static inline bool colibri_split_key(colibri_bytes word, size_t longest, colibri_bytes *key, colibri_bytes *value) {
    size_t at = 0u;
    while (at < word.size && ((word.data[at] >= 'a' && word.data[at] <= 'z') || word.data[at] == '_')) {
        at++;
    }
    if (at == 0u || at > longest || at == word.size || word.data[at] != '=') {
        return false;
    }
    key->data = word.data;
    key->size = at;
    value->data = word.data + at + 1u;
    value->size = word.size - at - 1u;
    return true;
}

/* The value of an extension key: at most `digits` digits, in low..high. */
static inline colibri_rule colibri_read_key(colibri_bytes value, size_t digits, uint64_t low, uint64_t high, uint64_t *number) {
    size_t at = 0u;
    while (at < value.size && colibri_is_digit(value.data[at])) {
        at++;
    }
    if (at == value.size && at > digits) {
        return COLIBRI_RULE_RANGE;
    }
    return colibri_read_uint(value, low, high, number);
}
