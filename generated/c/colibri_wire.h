// Generated from spec/protocol.yaml (target c, template c/colibri_wire.h.j2). Do not edit.
// Regenerate with: python -m codegen generate
//
// The engine's side of the serve protocol, header only: emit every frame, read every command. Nothing here allocates,
// locks, does input or output, or keeps state; all text is ASCII. Define COLIBRI_GATEWAY_SIDE before including it to
// get the other direction too (write commands, read frames).
//
//   * A writer takes a struct and room for the message, and returns the bytes it wrote. 0 means that a value is out of
//     its range (the fault says which field) or that the room is too small (rule `none`).
//   * A reader takes one header line without its line feed. It says how many payload bytes follow even when it refuses
//     the message: skip those and the line feed after them, answer ERROR, and the stream is still in step.
//   * A reader's structs point into the line; keep the line until they are used.

#ifndef COLIBRI_WIRE_H
#define COLIBRI_WIRE_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef COLIBRI_GATEWAY_SIDE
#include <stdio.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define COLIBRI_VERSION "1.1.0"
#define COLIBRI_FINGERPRINT_BASE "63c919f9d1b2c4b3e86fb1113966a2a579adcc4988890fabe5757ddce11ea7ce"
#define COLIBRI_FINGERPRINT_FULL "feec7e39b7b2b60ba4387a075c9808acb673accb3ea28e3559f3f284b60d96d2"

/* ---------------------------------------------------------------- limits */

/* Largest payload of one frame. Checked before the payload is read. (bytes) */
#define COLIBRI_LIMIT_PAYLOAD_BYTES 65536u
/* Longest header line of a frame; the expert map of a large model is the longest in use. (bytes) */
#define COLIBRI_LIMIT_FRAME_LINE_BYTES 1048576u
/* Longest header line of a command. (bytes) */
#define COLIBRI_LIMIT_COMMAND_LINE_BYTES 4096u
/* Largest prompt of one request. (bytes) */
#define COLIBRI_LIMIT_PROMPT_BYTES 16777216u
/* Largest grammar text: raw GBNF or a JSON Schema. (bytes) */
#define COLIBRI_LIMIT_EXTRA_BYTES 1048576u
/* Largest image that travels before its SUBMIT. (bytes) */
#define COLIBRI_LIMIT_IMAGE_BYTES 67108864u
/* Largest alternatives table per token. (entries) */
#define COLIBRI_LIMIT_TOP_K 32u
/* Longest name of an extension key. (characters) */
#define COLIBRI_LIMIT_KEY_NAME_LENGTH 15u
/* Longest value of an extension key. (digits) */
#define COLIBRI_LIMIT_KEY_VALUE_DIGITS 10u
/* Most KV slots an engine can be started with. (slots) */
#define COLIBRI_LIMIT_KV_SLOTS 512u
/* Largest request id. (id) */
#define COLIBRI_LIMIT_MAX_REQUEST_ID UINT64_C(18446744073709551615)
/* Most prompts in one completions request. (prompts) */
#define COLIBRI_LIMIT_BATCH_MEMBERS 128u
/* Prompt budget of a batch: ids counted as ids, strings as UTF-8 bytes. (tokens) */
#define COLIBRI_LIMIT_BATCH_PROMPT_TOKENS 65536u
/* Members times effective max tokens of a batch. (tokens) */
#define COLIBRI_LIMIT_BATCH_COMPLETION_TOKENS 65536u
/* Largest request body, measured after decoding. COLI_MAX_BODY_BYTES changes it. (bytes) */
#define COLIBRI_LIMIT_BODY_BYTES 33554432u
/* Largest request head. (bytes) */
#define COLIBRI_LIMIT_HEADER_BYTES 65536u
/* Deepest nesting of a request body. (levels) */
#define COLIBRI_LIMIT_JSON_DEPTH 512u
/* Most stop sequences of one request. (strings) */
#define COLIBRI_LIMIT_STOP_SEQUENCES 4u
/* Longest X-Request-Id of a client that is echoed. (characters) */
#define COLIBRI_LIMIT_CLIENT_REQUEST_ID_LENGTH 128u
/* PROF records kept for GET /profile. (records) */
#define COLIBRI_LIMIT_PROFILE_TURNS 120u
/* Longest rendering of one conversation by a model's own chat template. (seconds) */
#define COLIBRI_LIMIT_TEMPLATE_SECONDS 2u
/* Connections the kernel holds for the gateway. (connections) */
#define COLIBRI_LIMIT_LISTEN_BACKLOG 1024u
/* Longest time until a departed client is noticed. (milliseconds) */
#define COLIBRI_LIMIT_DISCONNECT_NOTICE_MS 100u
/* Largest TCP port. (port) */
#define COLIBRI_LIMIT_PORT 65535u

/* ---------------------------------------------------------------- launch: names of environment variables */

/* Model directory. */
#define COLIBRI_ENV_SNAP "SNAP"
/* The engine serves instead of answering one prompt. */
#define COLIBRI_ENV_SERVE "SERVE"
/* The engine multiplexes requests. */
#define COLIBRI_ENV_SERVE_BATCH "SERVE_BATCH"
/* Largest max_tokens the gateway will ask for. */
#define COLIBRI_ENV_NGEN "NGEN"
/* Number of KV slots. */
#define COLIBRI_ENV_KV_SLOTS "KV_SLOTS"
/* Context length; the model's own when absent. */
#define COLIBRI_ENV_CTX "CTX"
/* Seed of the sampler. */
#define COLIBRI_ENV_SEED "SEED"

/* ---------------------------------------------------------------- markup: what the text of a chat is marked with */

/* First in every prompt. */
#define COLIBRI_MARKUP_GLM_GENERATION_MASK "[gMASK]"
/* Second in every prompt. */
#define COLIBRI_MARKUP_GLM_START_OF_PIECE "<sop>"
/* Begins a turn of instructions: effort, tools, system and developer messages. */
#define COLIBRI_MARKUP_GLM_SYSTEM "<|system|>"
/* Begins a turn of the user. */
#define COLIBRI_MARKUP_GLM_USER "<|user|>"
/* Begins a turn of the model; the last one of a prompt is open. */
#define COLIBRI_MARKUP_GLM_ASSISTANT "<|assistant|>"
/* Begins a run of tool results. */
#define COLIBRI_MARKUP_GLM_OBSERVATION "<|observation|>"
/* Ends a document. */
#define COLIBRI_MARKUP_GLM_END_OF_TEXT "<|endoftext|>"
/* Begins the tools offered, one JSON text a line. */
#define COLIBRI_MARKUP_GLM_DECLARATIONS_OPEN "<tools>"
/* Ends the tools offered. */
#define COLIBRI_MARKUP_GLM_DECLARATIONS_CLOSE "</tools>"
/* Begins a tool result. */
#define COLIBRI_MARKUP_GLM_RESPONSE_OPEN "<tool_response>"
/* Ends a tool result. */
#define COLIBRI_MARKUP_GLM_RESPONSE_CLOSE "</tool_response>"
/* Begins the reasoning of an answer; last in a prompt with thinking on. */
#define COLIBRI_MARKUP_GLM_REASONING_OPEN "<think>"
/* Ends the reasoning; a grammar holds from here on. */
#define COLIBRI_MARKUP_GLM_REASONING_CLOSE "</think>"
/* Begins a tool call; the name of the tool follows. */
#define COLIBRI_MARKUP_GLM_CALL_OPEN "<tool_call>"
/* Ends a tool call. */
#define COLIBRI_MARKUP_GLM_CALL_CLOSE "</tool_call>"
/* Begins the name of an argument. */
#define COLIBRI_MARKUP_GLM_ARGUMENT_KEY_OPEN "<arg_key>"
/* Ends the name of an argument. */
#define COLIBRI_MARKUP_GLM_ARGUMENT_KEY_CLOSE "</arg_key>"
/* Begins the value of an argument: plain text, or JSON of any other type. */
#define COLIBRI_MARKUP_GLM_ARGUMENT_VALUE_OPEN "<arg_value>"
/* Ends the value of an argument. */
#define COLIBRI_MARKUP_GLM_ARGUMENT_VALUE_CLOSE "</arg_value>"
/* Begins a turn: its role, a line feed, its text. */
#define COLIBRI_MARKUP_CHATML_TURN_OPEN "<|im_start|>"
/* Ends a turn. */
#define COLIBRI_MARKUP_CHATML_TURN_CLOSE "<|im_end|>"
/* Ends a document. */
#define COLIBRI_MARKUP_CHATML_END_OF_TEXT "<|endoftext|>"

/* ---------------------------------------------------------------- faults and codes */

/* What can be wrong with a message. */
typedef enum colibri_rule {
    COLIBRI_RULE_NONE,
    COLIBRI_RULE_UNKNOWN_KIND,
    COLIBRI_RULE_WORD_COUNT,
    COLIBRI_RULE_WORD,
    COLIBRI_RULE_RANGE,
    COLIBRI_RULE_CONSTANT,
    COLIBRI_RULE_TERMINATOR,
    COLIBRI_RULE_TRUNCATED,
    COLIBRI_RULE_LINE_LIMIT,
    COLIBRI_RULE_UNKNOWN_KEY,
    COLIBRI_RULE_DUPLICATE_KEY,
    COLIBRI_RULE_KEY_ORDER,
    COLIBRI_RULE_MISSING,
    COLIBRI_RULE_COUNT
} colibri_rule;

/* The name of a rule, as the vectors and the Python reader spell it. */
static inline const char *colibri_rule_name(colibri_rule rule) {
    static const char *const names[] = {
        "none",
        "unknown_kind",
        "word_count",
        "word",
        "range",
        "constant",
        "terminator",
        "truncated",
        "line_limit",
        "unknown_key",
        "duplicate_key",
        "key_order",
        "missing",
        "count"
    };
    return names[rule];
}

/* Codes of an ERROR frame. */
#define COLIBRI_ERROR_CONTEXT_EXCEEDED "CONTEXT_EXCEEDED"
#define COLIBRI_ERROR_EMPTY_PROMPT "EMPTY_PROMPT"
#define COLIBRI_ERROR_BAD_REQUEST "BAD_REQUEST"
#define COLIBRI_ERROR_BAD_FRAME "BAD_FRAME"
#define COLIBRI_ERROR_SLOT_BUSY "SLOT_BUSY"
#define COLIBRI_ERROR_DUPLICATE_ID "DUPLICATE_ID"
#define COLIBRI_ERROR_NOT_FOUND "NOT_FOUND"
#define COLIBRI_ERROR_CANCELLED "CANCELLED"

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

/* ---------------------------------------------------------------- messages */

/* Any bytes up to the sentinel are a log banner and are discarded; after the sentinel one STAT line, then only
   frames. The gateway sends nothing before READY. */
typedef struct colibri_stat {
    uint64_t completion_tokens; /* A number of tokens (tokens) */
    double tokens_per_second; /* A generation speed (tokens/s) */
    double cache_hit_percent; /* A percentage (percent) */
    double rss_gb; /* An amount of memory (GB) */
    bool has_prompt_tokens; /* prompt_tokens and what follows it is there */
    uint64_t prompt_tokens; /* A number of tokens (tokens) */
    bool has_length_limited; /* length_limited and what follows it is there */
    uint8_t length_limited; /* 0 or 1 */
} colibri_stat;

/* The prompt fits and its prefill begins. A streaming answer is committed on it, never earlier. */
typedef struct colibri_accept {
    uint64_t id; /* Id of the SUBMIT. An engine that echoes what it could not read names no request: the frame is consumed and dropped */
    uint64_t prompt_tokens; /* A number of tokens (tokens) */
} colibri_accept;

/* A piece of generated text. With the log probability channel on it carries the numbers of its token, and a token
   the engine swallows still gets one with an empty payload. */
typedef struct colibri_data {
    uint64_t id; /* Id of the SUBMIT. An engine that echoes what it could not read names no request: the frame is consumed and dropped */
    bool has_logprob; /* logprob and what follows it is there */
    double logprob; /* Natural logarithm of a probability; nan where there is nothing to condition on (nats) */
    uint8_t k; /* Entries of an alternatives table (entries) */
    const uint32_t *tokens; /* Token id; the engine owns the bound of its vocabulary [k] */
    const double *token_logprobs; /* Natural logarithm of a probability; nan where there is nothing to condition on (nats) [k] */
    colibri_bytes payload; /* bytes of the text piece; may split a UTF-8 character, may be empty */
} colibri_data;

/* Read-out of one prompt token. Sent only to requests that asked for log probabilities; it does not count as
   acceptance. */
typedef struct colibri_echo {
    uint64_t id; /* Id of the SUBMIT. An engine that echoes what it could not read names no request: the frame is consumed and dropped */
    uint32_t position; /* Place of a token in the prompt; every place exactly once, in any order (tokens) */
    double logprob; /* Natural logarithm of a probability; nan where there is nothing to condition on (nats) */
    uint8_t k; /* Entries of an alternatives table (entries) */
    const uint32_t *tokens; /* Token id; the engine owns the bound of its vocabulary [k] */
    const double *token_logprobs; /* Natural logarithm of a probability; nan where there is nothing to condition on (nats) [k] */
    colibri_bytes payload; /* the prompt token's own bytes */
} colibri_echo;

/* Structured sideband of families that parse tool calls themselves; an empty payload says that the request has one. */
typedef struct colibri_tool {
    uint64_t id; /* Id of the SUBMIT. An engine that echoes what it could not read names no request: the frame is consumed and dropped */
    colibri_bytes payload; /* the sideband record */
} colibri_tool;

/* The request ended in order. */
typedef struct colibri_done {
    uint64_t id; /* Id of the SUBMIT. An engine that echoes what it could not read names no request: the frame is consumed and dropped */
    uint64_t completion_tokens; /* A number of tokens (tokens) */
    double tokens_per_second; /* A generation speed (tokens/s) */
    double cache_hit_percent; /* A percentage (percent) */
    double rss_gb; /* An amount of memory (GB) */
    bool has_prompt_tokens; /* prompt_tokens and what follows it is there */
    uint64_t prompt_tokens; /* A number of tokens (tokens) */
    bool has_length_limited; /* length_limited and what follows it is there */
    uint8_t length_limited; /* 1 when max_tokens ended the request */
} colibri_done;

/* The request failed, or a command was refused; id 0 when the refused header's id could not be read. */
typedef struct colibri_error {
    uint64_t id; /* Request id, or 0 */
    colibri_bytes words; /* A code of `wire_errors` with its details, or free words */
} colibri_error;

/* Where the time of a turn went. */
typedef struct colibri_prof {
    double wall_s; /* A duration (seconds) */
    double prompt_tokens; /* A measurement: may carry a sign and any number of decimals */
    double completion_tokens; /* A measurement: may carry a sign and any number of decimals */
    double disk_s; /* A duration (seconds) */
    double wait_s; /* A duration (seconds) */
    double matmul_s; /* A duration (seconds) */
    double attention_s; /* A duration (seconds) */
    double head_s; /* A duration (seconds) */
    double forwards; /* A measurement: may carry a sign and any number of decimals */
} colibri_prof;

/* Experts held in each memory tier. */
typedef struct colibri_tiers {
    double vram; /* A measurement: may carry a sign and any number of decimals */
    double ram; /* A measurement: may carry a sign and any number of decimals */
    double disk; /* A measurement: may carry a sign and any number of decimals */
    double vram_gb; /* An amount of memory (GB) */
    double ram_gb; /* An amount of memory (GB) */
} colibri_tiers;

/* The machine the engine runs on. */
typedef struct colibri_hwinfo {
    double cores; /* A measurement: may carry a sign and any number of decimals */
    double ram_total_gb; /* An amount of memory (GB) */
    double ram_available_gb; /* An amount of memory (GB) */
    double gpus; /* A measurement: may carry a sign and any number of decimals */
    double vram_total_gb; /* An amount of memory (GB) */
    colibri_bytes names; /* Names as `cpu|gpu`, may contain spaces */
} colibri_hwinfo;

/* Where each expert lives: one byte per cell, two bits of tier (0 disk, 1 RAM, 2 VRAM) and six bits of log2 heat. */
typedef struct colibri_emap {
    uint64_t rows; /* A count */
    uint64_t cols; /* A count */
    colibri_bytes cells; /* Pairs of hexadecimal digits */
} colibri_emap;

/* Which experts the turn used; one bit per cell. */
typedef struct colibri_hits {
    uint64_t rows; /* A count */
    uint64_t cols; /* A count */
    colibri_bytes cells; /* Pairs of hexadecimal digits */
} colibri_hits;

/* Advisory line of a sibling lineage; consumed, kept only as the last line seen. */
typedef struct colibri_perf {
    colibri_bytes words; /* One word of free text */
} colibri_perf;

/* Advisory line of a sibling lineage; consumed, kept only as the last line seen. */
typedef struct colibri_entropy {
    colibri_bytes words; /* One word of free text */
} colibri_entropy;

/* Advisory line of a sibling lineage; consumed, kept only as the last line seen. */
typedef struct colibri_gpus {
    colibri_bytes words; /* One word of free text */
} colibri_gpus;

/* Advisory line of a sibling lineage; consumed, kept only as the last line seen. */
typedef struct colibri_topk {
    colibri_bytes words; /* One word of free text */
} colibri_topk;

/* Advisory line of a sibling lineage; consumed, kept only as the last line seen. */
typedef struct colibri_repin {
    colibri_bytes words; /* One word of free text */
} colibri_repin;

/* Group scoring, prompt token. Consumed without effect, even if its id is live. */
typedef struct colibri_grpp {
    uint64_t id; /* Id of the SUBMIT. An engine that echoes what it could not read names no request: the frame is consumed and dropped */
    uint32_t position; /* Place of a token in the prompt; every place exactly once, in any order (tokens) */
    double logprob; /* Natural logarithm of a probability; nan where there is nothing to condition on (nats) */
    uint64_t k; /* A count */
    colibri_bytes payload; /* prompt piece */
} colibri_grpp;

/* Group scoring, token of a member. Consumed without effect; field names are provisional. */
typedef struct colibri_grpg {
    uint64_t id; /* Id of the SUBMIT. An engine that echoes what it could not read names no request: the frame is consumed and dropped */
    uint32_t member; /* Member of a group */
    uint32_t position; /* Place of a token in the prompt; every place exactly once, in any order (tokens) */
    double logprob; /* Natural logarithm of a probability; nan where there is nothing to condition on (nats) */
    uint64_t k; /* A count */
    colibri_bytes payload; /* member piece */
} colibri_grpg;

/* Group scoring, sizes of a member. Consumed without effect; field names are provisional. */
typedef struct colibri_grps {
    uint64_t id; /* Id of the SUBMIT. An engine that echoes what it could not read names no request: the frame is consumed and dropped */
    uint32_t member; /* Member of a group */
    uint64_t prompt_count; /* A count */
    uint64_t member_count; /* A count */
} colibri_grps;

/* Group scoring, end of a member. Consumed without effect; field names are provisional. */
typedef struct colibri_grpe {
    uint64_t id; /* Id of the SUBMIT. An engine that echoes what it could not read names no request: the frame is consumed and dropped */
    uint32_t member; /* Member of a group */
    double sum; /* Natural logarithm of a probability; nan where there is nothing to condition on (nats) */
    uint64_t count; /* A count */
    uint8_t greedy; /* 0 or 1 */
} colibri_grpe;

/* Start one request. Whatever is wrong with the header, a reader consumes the payload it names before it refuses. */
typedef struct colibri_submit {
    uint64_t id; /* Request id: minted by the gateway, increasing, never taken from a client, unique among requests in flight */
    uint16_t slot; /* KV slot the request runs on */
    uint32_t max_tokens; /* Most tokens to generate (tokens) */
    double temperature; /* Sampling temperature; 0 is greedy */
    double top_p; /* Nucleus mass; may not become 0 in single precision */
    colibri_bytes prompt; /* UTF-8 text, or with ids=1 ASCII decimal token ids separated by single spaces */
    colibri_bytes extra; /* grammar text: raw GBNF or a JSON Schema */
    bool has_logprobs; /* the key logprobs is given */
    uint8_t logprobs; /* Per-token numbers and k alternatives wanted; k > 0 makes the engine send one ECHO per prompt token and a numeric tail on every DATA. */
    bool has_ids; /* the key ids is given */
    uint8_t ids; /* The prompt is token ids. */
    bool has_pin; /* the key pin is given */
    uint8_t pin; /* Keep the KV state after prefill so that later requests with the same prefix can rewind to it. */
} colibri_submit;

/* An image for the SUBMIT that follows immediately with the same id. */
typedef struct colibri_image {
    uint64_t id; /* Request id: minted by the gateway, increasing, never taken from a client, unique among requests in flight */
    uint16_t grid_h; /* Side of the image's patch grid (patches) */
    uint16_t grid_w; /* Side of the image's patch grid (patches) */
    colibri_bytes image; /* the image's patches as the family reads them */
} colibri_image;

/* A stop sequence matched; finish the request now with DONE. Sent once. */
typedef struct colibri_stop {
    uint64_t id; /* Request id: minted by the gateway, increasing, never taken from a client, unique among requests in flight */
} colibri_stop;

/* The client is gone; answered by ERROR CANCELLED, or by the DONE it raced with. The slot stays taken until then. */
typedef struct colibri_cancel {
    uint64_t id; /* Request id: minted by the gateway, increasing, never taken from a client, unique among requests in flight */
} colibri_cancel;

/* ---------------------------------------------------------------- writing frames */

/* Ends the log banner; the STAT line comes right after it. */
#define COLIBRI_READY "\001\001READY\001\001\n"

/* Room that any STAT header needs, without free text, counted words and payloads. */
#define COLIBRI_WRITE_STAT_ROOM 131u

/* Write one STAT. */
static inline size_t colibri_write_stat(char *to, size_t capacity, const colibri_stat *message, colibri_fault *fault) {
    size_t room = COLIBRI_WRITE_STAT_ROOM;
    colibri_out out;
    if (message->completion_tokens > UINT64_C(9223372036854775807)) {
        return colibri_refuse(fault, "completion_tokens");
    }
    if (!isfinite(message->tokens_per_second)) {
        return colibri_refuse(fault, "tokens_per_second");
    }
    if (!isfinite(message->cache_hit_percent)) {
        return colibri_refuse(fault, "cache_hit_percent");
    }
    if (!isfinite(message->rss_gb)) {
        return colibri_refuse(fault, "rss_gb");
    }
    if (message->has_prompt_tokens) {
        if (message->prompt_tokens > UINT64_C(9223372036854775807)) {
            return colibri_refuse(fault, "prompt_tokens");
        }
        if (message->has_length_limited) {
            if (message->length_limited > 1u) {
                return colibri_refuse(fault, "length_limited");
            }
        }
    }
    room += colibri_extra_room(message->tokens_per_second);
    room += colibri_extra_room(message->cache_hit_percent);
    room += colibri_extra_room(message->rss_gb);
    if (capacity < room) {
        (void)colibri_fail(fault, "", COLIBRI_RULE_NONE);
        return 0u;
    }
    out.at = to;
    colibri_put_bytes(&out, "STAT", 4u);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->completion_tokens);
    colibri_put_char(&out, ' ');
    colibri_put_fixed(&out, message->tokens_per_second, 3u);
    colibri_put_char(&out, ' ');
    colibri_put_fixed(&out, message->cache_hit_percent, 3u);
    colibri_put_char(&out, ' ');
    colibri_put_fixed(&out, message->rss_gb, 3u);
    if (message->has_prompt_tokens) {
        colibri_put_char(&out, ' ');
        colibri_put_uint(&out, message->prompt_tokens);
        if (message->has_length_limited) {
            colibri_put_char(&out, ' ');
            colibri_put_uint(&out, message->length_limited);
        }
    }
    colibri_put_char(&out, '\n');
    return (size_t)(out.at - to);
}

/* Room that any ACCEPT header needs, without free text, counted words and payloads. */
#define COLIBRI_WRITE_ACCEPT_ROOM 48u

/* Write one ACCEPT. */
static inline size_t colibri_write_accept(char *to, size_t capacity, const colibri_accept *message, colibri_fault *fault) {
    size_t room = COLIBRI_WRITE_ACCEPT_ROOM;
    colibri_out out;
    if (message->id < 1u) {
        return colibri_refuse(fault, "id");
    }
    if (message->prompt_tokens > UINT64_C(9223372036854775807)) {
        return colibri_refuse(fault, "prompt_tokens");
    }
    if (capacity < room) {
        (void)colibri_fail(fault, "", COLIBRI_RULE_NONE);
        return 0u;
    }
    out.at = to;
    colibri_put_bytes(&out, "ACCEPT", 6u);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->id);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->prompt_tokens);
    colibri_put_char(&out, '\n');
    return (size_t)(out.at - to);
}

/* Room that any DATA header needs, without free text, counted words and payloads. */
#define COLIBRI_WRITE_DATA_ROOM 63u

/* Write one DATA. */
static inline size_t colibri_write_data(char *to, size_t capacity, const colibri_data *message, colibri_fault *fault) {
    size_t room = COLIBRI_WRITE_DATA_ROOM;
    colibri_out out;
    if (message->id < 1u) {
        return colibri_refuse(fault, "id");
    }
    if (message->payload.size > 65536u) {
        return colibri_refuse(fault, "size");
    }
    if (message->has_logprob) {
        if (message->k > 32u) {
            return colibri_refuse(fault, "k");
        }
        for (size_t entry = 0u; entry < message->k; entry++) {
            if (message->tokens[entry] > 2147483647u) {
                return colibri_refuse(fault, "token");
            }
        }
    }
    if (message->has_logprob) {
        room += colibri_extra_room(message->logprob);
        room += (size_t)message->k * 39u;
        for (size_t entry = 0u; entry < message->k; entry++) {
            room += colibri_extra_room(message->token_logprobs[entry]);
        }
    }
    room += message->payload.size;
    room += 1u;
    if (capacity < room) {
        (void)colibri_fail(fault, "", COLIBRI_RULE_NONE);
        return 0u;
    }
    out.at = to;
    colibri_put_bytes(&out, "DATA", 4u);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->id);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->payload.size);
    if (message->has_logprob) {
        colibri_put_char(&out, ' ');
        colibri_put_fixed(&out, message->logprob, 6u);
        colibri_put_char(&out, ' ');
        colibri_put_uint(&out, message->k);
        for (size_t entry = 0u; entry < message->k; entry++) {
            colibri_put_char(&out, ' ');
            colibri_put_uint(&out, message->tokens[entry]);
            colibri_put_char(&out, ' ');
            colibri_put_fixed(&out, message->token_logprobs[entry], 6u);
        }
    }
    colibri_put_char(&out, '\n');
    colibri_put_bytes(&out, message->payload.data, message->payload.size);
    colibri_put_char(&out, '\n');
    return (size_t)(out.at - to);
}

/* Room that any ECHO header needs, without free text, counted words and payloads. */
#define COLIBRI_WRITE_ECHO_ROOM 74u

/* Write one ECHO. */
static inline size_t colibri_write_echo(char *to, size_t capacity, const colibri_echo *message, colibri_fault *fault) {
    size_t room = COLIBRI_WRITE_ECHO_ROOM;
    colibri_out out;
    if (message->id < 1u) {
        return colibri_refuse(fault, "id");
    }
    if (message->payload.size > 65536u) {
        return colibri_refuse(fault, "size");
    }
    if (message->k > 32u) {
        return colibri_refuse(fault, "k");
    }
    for (size_t entry = 0u; entry < message->k; entry++) {
        if (message->tokens[entry] > 2147483647u) {
            return colibri_refuse(fault, "token");
        }
    }
    room += colibri_extra_room(message->logprob);
    room += (size_t)message->k * 39u;
    for (size_t entry = 0u; entry < message->k; entry++) {
        room += colibri_extra_room(message->token_logprobs[entry]);
    }
    room += message->payload.size;
    room += 1u;
    if (capacity < room) {
        (void)colibri_fail(fault, "", COLIBRI_RULE_NONE);
        return 0u;
    }
    out.at = to;
    colibri_put_bytes(&out, "ECHO", 4u);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->id);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->payload.size);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->position);
    colibri_put_char(&out, ' ');
    colibri_put_fixed(&out, message->logprob, 6u);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->k);
    for (size_t entry = 0u; entry < message->k; entry++) {
        colibri_put_char(&out, ' ');
        colibri_put_uint(&out, message->tokens[entry]);
        colibri_put_char(&out, ' ');
        colibri_put_fixed(&out, message->token_logprobs[entry], 6u);
    }
    colibri_put_char(&out, '\n');
    colibri_put_bytes(&out, message->payload.data, message->payload.size);
    colibri_put_char(&out, '\n');
    return (size_t)(out.at - to);
}

/* Room that any TOOL header needs, without free text, counted words and payloads. */
#define COLIBRI_WRITE_TOOL_ROOM 32u

/* Write one TOOL. */
static inline size_t colibri_write_tool(char *to, size_t capacity, const colibri_tool *message, colibri_fault *fault) {
    size_t room = COLIBRI_WRITE_TOOL_ROOM;
    colibri_out out;
    if (message->id < 1u) {
        return colibri_refuse(fault, "id");
    }
    if (message->payload.size > 65536u) {
        return colibri_refuse(fault, "size");
    }
    room += message->payload.size;
    room += 1u;
    if (capacity < room) {
        (void)colibri_fail(fault, "", COLIBRI_RULE_NONE);
        return 0u;
    }
    out.at = to;
    colibri_put_bytes(&out, "TOOL", 4u);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->id);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->payload.size);
    colibri_put_char(&out, '\n');
    colibri_put_bytes(&out, message->payload.data, message->payload.size);
    colibri_put_char(&out, '\n');
    return (size_t)(out.at - to);
}

/* Room that any DONE header needs, without free text, counted words and payloads. */
#define COLIBRI_WRITE_DONE_ROOM 157u

/* Write one DONE. */
static inline size_t colibri_write_done(char *to, size_t capacity, const colibri_done *message, colibri_fault *fault) {
    size_t room = COLIBRI_WRITE_DONE_ROOM;
    colibri_out out;
    if (message->id < 1u) {
        return colibri_refuse(fault, "id");
    }
    if (message->completion_tokens > UINT64_C(9223372036854775807)) {
        return colibri_refuse(fault, "completion_tokens");
    }
    if (!isfinite(message->tokens_per_second)) {
        return colibri_refuse(fault, "tokens_per_second");
    }
    if (!isfinite(message->cache_hit_percent)) {
        return colibri_refuse(fault, "cache_hit_percent");
    }
    if (!isfinite(message->rss_gb)) {
        return colibri_refuse(fault, "rss_gb");
    }
    if (message->has_prompt_tokens) {
        if (message->prompt_tokens > UINT64_C(9223372036854775807)) {
            return colibri_refuse(fault, "prompt_tokens");
        }
        if (message->has_length_limited) {
            if (message->length_limited > 1u) {
                return colibri_refuse(fault, "length_limited");
            }
        }
    }
    room += colibri_extra_room(message->tokens_per_second);
    room += colibri_extra_room(message->cache_hit_percent);
    room += colibri_extra_room(message->rss_gb);
    if (capacity < room) {
        (void)colibri_fail(fault, "", COLIBRI_RULE_NONE);
        return 0u;
    }
    out.at = to;
    colibri_put_bytes(&out, "DONE", 4u);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->id);
    colibri_put_bytes(&out, " STAT", 5u);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->completion_tokens);
    colibri_put_char(&out, ' ');
    colibri_put_fixed(&out, message->tokens_per_second, 3u);
    colibri_put_char(&out, ' ');
    colibri_put_fixed(&out, message->cache_hit_percent, 3u);
    colibri_put_char(&out, ' ');
    colibri_put_fixed(&out, message->rss_gb, 3u);
    if (message->has_prompt_tokens) {
        colibri_put_char(&out, ' ');
        colibri_put_uint(&out, message->prompt_tokens);
        if (message->has_length_limited) {
            colibri_put_char(&out, ' ');
            colibri_put_uint(&out, message->length_limited);
        }
    }
    colibri_put_char(&out, '\n');
    return (size_t)(out.at - to);
}

/* Room that any ERROR header needs, without free text, counted words and payloads. */
#define COLIBRI_WRITE_ERROR_ROOM 27u

/* Write one ERROR. */
static inline size_t colibri_write_error(char *to, size_t capacity, const colibri_error *message, colibri_fault *fault) {
    size_t room = COLIBRI_WRITE_ERROR_ROOM;
    colibri_out out;
    if (!colibri_is_text(message->words, 0u)) {
        return colibri_refuse(fault, "words");
    }
    room += 1u + message->words.size;
    if (capacity < room) {
        (void)colibri_fail(fault, "", COLIBRI_RULE_NONE);
        return 0u;
    }
    out.at = to;
    colibri_put_bytes(&out, "ERROR", 5u);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->id);
    if (message->words.size != 0u) {
        colibri_put_char(&out, ' ');
        colibri_put_bytes(&out, message->words.data, message->words.size);
    }
    colibri_put_char(&out, '\n');
    return (size_t)(out.at - to);
}

/* Room that any PROF header needs, without free text, counted words and payloads. */
#define COLIBRI_WRITE_PROF_ROOM 257u

/* Write one PROF. */
static inline size_t colibri_write_prof(char *to, size_t capacity, const colibri_prof *message, colibri_fault *fault) {
    size_t room = COLIBRI_WRITE_PROF_ROOM;
    colibri_out out;
    if (!isfinite(message->wall_s)) {
        return colibri_refuse(fault, "wall_s");
    }
    if (!isfinite(message->prompt_tokens)) {
        return colibri_refuse(fault, "prompt_tokens");
    }
    if (!isfinite(message->completion_tokens)) {
        return colibri_refuse(fault, "completion_tokens");
    }
    if (!isfinite(message->disk_s)) {
        return colibri_refuse(fault, "disk_s");
    }
    if (!isfinite(message->wait_s)) {
        return colibri_refuse(fault, "wait_s");
    }
    if (!isfinite(message->matmul_s)) {
        return colibri_refuse(fault, "matmul_s");
    }
    if (!isfinite(message->attention_s)) {
        return colibri_refuse(fault, "attention_s");
    }
    if (!isfinite(message->head_s)) {
        return colibri_refuse(fault, "head_s");
    }
    if (!isfinite(message->forwards)) {
        return colibri_refuse(fault, "forwards");
    }
    room += colibri_extra_room(message->wall_s);
    room += colibri_extra_room(message->prompt_tokens);
    room += colibri_extra_room(message->completion_tokens);
    room += colibri_extra_room(message->disk_s);
    room += colibri_extra_room(message->wait_s);
    room += colibri_extra_room(message->matmul_s);
    room += colibri_extra_room(message->attention_s);
    room += colibri_extra_room(message->head_s);
    room += colibri_extra_room(message->forwards);
    if (capacity < room) {
        (void)colibri_fail(fault, "", COLIBRI_RULE_NONE);
        return 0u;
    }
    out.at = to;
    colibri_put_bytes(&out, "PROF", 4u);
    colibri_put_char(&out, ' ');
    colibri_put_fixed(&out, message->wall_s, 6u);
    colibri_put_char(&out, ' ');
    colibri_put_fixed(&out, message->prompt_tokens, 3u);
    colibri_put_char(&out, ' ');
    colibri_put_fixed(&out, message->completion_tokens, 3u);
    colibri_put_char(&out, ' ');
    colibri_put_fixed(&out, message->disk_s, 6u);
    colibri_put_char(&out, ' ');
    colibri_put_fixed(&out, message->wait_s, 6u);
    colibri_put_char(&out, ' ');
    colibri_put_fixed(&out, message->matmul_s, 6u);
    colibri_put_char(&out, ' ');
    colibri_put_fixed(&out, message->attention_s, 6u);
    colibri_put_char(&out, ' ');
    colibri_put_fixed(&out, message->head_s, 6u);
    colibri_put_char(&out, ' ');
    colibri_put_fixed(&out, message->forwards, 3u);
    colibri_put_char(&out, '\n');
    return (size_t)(out.at - to);
}

/* Room that any TIERS header needs, without free text, counted words and payloads. */
#define COLIBRI_WRITE_TIERS_ROOM 146u

/* Write one TIERS. */
static inline size_t colibri_write_tiers(char *to, size_t capacity, const colibri_tiers *message, colibri_fault *fault) {
    size_t room = COLIBRI_WRITE_TIERS_ROOM;
    colibri_out out;
    if (!isfinite(message->vram)) {
        return colibri_refuse(fault, "vram");
    }
    if (!isfinite(message->ram)) {
        return colibri_refuse(fault, "ram");
    }
    if (!isfinite(message->disk)) {
        return colibri_refuse(fault, "disk");
    }
    if (!isfinite(message->vram_gb)) {
        return colibri_refuse(fault, "vram_gb");
    }
    if (!isfinite(message->ram_gb)) {
        return colibri_refuse(fault, "ram_gb");
    }
    room += colibri_extra_room(message->vram);
    room += colibri_extra_room(message->ram);
    room += colibri_extra_room(message->disk);
    room += colibri_extra_room(message->vram_gb);
    room += colibri_extra_room(message->ram_gb);
    if (capacity < room) {
        (void)colibri_fail(fault, "", COLIBRI_RULE_NONE);
        return 0u;
    }
    out.at = to;
    colibri_put_bytes(&out, "TIERS", 5u);
    colibri_put_char(&out, ' ');
    colibri_put_fixed(&out, message->vram, 3u);
    colibri_put_char(&out, ' ');
    colibri_put_fixed(&out, message->ram, 3u);
    colibri_put_char(&out, ' ');
    colibri_put_fixed(&out, message->disk, 3u);
    colibri_put_char(&out, ' ');
    colibri_put_fixed(&out, message->vram_gb, 3u);
    colibri_put_char(&out, ' ');
    colibri_put_fixed(&out, message->ram_gb, 3u);
    colibri_put_char(&out, '\n');
    return (size_t)(out.at - to);
}

/* Room that any HWINFO header needs, without free text, counted words and payloads. */
#define COLIBRI_WRITE_HWINFO_ROOM 147u

/* Write one HWINFO. */
static inline size_t colibri_write_hwinfo(char *to, size_t capacity, const colibri_hwinfo *message, colibri_fault *fault) {
    size_t room = COLIBRI_WRITE_HWINFO_ROOM;
    colibri_out out;
    if (!isfinite(message->cores)) {
        return colibri_refuse(fault, "cores");
    }
    if (!isfinite(message->ram_total_gb)) {
        return colibri_refuse(fault, "ram_total_gb");
    }
    if (!isfinite(message->ram_available_gb)) {
        return colibri_refuse(fault, "ram_available_gb");
    }
    if (!isfinite(message->gpus)) {
        return colibri_refuse(fault, "gpus");
    }
    if (!isfinite(message->vram_total_gb)) {
        return colibri_refuse(fault, "vram_total_gb");
    }
    if (!colibri_is_text(message->names, 1u)) {
        return colibri_refuse(fault, "names");
    }
    room += colibri_extra_room(message->cores);
    room += colibri_extra_room(message->ram_total_gb);
    room += colibri_extra_room(message->ram_available_gb);
    room += colibri_extra_room(message->gpus);
    room += colibri_extra_room(message->vram_total_gb);
    room += 1u + message->names.size;
    if (capacity < room) {
        (void)colibri_fail(fault, "", COLIBRI_RULE_NONE);
        return 0u;
    }
    out.at = to;
    colibri_put_bytes(&out, "HWINFO", 6u);
    colibri_put_char(&out, ' ');
    colibri_put_fixed(&out, message->cores, 3u);
    colibri_put_char(&out, ' ');
    colibri_put_fixed(&out, message->ram_total_gb, 3u);
    colibri_put_char(&out, ' ');
    colibri_put_fixed(&out, message->ram_available_gb, 3u);
    colibri_put_char(&out, ' ');
    colibri_put_fixed(&out, message->gpus, 3u);
    colibri_put_char(&out, ' ');
    colibri_put_fixed(&out, message->vram_total_gb, 3u);
    if (message->names.size != 0u) {
        colibri_put_char(&out, ' ');
        colibri_put_bytes(&out, message->names.data, message->names.size);
    }
    colibri_put_char(&out, '\n');
    return (size_t)(out.at - to);
}

/* Room that any EMAP header needs, without free text, counted words and payloads. */
#define COLIBRI_WRITE_EMAP_ROOM 46u

/* Write one EMAP. */
static inline size_t colibri_write_emap(char *to, size_t capacity, const colibri_emap *message, colibri_fault *fault) {
    size_t room = COLIBRI_WRITE_EMAP_ROOM;
    colibri_out out;
    if (message->rows > UINT64_C(9223372036854775807)) {
        return colibri_refuse(fault, "rows");
    }
    if (message->cols > UINT64_C(9223372036854775807)) {
        return colibri_refuse(fault, "cols");
    }
    if (!colibri_is_hex(message->cells)) {
        return colibri_refuse(fault, "cells");
    }
    room += message->cells.size;
    if (capacity < room) {
        (void)colibri_fail(fault, "", COLIBRI_RULE_NONE);
        return 0u;
    }
    out.at = to;
    colibri_put_bytes(&out, "EMAP", 4u);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->rows);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->cols);
    colibri_put_char(&out, ' ');
    colibri_put_bytes(&out, message->cells.data, message->cells.size);
    colibri_put_char(&out, '\n');
    return (size_t)(out.at - to);
}

/* Room that any HITS header needs, without free text, counted words and payloads. */
#define COLIBRI_WRITE_HITS_ROOM 46u

/* Write one HITS. */
static inline size_t colibri_write_hits(char *to, size_t capacity, const colibri_hits *message, colibri_fault *fault) {
    size_t room = COLIBRI_WRITE_HITS_ROOM;
    colibri_out out;
    if (message->rows > UINT64_C(9223372036854775807)) {
        return colibri_refuse(fault, "rows");
    }
    if (message->cols > UINT64_C(9223372036854775807)) {
        return colibri_refuse(fault, "cols");
    }
    if (!colibri_is_hex(message->cells)) {
        return colibri_refuse(fault, "cells");
    }
    room += message->cells.size;
    if (capacity < room) {
        (void)colibri_fail(fault, "", COLIBRI_RULE_NONE);
        return 0u;
    }
    out.at = to;
    colibri_put_bytes(&out, "HITS", 4u);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->rows);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->cols);
    colibri_put_char(&out, ' ');
    colibri_put_bytes(&out, message->cells.data, message->cells.size);
    colibri_put_char(&out, '\n');
    return (size_t)(out.at - to);
}

/* Room that any PERF header needs, without free text, counted words and payloads. */
#define COLIBRI_WRITE_PERF_ROOM 5u

/* Write one PERF. */
static inline size_t colibri_write_perf(char *to, size_t capacity, const colibri_perf *message, colibri_fault *fault) {
    size_t room = COLIBRI_WRITE_PERF_ROOM;
    colibri_out out;
    if (!colibri_is_text(message->words, 1u)) {
        return colibri_refuse(fault, "words");
    }
    room += 1u + message->words.size;
    if (capacity < room) {
        (void)colibri_fail(fault, "", COLIBRI_RULE_NONE);
        return 0u;
    }
    out.at = to;
    colibri_put_bytes(&out, "PERF", 4u);
    if (message->words.size != 0u) {
        colibri_put_char(&out, ' ');
        colibri_put_bytes(&out, message->words.data, message->words.size);
    }
    colibri_put_char(&out, '\n');
    return (size_t)(out.at - to);
}

/* Room that any ENTROPY header needs, without free text, counted words and payloads. */
#define COLIBRI_WRITE_ENTROPY_ROOM 8u

/* Write one ENTROPY. */
static inline size_t colibri_write_entropy(char *to, size_t capacity, const colibri_entropy *message, colibri_fault *fault) {
    size_t room = COLIBRI_WRITE_ENTROPY_ROOM;
    colibri_out out;
    if (!colibri_is_text(message->words, 1u)) {
        return colibri_refuse(fault, "words");
    }
    room += 1u + message->words.size;
    if (capacity < room) {
        (void)colibri_fail(fault, "", COLIBRI_RULE_NONE);
        return 0u;
    }
    out.at = to;
    colibri_put_bytes(&out, "ENTROPY", 7u);
    if (message->words.size != 0u) {
        colibri_put_char(&out, ' ');
        colibri_put_bytes(&out, message->words.data, message->words.size);
    }
    colibri_put_char(&out, '\n');
    return (size_t)(out.at - to);
}

/* Room that any GPUS header needs, without free text, counted words and payloads. */
#define COLIBRI_WRITE_GPUS_ROOM 5u

/* Write one GPUS. */
static inline size_t colibri_write_gpus(char *to, size_t capacity, const colibri_gpus *message, colibri_fault *fault) {
    size_t room = COLIBRI_WRITE_GPUS_ROOM;
    colibri_out out;
    if (!colibri_is_text(message->words, 1u)) {
        return colibri_refuse(fault, "words");
    }
    room += 1u + message->words.size;
    if (capacity < room) {
        (void)colibri_fail(fault, "", COLIBRI_RULE_NONE);
        return 0u;
    }
    out.at = to;
    colibri_put_bytes(&out, "GPUS", 4u);
    if (message->words.size != 0u) {
        colibri_put_char(&out, ' ');
        colibri_put_bytes(&out, message->words.data, message->words.size);
    }
    colibri_put_char(&out, '\n');
    return (size_t)(out.at - to);
}

/* Room that any TOPK header needs, without free text, counted words and payloads. */
#define COLIBRI_WRITE_TOPK_ROOM 5u

/* Write one TOPK. */
static inline size_t colibri_write_topk(char *to, size_t capacity, const colibri_topk *message, colibri_fault *fault) {
    size_t room = COLIBRI_WRITE_TOPK_ROOM;
    colibri_out out;
    if (!colibri_is_text(message->words, 1u)) {
        return colibri_refuse(fault, "words");
    }
    room += 1u + message->words.size;
    if (capacity < room) {
        (void)colibri_fail(fault, "", COLIBRI_RULE_NONE);
        return 0u;
    }
    out.at = to;
    colibri_put_bytes(&out, "TOPK", 4u);
    if (message->words.size != 0u) {
        colibri_put_char(&out, ' ');
        colibri_put_bytes(&out, message->words.data, message->words.size);
    }
    colibri_put_char(&out, '\n');
    return (size_t)(out.at - to);
}

/* Room that any REPIN header needs, without free text, counted words and payloads. */
#define COLIBRI_WRITE_REPIN_ROOM 6u

/* Write one REPIN. */
static inline size_t colibri_write_repin(char *to, size_t capacity, const colibri_repin *message, colibri_fault *fault) {
    size_t room = COLIBRI_WRITE_REPIN_ROOM;
    colibri_out out;
    if (!colibri_is_text(message->words, 1u)) {
        return colibri_refuse(fault, "words");
    }
    room += 1u + message->words.size;
    if (capacity < room) {
        (void)colibri_fail(fault, "", COLIBRI_RULE_NONE);
        return 0u;
    }
    out.at = to;
    colibri_put_bytes(&out, "REPIN", 5u);
    if (message->words.size != 0u) {
        colibri_put_char(&out, ' ');
        colibri_put_bytes(&out, message->words.data, message->words.size);
    }
    colibri_put_char(&out, '\n');
    return (size_t)(out.at - to);
}

/* Room that any GRPP header needs, without free text, counted words and payloads. */
#define COLIBRI_WRITE_GRPP_ROOM 91u

/* Write one GRPP. */
static inline size_t colibri_write_grpp(char *to, size_t capacity, const colibri_grpp *message, colibri_fault *fault) {
    size_t room = COLIBRI_WRITE_GRPP_ROOM;
    colibri_out out;
    if (message->id < 1u) {
        return colibri_refuse(fault, "id");
    }
    if (message->payload.size > 65536u) {
        return colibri_refuse(fault, "size");
    }
    if (message->k > UINT64_C(9223372036854775807)) {
        return colibri_refuse(fault, "k");
    }
    room += colibri_extra_room(message->logprob);
    room += message->payload.size;
    room += 1u;
    if (capacity < room) {
        (void)colibri_fail(fault, "", COLIBRI_RULE_NONE);
        return 0u;
    }
    out.at = to;
    colibri_put_bytes(&out, "GRPP", 4u);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->id);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->payload.size);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->position);
    colibri_put_char(&out, ' ');
    colibri_put_fixed(&out, message->logprob, 6u);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->k);
    colibri_put_char(&out, '\n');
    colibri_put_bytes(&out, message->payload.data, message->payload.size);
    colibri_put_char(&out, '\n');
    return (size_t)(out.at - to);
}

/* Room that any GRPG header needs, without free text, counted words and payloads. */
#define COLIBRI_WRITE_GRPG_ROOM 102u

/* Write one GRPG. */
static inline size_t colibri_write_grpg(char *to, size_t capacity, const colibri_grpg *message, colibri_fault *fault) {
    size_t room = COLIBRI_WRITE_GRPG_ROOM;
    colibri_out out;
    if (message->id < 1u) {
        return colibri_refuse(fault, "id");
    }
    if (message->payload.size > 65536u) {
        return colibri_refuse(fault, "size");
    }
    if (message->member > 2147483647u) {
        return colibri_refuse(fault, "member");
    }
    if (message->k > UINT64_C(9223372036854775807)) {
        return colibri_refuse(fault, "k");
    }
    room += colibri_extra_room(message->logprob);
    room += message->payload.size;
    room += 1u;
    if (capacity < room) {
        (void)colibri_fail(fault, "", COLIBRI_RULE_NONE);
        return 0u;
    }
    out.at = to;
    colibri_put_bytes(&out, "GRPG", 4u);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->id);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->payload.size);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->member);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->position);
    colibri_put_char(&out, ' ');
    colibri_put_fixed(&out, message->logprob, 6u);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->k);
    colibri_put_char(&out, '\n');
    colibri_put_bytes(&out, message->payload.data, message->payload.size);
    colibri_put_char(&out, '\n');
    return (size_t)(out.at - to);
}

/* Room that any GRPS header needs, without free text, counted words and payloads. */
#define COLIBRI_WRITE_GRPS_ROOM 77u

/* Write one GRPS. */
static inline size_t colibri_write_grps(char *to, size_t capacity, const colibri_grps *message, colibri_fault *fault) {
    size_t room = COLIBRI_WRITE_GRPS_ROOM;
    colibri_out out;
    if (message->id < 1u) {
        return colibri_refuse(fault, "id");
    }
    if (message->member > 2147483647u) {
        return colibri_refuse(fault, "member");
    }
    if (message->prompt_count > UINT64_C(9223372036854775807)) {
        return colibri_refuse(fault, "prompt_count");
    }
    if (message->member_count > UINT64_C(9223372036854775807)) {
        return colibri_refuse(fault, "member_count");
    }
    if (capacity < room) {
        (void)colibri_fail(fault, "", COLIBRI_RULE_NONE);
        return 0u;
    }
    out.at = to;
    colibri_put_bytes(&out, "GRPS", 4u);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->id);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->member);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->prompt_count);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->member_count);
    colibri_put_char(&out, '\n');
    return (size_t)(out.at - to);
}

/* Room that any GRPE header needs, without free text, counted words and payloads. */
#define COLIBRI_WRITE_GRPE_ROOM 87u

/* Write one GRPE. */
static inline size_t colibri_write_grpe(char *to, size_t capacity, const colibri_grpe *message, colibri_fault *fault) {
    size_t room = COLIBRI_WRITE_GRPE_ROOM;
    colibri_out out;
    if (message->id < 1u) {
        return colibri_refuse(fault, "id");
    }
    if (message->member > 2147483647u) {
        return colibri_refuse(fault, "member");
    }
    if (message->count > UINT64_C(9223372036854775807)) {
        return colibri_refuse(fault, "count");
    }
    if (message->greedy > 1u) {
        return colibri_refuse(fault, "greedy");
    }
    room += colibri_extra_room(message->sum);
    if (capacity < room) {
        (void)colibri_fail(fault, "", COLIBRI_RULE_NONE);
        return 0u;
    }
    out.at = to;
    colibri_put_bytes(&out, "GRPE", 4u);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->id);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->member);
    colibri_put_char(&out, ' ');
    colibri_put_fixed(&out, message->sum, 6u);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->count);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->greedy);
    colibri_put_char(&out, '\n');
    return (size_t)(out.at - to);
}

/* ---------------------------------------------------------------- reading commands */

typedef enum colibri_command_kind {
    COLIBRI_COMMAND_UNKNOWN,
    COLIBRI_COMMAND_SUBMIT,
    COLIBRI_COMMAND_IMAGE,
    COLIBRI_COMMAND_STOP,
    COLIBRI_COMMAND_CANCEL
} colibri_command_kind;

/* One command. `id` is the one to answer with (0 when it cannot be read); `payload_bytes` is what follows the header
 * line: the payloads and one line feed, or 0. It is to be read, or skipped, even when the command is refused. */
typedef struct colibri_command {
    colibri_command_kind kind;
    uint64_t id;
    uint64_t payload_bytes;
    union {
        colibri_submit submit;
        colibri_image image;
        colibri_stop stop;
        colibri_cancel cancel;
    } as;
} colibri_command;

/* The extension words at the end of SUBMIT, in their order, each at most once. */
static inline bool colibri_read_submit_keys(colibri_line *line, colibri_submit *message, colibri_fault *fault) {
    size_t last = 0u;
    colibri_bytes word;
    while (colibri_next_word(line, &word)) {
        colibri_bytes key;
        colibri_bytes value;
        uint64_t number = 0u;
        colibri_rule rule;
        if (!colibri_split_key(word, COLIBRI_LIMIT_KEY_NAME_LENGTH, &key, &value)) {
            return colibri_fail(fault, "", COLIBRI_RULE_WORD);
        }
        if (colibri_word_is(key, "logprobs")) {
            if (message->has_logprobs) {
                return colibri_fail(fault, "logprobs", COLIBRI_RULE_DUPLICATE_KEY);
            }
            if (last > 1u) {
                return colibri_fail(fault, "logprobs", COLIBRI_RULE_KEY_ORDER);
            }
            rule = colibri_read_key(value, COLIBRI_LIMIT_KEY_VALUE_DIGITS, 0u, 32u, &number);
            if (rule != COLIBRI_RULE_NONE) {
                return colibri_fail(fault, "logprobs", rule);
            }
            last = 1u;
            message->has_logprobs = true;
            message->logprobs = (uint8_t)number;
            continue;
        }
        if (colibri_word_is(key, "ids")) {
            if (message->has_ids) {
                return colibri_fail(fault, "ids", COLIBRI_RULE_DUPLICATE_KEY);
            }
            if (last > 2u) {
                return colibri_fail(fault, "ids", COLIBRI_RULE_KEY_ORDER);
            }
            rule = colibri_read_key(value, COLIBRI_LIMIT_KEY_VALUE_DIGITS, 0u, 1u, &number);
            if (rule != COLIBRI_RULE_NONE) {
                return colibri_fail(fault, "ids", rule);
            }
            last = 2u;
            message->has_ids = true;
            message->ids = (uint8_t)number;
            continue;
        }
        if (colibri_word_is(key, "pin")) {
            if (message->has_pin) {
                return colibri_fail(fault, "pin", COLIBRI_RULE_DUPLICATE_KEY);
            }
            if (last > 3u) {
                return colibri_fail(fault, "pin", COLIBRI_RULE_KEY_ORDER);
            }
            rule = colibri_read_key(value, COLIBRI_LIMIT_KEY_VALUE_DIGITS, 0u, 1u, &number);
            if (rule != COLIBRI_RULE_NONE) {
                return colibri_fail(fault, "pin", rule);
            }
            last = 3u;
            message->has_pin = true;
            message->pin = (uint8_t)number;
            continue;
        }
        (void)colibri_fail(fault, "", COLIBRI_RULE_UNKNOWN_KEY);
        if (fault != NULL) {
            fault->key = key;
        }
        return false;
    }
    return true;
}

/* SUBMIT <id> <slot> <prompt_size> <max_tokens> <temperature> <top_p> [<extra_size> [<key>=<value>]*]: the words after the kind; `words` counts them with the kind. */
static inline bool colibri_read_submit(colibri_line line, size_t words, colibri_submit *message, colibri_fault *fault) {
    colibri_bytes word;
    colibri_rule rule = COLIBRI_RULE_NONE;
    uint64_t number = 0u;
    double decimal = 0.0;
    (void)number;
    (void)decimal;
    memset(message, 0, sizeof *message);
    if (words < 7u) {
        return colibri_fail(fault, "", COLIBRI_RULE_WORD_COUNT);
    }
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint(word, 1u, UINT64_C(18446744073709551615), &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "id", rule);
    }
    message->id = number;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint(word, 0u, 511u, &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "slot", rule);
    }
    message->slot = (uint16_t)number;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint(word, 0u, 16777216u, &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "prompt_size", rule);
    }
    message->prompt.size = (size_t)number;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint(word, 0u, 2147483647u, &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "max_tokens", rule);
    }
    message->max_tokens = (uint32_t)number;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_ranged(word, 0.0, 2.0, &decimal);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "temperature", rule);
    }
    message->temperature = decimal;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_ranged(word, 7.006492321624087e-46, 1.0, &decimal);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "top_p", rule);
    }
    message->top_p = decimal;
    if (words > 7u) {
        (void)colibri_next_word(&line, &word);
        rule = colibri_read_uint(word, 0u, 1048576u, &number);
        if (rule != COLIBRI_RULE_NONE) {
            return colibri_fail(fault, "extra_size", rule);
        }
        message->extra.size = (size_t)number;
        if (!colibri_read_submit_keys(&line, message, fault)) {
            return false;
        }
    }
    if (message->max_tokens == 0u
        && !(message->has_logprobs && message->logprobs > 0u)) {
        return colibri_fail(fault, "max_tokens", COLIBRI_RULE_RANGE);
    }
    return rule == COLIBRI_RULE_NONE;
}

/* IMAGE <id> <image_size> <grid_h> <grid_w>: the words after the kind; `words` counts them with the kind. */
static inline bool colibri_read_image(colibri_line line, size_t words, colibri_image *message, colibri_fault *fault) {
    colibri_bytes word;
    colibri_rule rule = COLIBRI_RULE_NONE;
    uint64_t number = 0u;
    double decimal = 0.0;
    (void)number;
    (void)decimal;
    memset(message, 0, sizeof *message);
    if (words != 5u) {
        return colibri_fail(fault, "", COLIBRI_RULE_WORD_COUNT);
    }
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint(word, 1u, UINT64_C(18446744073709551615), &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "id", rule);
    }
    message->id = number;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint(word, 1u, 67108864u, &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "image_size", rule);
    }
    message->image.size = (size_t)number;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint(word, 1u, 65535u, &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "grid_h", rule);
    }
    message->grid_h = (uint16_t)number;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint(word, 1u, 65535u, &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "grid_w", rule);
    }
    message->grid_w = (uint16_t)number;
    return rule == COLIBRI_RULE_NONE;
}

/* STOP <id>: the words after the kind; `words` counts them with the kind. */
static inline bool colibri_read_stop(colibri_line line, size_t words, colibri_stop *message, colibri_fault *fault) {
    colibri_bytes word;
    colibri_rule rule = COLIBRI_RULE_NONE;
    uint64_t number = 0u;
    double decimal = 0.0;
    (void)number;
    (void)decimal;
    memset(message, 0, sizeof *message);
    if (words != 2u) {
        return colibri_fail(fault, "", COLIBRI_RULE_WORD_COUNT);
    }
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint(word, 1u, UINT64_C(18446744073709551615), &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "id", rule);
    }
    message->id = number;
    return rule == COLIBRI_RULE_NONE;
}

/* CANCEL <id>: the words after the kind; `words` counts them with the kind. */
static inline bool colibri_read_cancel(colibri_line line, size_t words, colibri_cancel *message, colibri_fault *fault) {
    colibri_bytes word;
    colibri_rule rule = COLIBRI_RULE_NONE;
    uint64_t number = 0u;
    double decimal = 0.0;
    (void)number;
    (void)decimal;
    memset(message, 0, sizeof *message);
    if (words != 2u) {
        return colibri_fail(fault, "", COLIBRI_RULE_WORD_COUNT);
    }
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint(word, 1u, UINT64_C(18446744073709551615), &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "id", rule);
    }
    message->id = number;
    return rule == COLIBRI_RULE_NONE;
}

/* The number in word number `place` (the kind is 0); false when there is none or it is out of range. */
static inline bool colibri_number_at(colibri_line line, size_t place, uint64_t low, uint64_t high, uint64_t *number) {
    colibri_bytes word;
    size_t at;
    for (at = 0u; at <= place; at++) {
        if (!colibri_next_word(&line, &word)) {
            return false;
        }
    }
    return colibri_read_uint(word, low, high, number) == COLIBRI_RULE_NONE;
}

/* Most bytes a refused header can name: more is not a byte count anybody can send. */
#define COLIBRI_LARGEST_SIZE UINT64_C(0x7fffffffffffffff)

/* Where the command ends, whatever else is wrong with it: fills kind, id and payload_bytes. */
static inline void colibri_frame_command(colibri_line line, colibri_command *command) {
    const colibri_line start = line;
    colibri_bytes word;
    uint64_t number = 0u;
    bool named = false;
    command->kind = COLIBRI_COMMAND_UNKNOWN;
    command->id = 0u;
    command->payload_bytes = 0u;
    if (!colibri_next_word(&line, &word)) {
        return;
    }
    if (colibri_word_is(word, "SUBMIT")) {
        bool readable = true;
        command->kind = COLIBRI_COMMAND_SUBMIT;
        readable = readable && colibri_number_at(start, 3u, 0u, COLIBRI_LARGEST_SIZE, &number);
        if (readable) {
            command->payload_bytes += number;
            named = true;
        }
        readable = readable && colibri_number_at(start, 7u, 0u, COLIBRI_LARGEST_SIZE, &number);
        if (readable) {
            command->payload_bytes += number;
            named = true;
        }
        (void)readable;
    }
    if (colibri_word_is(word, "IMAGE")) {
        bool readable = true;
        command->kind = COLIBRI_COMMAND_IMAGE;
        readable = readable && colibri_number_at(start, 2u, 0u, COLIBRI_LARGEST_SIZE, &number);
        if (readable) {
            command->payload_bytes += number;
            named = true;
        }
        (void)readable;
    }
    if (colibri_word_is(word, "STOP")) {
        bool readable = true;
        command->kind = COLIBRI_COMMAND_STOP;
        (void)readable;
    }
    if (colibri_word_is(word, "CANCEL")) {
        bool readable = true;
        command->kind = COLIBRI_COMMAND_CANCEL;
        (void)readable;
    }
    if (named) {
        command->payload_bytes++;
    }
    if (command->kind != COLIBRI_COMMAND_UNKNOWN && colibri_number_at(start, 1u, 1u, UINT64_C(18446744073709551615), &number)) {
        command->id = number;
    }
}

/* Read one header line (without its line feed) that is not blank. False: answer ERROR with command->id, skip
 * command->payload_bytes; after the rule line_limit nothing can be trusted: answer BAD_FRAME and leave. */
static inline bool colibri_read_command(const char *data, size_t size, colibri_command *command, colibri_fault *fault) {
    colibri_line line;
    colibri_bytes word;
    size_t words;
    line.at = data;
    line.end = data + size;
    if (size > COLIBRI_LIMIT_COMMAND_LINE_BYTES) {
        command->kind = COLIBRI_COMMAND_UNKNOWN;
        command->id = 0u;
        command->payload_bytes = 0u;
        return colibri_fail(fault, "", COLIBRI_RULE_LINE_LIMIT);
    }
    words = colibri_count_words(line);
    colibri_frame_command(line, command);
    (void)colibri_next_word(&line, &word);
    switch (command->kind) {
    case COLIBRI_COMMAND_SUBMIT:
        return colibri_read_submit(line, words, &command->as.submit, fault);
    case COLIBRI_COMMAND_IMAGE:
        return colibri_read_image(line, words, &command->as.image, fault);
    case COLIBRI_COMMAND_STOP:
        return colibri_read_stop(line, words, &command->as.stop, fault);
    case COLIBRI_COMMAND_CANCEL:
        return colibri_read_cancel(line, words, &command->as.cancel, fault);
    case COLIBRI_COMMAND_UNKNOWN:
    default:
        return colibri_fail(fault, "", COLIBRI_RULE_UNKNOWN_KIND);
    }
}

/* Point the command at its payload of payload_bytes bytes. False: the line feed after it is missing, answer BAD_FRAME. */
static inline bool colibri_take_payload(colibri_command *command, const char *payload, colibri_fault *fault) {
    const char *at = payload;
    if (command->payload_bytes == 0u) {
        return true;
    }
    if (payload[command->payload_bytes - 1u] != '\n') {
        return colibri_fail(fault, "", COLIBRI_RULE_TERMINATOR);
    }
    if (command->kind == COLIBRI_COMMAND_SUBMIT) {
        command->as.submit.prompt.data = at;
        at += command->as.submit.prompt.size;
    }
    if (command->kind == COLIBRI_COMMAND_SUBMIT) {
        command->as.submit.extra.data = at;
        at += command->as.submit.extra.size;
    }
    if (command->kind == COLIBRI_COMMAND_IMAGE) {
        command->as.image.image.data = at;
        at += command->as.image.image.size;
    }
    (void)at;
    return true;
}

#ifdef COLIBRI_GATEWAY_SIDE
/* ---------------------------------------------------------------- writing commands */

/* value as printf("%.8g") writes it in the C locale. */
static inline void colibri_put_general(colibri_out *out, double value) {
    out->at += sprintf(out->at, "%.8g", value);
}

/* Room that any SUBMIT header needs, without free text, counted words and payloads. */
#define COLIBRI_WRITE_SUBMIT_ROOM 140u

/* Write one SUBMIT. */
static inline size_t colibri_write_submit(char *to, size_t capacity, const colibri_submit *message, colibri_fault *fault) {
    size_t room = COLIBRI_WRITE_SUBMIT_ROOM;
    colibri_out out;
    if (message->id < 1u) {
        return colibri_refuse(fault, "id");
    }
    if (message->slot > 511u) {
        return colibri_refuse(fault, "slot");
    }
    if (message->prompt.size > 16777216u) {
        return colibri_refuse(fault, "prompt_size");
    }
    if (message->max_tokens > 2147483647u) {
        return colibri_refuse(fault, "max_tokens");
    }
    if (!((double)(float)message->temperature >= 0.0) || !(message->temperature <= 2.0)) {
        return colibri_refuse(fault, "temperature");
    }
    if (!((double)(float)message->top_p >= 0.0) || !((double)(float)message->top_p > 0.0) || !(message->top_p <= 1.0)) {
        return colibri_refuse(fault, "top_p");
    }
    if (message->extra.size != 0u || message->has_logprobs || message->has_ids || message->has_pin) {
        if (message->extra.size > 1048576u) {
            return colibri_refuse(fault, "extra_size");
        }
    }
    if (message->has_logprobs && message->logprobs > 32u) {
        return colibri_refuse(fault, "logprobs");
    }
    if (message->has_ids && message->ids > 1u) {
        return colibri_refuse(fault, "ids");
    }
    if (message->has_pin && message->pin > 1u) {
        return colibri_refuse(fault, "pin");
    }
    if (message->max_tokens == 0u
        && !(message->has_logprobs && message->logprobs > 0u)) {
        return colibri_refuse(fault, "max_tokens");
    }
    room += message->prompt.size;
    room += message->extra.size;
    room += 1u;
    if (capacity < room) {
        (void)colibri_fail(fault, "", COLIBRI_RULE_NONE);
        return 0u;
    }
    out.at = to;
    colibri_put_bytes(&out, "SUBMIT", 6u);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->id);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->slot);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->prompt.size);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->max_tokens);
    colibri_put_char(&out, ' ');
    colibri_put_general(&out, message->temperature);
    colibri_put_char(&out, ' ');
    colibri_put_general(&out, message->top_p);
    if (message->extra.size != 0u || message->has_logprobs || message->has_ids || message->has_pin) {
        colibri_put_char(&out, ' ');
        colibri_put_uint(&out, message->extra.size);
        if (message->has_logprobs) {
            colibri_put_bytes(&out, " logprobs=", 10u);
            colibri_put_uint(&out, message->logprobs);
        }
        if (message->has_ids) {
            colibri_put_bytes(&out, " ids=", 5u);
            colibri_put_uint(&out, message->ids);
        }
        if (message->has_pin) {
            colibri_put_bytes(&out, " pin=", 5u);
            colibri_put_uint(&out, message->pin);
        }
    }
    colibri_put_char(&out, '\n');
    colibri_put_bytes(&out, message->prompt.data, message->prompt.size);
    colibri_put_bytes(&out, message->extra.data, message->extra.size);
    colibri_put_char(&out, '\n');
    return (size_t)(out.at - to);
}

/* Room that any IMAGE header needs, without free text, counted words and payloads. */
#define COLIBRI_WRITE_IMAGE_ROOM 48u

/* Write one IMAGE. */
static inline size_t colibri_write_image(char *to, size_t capacity, const colibri_image *message, colibri_fault *fault) {
    size_t room = COLIBRI_WRITE_IMAGE_ROOM;
    colibri_out out;
    if (message->id < 1u) {
        return colibri_refuse(fault, "id");
    }
    if (message->image.size < 1u || message->image.size > 67108864u) {
        return colibri_refuse(fault, "image_size");
    }
    if (message->grid_h < 1u) {
        return colibri_refuse(fault, "grid_h");
    }
    if (message->grid_w < 1u) {
        return colibri_refuse(fault, "grid_w");
    }
    room += message->image.size;
    room += 1u;
    if (capacity < room) {
        (void)colibri_fail(fault, "", COLIBRI_RULE_NONE);
        return 0u;
    }
    out.at = to;
    colibri_put_bytes(&out, "IMAGE", 5u);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->id);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->image.size);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->grid_h);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->grid_w);
    colibri_put_char(&out, '\n');
    colibri_put_bytes(&out, message->image.data, message->image.size);
    colibri_put_char(&out, '\n');
    return (size_t)(out.at - to);
}

/* Room that any STOP header needs, without free text, counted words and payloads. */
#define COLIBRI_WRITE_STOP_ROOM 26u

/* Write one STOP. */
static inline size_t colibri_write_stop(char *to, size_t capacity, const colibri_stop *message, colibri_fault *fault) {
    size_t room = COLIBRI_WRITE_STOP_ROOM;
    colibri_out out;
    if (message->id < 1u) {
        return colibri_refuse(fault, "id");
    }
    if (capacity < room) {
        (void)colibri_fail(fault, "", COLIBRI_RULE_NONE);
        return 0u;
    }
    out.at = to;
    colibri_put_bytes(&out, "STOP", 4u);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->id);
    colibri_put_char(&out, '\n');
    return (size_t)(out.at - to);
}

/* Room that any CANCEL header needs, without free text, counted words and payloads. */
#define COLIBRI_WRITE_CANCEL_ROOM 28u

/* Write one CANCEL. */
static inline size_t colibri_write_cancel(char *to, size_t capacity, const colibri_cancel *message, colibri_fault *fault) {
    size_t room = COLIBRI_WRITE_CANCEL_ROOM;
    colibri_out out;
    if (message->id < 1u) {
        return colibri_refuse(fault, "id");
    }
    if (capacity < room) {
        (void)colibri_fail(fault, "", COLIBRI_RULE_NONE);
        return 0u;
    }
    out.at = to;
    colibri_put_bytes(&out, "CANCEL", 6u);
    colibri_put_char(&out, ' ');
    colibri_put_uint(&out, message->id);
    colibri_put_char(&out, '\n');
    return (size_t)(out.at - to);
}

/* ---------------------------------------------------------------- reading frames */

typedef enum colibri_frame_kind {
    COLIBRI_FRAME_UNKNOWN,
    COLIBRI_FRAME_ACCEPT,
    COLIBRI_FRAME_DATA,
    COLIBRI_FRAME_ECHO,
    COLIBRI_FRAME_TOOL,
    COLIBRI_FRAME_DONE,
    COLIBRI_FRAME_ERROR,
    COLIBRI_FRAME_PROF,
    COLIBRI_FRAME_TIERS,
    COLIBRI_FRAME_HWINFO,
    COLIBRI_FRAME_EMAP,
    COLIBRI_FRAME_HITS,
    COLIBRI_FRAME_PERF,
    COLIBRI_FRAME_ENTROPY,
    COLIBRI_FRAME_GPUS,
    COLIBRI_FRAME_TOPK,
    COLIBRI_FRAME_REPIN,
    COLIBRI_FRAME_GRPP,
    COLIBRI_FRAME_GRPG,
    COLIBRI_FRAME_GRPS,
    COLIBRI_FRAME_GRPE
} colibri_frame_kind;

/* Room for counted words; a frame's tables point into it. */
typedef struct colibri_tables {
    uint32_t tokens[32u];
    double token_logprobs[32u];
} colibri_tables;

/* One frame. `payload_bytes` is what follows the header line: the payload and one line feed, or 0. */
typedef struct colibri_frame {
    colibri_frame_kind kind;
    size_t payload_bytes;
    colibri_bytes payload;
    colibri_tables tables;
    union {
        colibri_accept accept;
        colibri_data data;
        colibri_echo echo;
        colibri_tool tool;
        colibri_done done;
        colibri_error error;
        colibri_prof prof;
        colibri_tiers tiers;
        colibri_hwinfo hwinfo;
        colibri_emap emap;
        colibri_hits hits;
        colibri_perf perf;
        colibri_entropy entropy;
        colibri_gpus gpus;
        colibri_topk topk;
        colibri_repin repin;
        colibri_grpp grpp;
        colibri_grpg grpg;
        colibri_grps grps;
        colibri_grpe grpe;
    } as;
} colibri_frame;

/* STAT <completion_tokens> <tokens_per_second> <cache_hit_percent> <rss_gb> [<prompt_tokens> [<length_limited> ...]]: the words after the kind; `words` counts them with the kind. */
static inline bool colibri_read_stat(colibri_line line, size_t words, colibri_stat *message, colibri_fault *fault) {
    colibri_bytes word;
    colibri_rule rule = COLIBRI_RULE_NONE;
    uint64_t number = 0u;
    double decimal = 0.0;
    (void)number;
    (void)decimal;
    memset(message, 0, sizeof *message);
    if (words < 5u) {
        return colibri_fail(fault, "", COLIBRI_RULE_WORD_COUNT);
    }
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint(word, 0u, UINT64_C(9223372036854775807), &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "completion_tokens", rule);
    }
    message->completion_tokens = number;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_finite(word, &decimal);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "tokens_per_second", rule);
    }
    message->tokens_per_second = decimal;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_finite(word, &decimal);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "cache_hit_percent", rule);
    }
    message->cache_hit_percent = decimal;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_finite(word, &decimal);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "rss_gb", rule);
    }
    message->rss_gb = decimal;
    if (words > 5u) {
        message->has_prompt_tokens = true;
        (void)colibri_next_word(&line, &word);
        rule = colibri_read_uint(word, 0u, UINT64_C(9223372036854775807), &number);
        if (rule != COLIBRI_RULE_NONE) {
            return colibri_fail(fault, "prompt_tokens", rule);
        }
        message->prompt_tokens = number;
        if (words > 6u) {
            message->has_length_limited = true;
            (void)colibri_next_word(&line, &word);
            rule = colibri_read_uint(word, 0u, 1u, &number);
            if (rule != COLIBRI_RULE_NONE) {
                return colibri_fail(fault, "length_limited", rule);
            }
            message->length_limited = (uint8_t)number;
        }
    }
    return rule == COLIBRI_RULE_NONE;
}

/* ACCEPT <id> <prompt_tokens> ...: the words after the kind; `words` counts them with the kind. */
static inline bool colibri_read_accept(colibri_line line, size_t words, colibri_accept *message, colibri_fault *fault) {
    colibri_bytes word;
    colibri_rule rule = COLIBRI_RULE_NONE;
    uint64_t number = 0u;
    double decimal = 0.0;
    (void)number;
    (void)decimal;
    memset(message, 0, sizeof *message);
    if (words < 3u) {
        return colibri_fail(fault, "", COLIBRI_RULE_WORD_COUNT);
    }
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint_or(word, 1u, UINT64_C(18446744073709551615), 0u, &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "id", rule);
    }
    message->id = number;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint(word, 0u, UINT64_C(9223372036854775807), &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "prompt_tokens", rule);
    }
    message->prompt_tokens = number;
    return rule == COLIBRI_RULE_NONE;
}

/* DATA <id> <size> [<logprob> <k> (<token> <token_logprob>){k}]: the words after the kind; `words` counts them with the kind. */
static inline bool colibri_read_data(colibri_line line, size_t words, colibri_data *message, colibri_tables *tables, colibri_fault *fault) {
    colibri_bytes word;
    colibri_rule rule = COLIBRI_RULE_NONE;
    uint64_t number = 0u;
    double decimal = 0.0;
    (void)number;
    (void)decimal;
    memset(message, 0, sizeof *message);
    if (words != 3u && words < 5u) {
        return colibri_fail(fault, "", COLIBRI_RULE_WORD_COUNT);
    }
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint_or(word, 1u, UINT64_C(18446744073709551615), 0u, &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "id", rule);
    }
    message->id = number;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint(word, 0u, 65536u, &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "size", rule);
    }
    message->payload.size = (size_t)number;
    if (words > 3u) {
        message->has_logprob = true;
        (void)colibri_next_word(&line, &word);
        rule = colibri_read_real(word, &decimal);
        if (rule != COLIBRI_RULE_NONE) {
            return colibri_fail(fault, "logprob", rule);
        }
        message->logprob = decimal;
        (void)colibri_next_word(&line, &word);
        rule = colibri_read_uint(word, 0u, 32u, &number);
        if (rule != COLIBRI_RULE_NONE) {
            return colibri_fail(fault, "k", rule);
        }
        message->k = (uint8_t)number;
        if (words != 5u + 2u * (size_t)message->k) {
            return colibri_fail(fault, "", COLIBRI_RULE_WORD_COUNT);
        }
        for (size_t entry = 0u; entry < message->k; entry++) {
            (void)colibri_next_word(&line, &word);
            rule = colibri_read_uint(word, 0u, 2147483647u, &number);
            if (rule != COLIBRI_RULE_NONE) {
                return colibri_fail(fault, "token", rule);
            }
            tables->tokens[entry] = (uint32_t)number;
            (void)colibri_next_word(&line, &word);
            rule = colibri_read_real(word, &decimal);
            if (rule != COLIBRI_RULE_NONE) {
                return colibri_fail(fault, "token_logprob", rule);
            }
            tables->token_logprobs[entry] = decimal;
        }
        message->tokens = tables->tokens;
        message->token_logprobs = tables->token_logprobs;
    }
    return rule == COLIBRI_RULE_NONE;
}

/* ECHO <id> <size> <position> <logprob> <k> (<token> <token_logprob>){k}: the words after the kind; `words` counts them with the kind. */
static inline bool colibri_read_echo(colibri_line line, size_t words, colibri_echo *message, colibri_tables *tables, colibri_fault *fault) {
    colibri_bytes word;
    colibri_rule rule = COLIBRI_RULE_NONE;
    uint64_t number = 0u;
    double decimal = 0.0;
    (void)number;
    (void)decimal;
    memset(message, 0, sizeof *message);
    if (words < 6u) {
        return colibri_fail(fault, "", COLIBRI_RULE_WORD_COUNT);
    }
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint_or(word, 1u, UINT64_C(18446744073709551615), 0u, &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "id", rule);
    }
    message->id = number;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint(word, 0u, 65536u, &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "size", rule);
    }
    message->payload.size = (size_t)number;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint(word, 0u, 4294967295u, &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "position", rule);
    }
    message->position = (uint32_t)number;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_real(word, &decimal);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "logprob", rule);
    }
    message->logprob = decimal;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint(word, 0u, 32u, &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "k", rule);
    }
    message->k = (uint8_t)number;
    if (words != 6u + 2u * (size_t)message->k) {
        return colibri_fail(fault, "", COLIBRI_RULE_WORD_COUNT);
    }
    for (size_t entry = 0u; entry < message->k; entry++) {
        (void)colibri_next_word(&line, &word);
        rule = colibri_read_uint(word, 0u, 2147483647u, &number);
        if (rule != COLIBRI_RULE_NONE) {
            return colibri_fail(fault, "token", rule);
        }
        tables->tokens[entry] = (uint32_t)number;
        (void)colibri_next_word(&line, &word);
        rule = colibri_read_real(word, &decimal);
        if (rule != COLIBRI_RULE_NONE) {
            return colibri_fail(fault, "token_logprob", rule);
        }
        tables->token_logprobs[entry] = decimal;
    }
    message->tokens = tables->tokens;
    message->token_logprobs = tables->token_logprobs;
    return rule == COLIBRI_RULE_NONE;
}

/* TOOL <id> <size>: the words after the kind; `words` counts them with the kind. */
static inline bool colibri_read_tool(colibri_line line, size_t words, colibri_tool *message, colibri_fault *fault) {
    colibri_bytes word;
    colibri_rule rule = COLIBRI_RULE_NONE;
    uint64_t number = 0u;
    double decimal = 0.0;
    (void)number;
    (void)decimal;
    memset(message, 0, sizeof *message);
    if (words != 3u) {
        return colibri_fail(fault, "", COLIBRI_RULE_WORD_COUNT);
    }
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint_or(word, 1u, UINT64_C(18446744073709551615), 0u, &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "id", rule);
    }
    message->id = number;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint(word, 0u, 65536u, &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "size", rule);
    }
    message->payload.size = (size_t)number;
    return rule == COLIBRI_RULE_NONE;
}

/* DONE <id> STAT <completion_tokens> <tokens_per_second> <cache_hit_percent> <rss_gb> [<prompt_tokens> [<length_limited> ...]]: the words after the kind; `words` counts them with the kind. */
static inline bool colibri_read_done(colibri_line line, size_t words, colibri_done *message, colibri_fault *fault) {
    colibri_bytes word;
    colibri_rule rule = COLIBRI_RULE_NONE;
    uint64_t number = 0u;
    double decimal = 0.0;
    (void)number;
    (void)decimal;
    memset(message, 0, sizeof *message);
    if (words < 7u) {
        return colibri_fail(fault, "", COLIBRI_RULE_WORD_COUNT);
    }
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint_or(word, 1u, UINT64_C(18446744073709551615), 0u, &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "id", rule);
    }
    message->id = number;
    (void)colibri_next_word(&line, &word);
    if (!colibri_word_is(word, "STAT")) {
        return colibri_fail(fault, "", COLIBRI_RULE_CONSTANT);
    }
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint(word, 0u, UINT64_C(9223372036854775807), &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "completion_tokens", rule);
    }
    message->completion_tokens = number;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_finite(word, &decimal);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "tokens_per_second", rule);
    }
    message->tokens_per_second = decimal;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_finite(word, &decimal);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "cache_hit_percent", rule);
    }
    message->cache_hit_percent = decimal;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_finite(word, &decimal);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "rss_gb", rule);
    }
    message->rss_gb = decimal;
    if (words > 7u) {
        message->has_prompt_tokens = true;
        (void)colibri_next_word(&line, &word);
        rule = colibri_read_uint(word, 0u, UINT64_C(9223372036854775807), &number);
        if (rule != COLIBRI_RULE_NONE) {
            return colibri_fail(fault, "prompt_tokens", rule);
        }
        message->prompt_tokens = number;
        if (words > 8u) {
            message->has_length_limited = true;
            (void)colibri_next_word(&line, &word);
            rule = colibri_read_uint(word, 0u, 1u, &number);
            if (rule != COLIBRI_RULE_NONE) {
                return colibri_fail(fault, "length_limited", rule);
            }
            message->length_limited = (uint8_t)number;
        }
    }
    return rule == COLIBRI_RULE_NONE;
}

/* ERROR <id> <words>*: the words after the kind; `words` counts them with the kind. */
static inline bool colibri_read_error(colibri_line line, size_t words, colibri_error *message, colibri_fault *fault) {
    colibri_bytes word;
    colibri_rule rule = COLIBRI_RULE_NONE;
    uint64_t number = 0u;
    double decimal = 0.0;
    (void)number;
    (void)decimal;
    memset(message, 0, sizeof *message);
    if (words < 2u) {
        return colibri_fail(fault, "", COLIBRI_RULE_WORD_COUNT);
    }
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint_or(word, 0u, UINT64_C(18446744073709551615), 0u, &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "id", rule);
    }
    message->id = number;
    message->words = colibri_rest(&line);
    while (colibri_next_word(&line, &word)) {
        rule = (colibri_is_word(word) ? COLIBRI_RULE_NONE : COLIBRI_RULE_WORD);
        if (rule != COLIBRI_RULE_NONE) {
            return colibri_fail(fault, "words", rule);
        }
    }
    return rule == COLIBRI_RULE_NONE;
}

/* PROF <wall_s> <prompt_tokens> <completion_tokens> <disk_s> <wait_s> <matmul_s> <attention_s> <head_s> <forwards> ...: the words after the kind; `words` counts them with the kind. */
static inline bool colibri_read_prof(colibri_line line, size_t words, colibri_prof *message, colibri_fault *fault) {
    colibri_bytes word;
    colibri_rule rule = COLIBRI_RULE_NONE;
    uint64_t number = 0u;
    double decimal = 0.0;
    (void)number;
    (void)decimal;
    memset(message, 0, sizeof *message);
    if (words < 10u) {
        return colibri_fail(fault, "", COLIBRI_RULE_WORD_COUNT);
    }
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_finite(word, &decimal);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "wall_s", rule);
    }
    message->wall_s = decimal;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_finite(word, &decimal);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "prompt_tokens", rule);
    }
    message->prompt_tokens = decimal;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_finite(word, &decimal);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "completion_tokens", rule);
    }
    message->completion_tokens = decimal;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_finite(word, &decimal);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "disk_s", rule);
    }
    message->disk_s = decimal;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_finite(word, &decimal);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "wait_s", rule);
    }
    message->wait_s = decimal;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_finite(word, &decimal);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "matmul_s", rule);
    }
    message->matmul_s = decimal;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_finite(word, &decimal);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "attention_s", rule);
    }
    message->attention_s = decimal;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_finite(word, &decimal);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "head_s", rule);
    }
    message->head_s = decimal;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_finite(word, &decimal);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "forwards", rule);
    }
    message->forwards = decimal;
    return rule == COLIBRI_RULE_NONE;
}

/* TIERS <vram> <ram> <disk> <vram_gb> <ram_gb> ...: the words after the kind; `words` counts them with the kind. */
static inline bool colibri_read_tiers(colibri_line line, size_t words, colibri_tiers *message, colibri_fault *fault) {
    colibri_bytes word;
    colibri_rule rule = COLIBRI_RULE_NONE;
    uint64_t number = 0u;
    double decimal = 0.0;
    (void)number;
    (void)decimal;
    memset(message, 0, sizeof *message);
    if (words < 6u) {
        return colibri_fail(fault, "", COLIBRI_RULE_WORD_COUNT);
    }
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_finite(word, &decimal);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "vram", rule);
    }
    message->vram = decimal;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_finite(word, &decimal);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "ram", rule);
    }
    message->ram = decimal;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_finite(word, &decimal);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "disk", rule);
    }
    message->disk = decimal;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_finite(word, &decimal);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "vram_gb", rule);
    }
    message->vram_gb = decimal;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_finite(word, &decimal);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "ram_gb", rule);
    }
    message->ram_gb = decimal;
    return rule == COLIBRI_RULE_NONE;
}

/* HWINFO <cores> <ram_total_gb> <ram_available_gb> <gpus> <vram_total_gb> <names>+: the words after the kind; `words` counts them with the kind. */
static inline bool colibri_read_hwinfo(colibri_line line, size_t words, colibri_hwinfo *message, colibri_fault *fault) {
    colibri_bytes word;
    colibri_rule rule = COLIBRI_RULE_NONE;
    uint64_t number = 0u;
    double decimal = 0.0;
    (void)number;
    (void)decimal;
    memset(message, 0, sizeof *message);
    if (words < 7u) {
        return colibri_fail(fault, "", COLIBRI_RULE_WORD_COUNT);
    }
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_finite(word, &decimal);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "cores", rule);
    }
    message->cores = decimal;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_finite(word, &decimal);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "ram_total_gb", rule);
    }
    message->ram_total_gb = decimal;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_finite(word, &decimal);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "ram_available_gb", rule);
    }
    message->ram_available_gb = decimal;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_finite(word, &decimal);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "gpus", rule);
    }
    message->gpus = decimal;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_finite(word, &decimal);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "vram_total_gb", rule);
    }
    message->vram_total_gb = decimal;
    message->names = colibri_rest(&line);
    while (colibri_next_word(&line, &word)) {
        rule = (colibri_is_word(word) ? COLIBRI_RULE_NONE : COLIBRI_RULE_WORD);
        if (rule != COLIBRI_RULE_NONE) {
            return colibri_fail(fault, "names", rule);
        }
    }
    return rule == COLIBRI_RULE_NONE;
}

/* EMAP <rows> <cols> <cells>: the words after the kind; `words` counts them with the kind. */
static inline bool colibri_read_emap(colibri_line line, size_t words, colibri_emap *message, colibri_fault *fault) {
    colibri_bytes word;
    colibri_rule rule = COLIBRI_RULE_NONE;
    uint64_t number = 0u;
    double decimal = 0.0;
    (void)number;
    (void)decimal;
    memset(message, 0, sizeof *message);
    if (words != 4u) {
        return colibri_fail(fault, "", COLIBRI_RULE_WORD_COUNT);
    }
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint(word, 0u, UINT64_C(9223372036854775807), &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "rows", rule);
    }
    message->rows = number;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint(word, 0u, UINT64_C(9223372036854775807), &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "cols", rule);
    }
    message->cols = number;
    (void)colibri_next_word(&line, &word);
    rule = (colibri_is_hex(word) ? COLIBRI_RULE_NONE : COLIBRI_RULE_WORD);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "cells", rule);
    }
    message->cells = word;
    return rule == COLIBRI_RULE_NONE;
}

/* HITS <rows> <cols> <cells>: the words after the kind; `words` counts them with the kind. */
static inline bool colibri_read_hits(colibri_line line, size_t words, colibri_hits *message, colibri_fault *fault) {
    colibri_bytes word;
    colibri_rule rule = COLIBRI_RULE_NONE;
    uint64_t number = 0u;
    double decimal = 0.0;
    (void)number;
    (void)decimal;
    memset(message, 0, sizeof *message);
    if (words != 4u) {
        return colibri_fail(fault, "", COLIBRI_RULE_WORD_COUNT);
    }
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint(word, 0u, UINT64_C(9223372036854775807), &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "rows", rule);
    }
    message->rows = number;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint(word, 0u, UINT64_C(9223372036854775807), &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "cols", rule);
    }
    message->cols = number;
    (void)colibri_next_word(&line, &word);
    rule = (colibri_is_hex(word) ? COLIBRI_RULE_NONE : COLIBRI_RULE_WORD);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "cells", rule);
    }
    message->cells = word;
    return rule == COLIBRI_RULE_NONE;
}

/* PERF <words>+: the words after the kind; `words` counts them with the kind. */
static inline bool colibri_read_perf(colibri_line line, size_t words, colibri_perf *message, colibri_fault *fault) {
    colibri_bytes word;
    colibri_rule rule = COLIBRI_RULE_NONE;
    uint64_t number = 0u;
    double decimal = 0.0;
    (void)number;
    (void)decimal;
    memset(message, 0, sizeof *message);
    if (words < 2u) {
        return colibri_fail(fault, "", COLIBRI_RULE_WORD_COUNT);
    }
    message->words = colibri_rest(&line);
    while (colibri_next_word(&line, &word)) {
        rule = (colibri_is_word(word) ? COLIBRI_RULE_NONE : COLIBRI_RULE_WORD);
        if (rule != COLIBRI_RULE_NONE) {
            return colibri_fail(fault, "words", rule);
        }
    }
    return rule == COLIBRI_RULE_NONE;
}

/* ENTROPY <words>+: the words after the kind; `words` counts them with the kind. */
static inline bool colibri_read_entropy(colibri_line line, size_t words, colibri_entropy *message, colibri_fault *fault) {
    colibri_bytes word;
    colibri_rule rule = COLIBRI_RULE_NONE;
    uint64_t number = 0u;
    double decimal = 0.0;
    (void)number;
    (void)decimal;
    memset(message, 0, sizeof *message);
    if (words < 2u) {
        return colibri_fail(fault, "", COLIBRI_RULE_WORD_COUNT);
    }
    message->words = colibri_rest(&line);
    while (colibri_next_word(&line, &word)) {
        rule = (colibri_is_word(word) ? COLIBRI_RULE_NONE : COLIBRI_RULE_WORD);
        if (rule != COLIBRI_RULE_NONE) {
            return colibri_fail(fault, "words", rule);
        }
    }
    return rule == COLIBRI_RULE_NONE;
}

/* GPUS <words>+: the words after the kind; `words` counts them with the kind. */
static inline bool colibri_read_gpus(colibri_line line, size_t words, colibri_gpus *message, colibri_fault *fault) {
    colibri_bytes word;
    colibri_rule rule = COLIBRI_RULE_NONE;
    uint64_t number = 0u;
    double decimal = 0.0;
    (void)number;
    (void)decimal;
    memset(message, 0, sizeof *message);
    if (words < 2u) {
        return colibri_fail(fault, "", COLIBRI_RULE_WORD_COUNT);
    }
    message->words = colibri_rest(&line);
    while (colibri_next_word(&line, &word)) {
        rule = (colibri_is_word(word) ? COLIBRI_RULE_NONE : COLIBRI_RULE_WORD);
        if (rule != COLIBRI_RULE_NONE) {
            return colibri_fail(fault, "words", rule);
        }
    }
    return rule == COLIBRI_RULE_NONE;
}

/* TOPK <words>+: the words after the kind; `words` counts them with the kind. */
static inline bool colibri_read_topk(colibri_line line, size_t words, colibri_topk *message, colibri_fault *fault) {
    colibri_bytes word;
    colibri_rule rule = COLIBRI_RULE_NONE;
    uint64_t number = 0u;
    double decimal = 0.0;
    (void)number;
    (void)decimal;
    memset(message, 0, sizeof *message);
    if (words < 2u) {
        return colibri_fail(fault, "", COLIBRI_RULE_WORD_COUNT);
    }
    message->words = colibri_rest(&line);
    while (colibri_next_word(&line, &word)) {
        rule = (colibri_is_word(word) ? COLIBRI_RULE_NONE : COLIBRI_RULE_WORD);
        if (rule != COLIBRI_RULE_NONE) {
            return colibri_fail(fault, "words", rule);
        }
    }
    return rule == COLIBRI_RULE_NONE;
}

/* REPIN <words>+: the words after the kind; `words` counts them with the kind. */
static inline bool colibri_read_repin(colibri_line line, size_t words, colibri_repin *message, colibri_fault *fault) {
    colibri_bytes word;
    colibri_rule rule = COLIBRI_RULE_NONE;
    uint64_t number = 0u;
    double decimal = 0.0;
    (void)number;
    (void)decimal;
    memset(message, 0, sizeof *message);
    if (words < 2u) {
        return colibri_fail(fault, "", COLIBRI_RULE_WORD_COUNT);
    }
    message->words = colibri_rest(&line);
    while (colibri_next_word(&line, &word)) {
        rule = (colibri_is_word(word) ? COLIBRI_RULE_NONE : COLIBRI_RULE_WORD);
        if (rule != COLIBRI_RULE_NONE) {
            return colibri_fail(fault, "words", rule);
        }
    }
    return rule == COLIBRI_RULE_NONE;
}

/* GRPP <id> <size> <position> <logprob> <k> ...: the words after the kind; `words` counts them with the kind. */
static inline bool colibri_read_grpp(colibri_line line, size_t words, colibri_grpp *message, colibri_fault *fault) {
    colibri_bytes word;
    colibri_rule rule = COLIBRI_RULE_NONE;
    uint64_t number = 0u;
    double decimal = 0.0;
    (void)number;
    (void)decimal;
    memset(message, 0, sizeof *message);
    if (words < 6u) {
        return colibri_fail(fault, "", COLIBRI_RULE_WORD_COUNT);
    }
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint_or(word, 1u, UINT64_C(18446744073709551615), 0u, &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "id", rule);
    }
    message->id = number;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint(word, 0u, 65536u, &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "size", rule);
    }
    message->payload.size = (size_t)number;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint(word, 0u, 4294967295u, &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "position", rule);
    }
    message->position = (uint32_t)number;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_real(word, &decimal);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "logprob", rule);
    }
    message->logprob = decimal;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint(word, 0u, UINT64_C(9223372036854775807), &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "k", rule);
    }
    message->k = number;
    return rule == COLIBRI_RULE_NONE;
}

/* GRPG <id> <size> <member> <position> <logprob> <k> ...: the words after the kind; `words` counts them with the kind. */
static inline bool colibri_read_grpg(colibri_line line, size_t words, colibri_grpg *message, colibri_fault *fault) {
    colibri_bytes word;
    colibri_rule rule = COLIBRI_RULE_NONE;
    uint64_t number = 0u;
    double decimal = 0.0;
    (void)number;
    (void)decimal;
    memset(message, 0, sizeof *message);
    if (words < 7u) {
        return colibri_fail(fault, "", COLIBRI_RULE_WORD_COUNT);
    }
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint_or(word, 1u, UINT64_C(18446744073709551615), 0u, &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "id", rule);
    }
    message->id = number;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint(word, 0u, 65536u, &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "size", rule);
    }
    message->payload.size = (size_t)number;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint(word, 0u, 2147483647u, &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "member", rule);
    }
    message->member = (uint32_t)number;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint(word, 0u, 4294967295u, &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "position", rule);
    }
    message->position = (uint32_t)number;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_real(word, &decimal);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "logprob", rule);
    }
    message->logprob = decimal;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint(word, 0u, UINT64_C(9223372036854775807), &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "k", rule);
    }
    message->k = number;
    return rule == COLIBRI_RULE_NONE;
}

/* GRPS <id> <member> <prompt_count> <member_count>: the words after the kind; `words` counts them with the kind. */
static inline bool colibri_read_grps(colibri_line line, size_t words, colibri_grps *message, colibri_fault *fault) {
    colibri_bytes word;
    colibri_rule rule = COLIBRI_RULE_NONE;
    uint64_t number = 0u;
    double decimal = 0.0;
    (void)number;
    (void)decimal;
    memset(message, 0, sizeof *message);
    if (words != 5u) {
        return colibri_fail(fault, "", COLIBRI_RULE_WORD_COUNT);
    }
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint_or(word, 1u, UINT64_C(18446744073709551615), 0u, &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "id", rule);
    }
    message->id = number;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint(word, 0u, 2147483647u, &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "member", rule);
    }
    message->member = (uint32_t)number;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint(word, 0u, UINT64_C(9223372036854775807), &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "prompt_count", rule);
    }
    message->prompt_count = number;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint(word, 0u, UINT64_C(9223372036854775807), &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "member_count", rule);
    }
    message->member_count = number;
    return rule == COLIBRI_RULE_NONE;
}

/* GRPE <id> <member> <sum> <count> <greedy>: the words after the kind; `words` counts them with the kind. */
static inline bool colibri_read_grpe(colibri_line line, size_t words, colibri_grpe *message, colibri_fault *fault) {
    colibri_bytes word;
    colibri_rule rule = COLIBRI_RULE_NONE;
    uint64_t number = 0u;
    double decimal = 0.0;
    (void)number;
    (void)decimal;
    memset(message, 0, sizeof *message);
    if (words != 6u) {
        return colibri_fail(fault, "", COLIBRI_RULE_WORD_COUNT);
    }
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint_or(word, 1u, UINT64_C(18446744073709551615), 0u, &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "id", rule);
    }
    message->id = number;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint(word, 0u, 2147483647u, &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "member", rule);
    }
    message->member = (uint32_t)number;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_real(word, &decimal);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "sum", rule);
    }
    message->sum = decimal;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint(word, 0u, UINT64_C(9223372036854775807), &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "count", rule);
    }
    message->count = number;
    (void)colibri_next_word(&line, &word);
    rule = colibri_read_uint(word, 0u, 1u, &number);
    if (rule != COLIBRI_RULE_NONE) {
        return colibri_fail(fault, "greedy", rule);
    }
    message->greedy = (uint8_t)number;
    return rule == COLIBRI_RULE_NONE;
}

/* Read one header line (without its line feed) that is not blank, after the handshake. */
static inline bool colibri_read_frame(const char *data, size_t size, colibri_frame *frame, colibri_fault *fault) {
    colibri_line line;
    colibri_bytes kind;
    size_t words;
    bool known = true;
    line.at = data;
    line.end = data + size;
    frame->kind = COLIBRI_FRAME_UNKNOWN;
    frame->payload_bytes = 0u;
    if (size > COLIBRI_LIMIT_FRAME_LINE_BYTES) {
        return colibri_fail(fault, "", COLIBRI_RULE_LINE_LIMIT);
    }
    words = colibri_count_words(line);
    (void)colibri_next_word(&line, &kind);
    if (colibri_word_is(kind, "ACCEPT")) {
        frame->kind = COLIBRI_FRAME_ACCEPT;
        known = colibri_read_accept(line, words, &frame->as.accept, fault);
        return known;
    }
    if (colibri_word_is(kind, "DATA")) {
        frame->kind = COLIBRI_FRAME_DATA;
        known = colibri_read_data(line, words, &frame->as.data, &frame->tables, fault);
        frame->payload_bytes = known ? frame->as.data.payload.size + 1u : 0u;
        return known;
    }
    if (colibri_word_is(kind, "ECHO")) {
        frame->kind = COLIBRI_FRAME_ECHO;
        known = colibri_read_echo(line, words, &frame->as.echo, &frame->tables, fault);
        frame->payload_bytes = known ? frame->as.echo.payload.size + 1u : 0u;
        return known;
    }
    if (colibri_word_is(kind, "TOOL")) {
        frame->kind = COLIBRI_FRAME_TOOL;
        known = colibri_read_tool(line, words, &frame->as.tool, fault);
        frame->payload_bytes = known ? frame->as.tool.payload.size + 1u : 0u;
        return known;
    }
    if (colibri_word_is(kind, "DONE")) {
        frame->kind = COLIBRI_FRAME_DONE;
        known = colibri_read_done(line, words, &frame->as.done, fault);
        return known;
    }
    if (colibri_word_is(kind, "ERROR")) {
        frame->kind = COLIBRI_FRAME_ERROR;
        known = colibri_read_error(line, words, &frame->as.error, fault);
        return known;
    }
    if (colibri_word_is(kind, "PROF")) {
        frame->kind = COLIBRI_FRAME_PROF;
        known = colibri_read_prof(line, words, &frame->as.prof, fault);
        return known;
    }
    if (colibri_word_is(kind, "TIERS")) {
        frame->kind = COLIBRI_FRAME_TIERS;
        known = colibri_read_tiers(line, words, &frame->as.tiers, fault);
        return known;
    }
    if (colibri_word_is(kind, "HWINFO")) {
        frame->kind = COLIBRI_FRAME_HWINFO;
        known = colibri_read_hwinfo(line, words, &frame->as.hwinfo, fault);
        return known;
    }
    if (colibri_word_is(kind, "EMAP")) {
        frame->kind = COLIBRI_FRAME_EMAP;
        known = colibri_read_emap(line, words, &frame->as.emap, fault);
        return known;
    }
    if (colibri_word_is(kind, "HITS")) {
        frame->kind = COLIBRI_FRAME_HITS;
        known = colibri_read_hits(line, words, &frame->as.hits, fault);
        return known;
    }
    if (colibri_word_is(kind, "PERF")) {
        frame->kind = COLIBRI_FRAME_PERF;
        known = colibri_read_perf(line, words, &frame->as.perf, fault);
        return known;
    }
    if (colibri_word_is(kind, "ENTROPY")) {
        frame->kind = COLIBRI_FRAME_ENTROPY;
        known = colibri_read_entropy(line, words, &frame->as.entropy, fault);
        return known;
    }
    if (colibri_word_is(kind, "GPUS")) {
        frame->kind = COLIBRI_FRAME_GPUS;
        known = colibri_read_gpus(line, words, &frame->as.gpus, fault);
        return known;
    }
    if (colibri_word_is(kind, "TOPK")) {
        frame->kind = COLIBRI_FRAME_TOPK;
        known = colibri_read_topk(line, words, &frame->as.topk, fault);
        return known;
    }
    if (colibri_word_is(kind, "REPIN")) {
        frame->kind = COLIBRI_FRAME_REPIN;
        known = colibri_read_repin(line, words, &frame->as.repin, fault);
        return known;
    }
    if (colibri_word_is(kind, "GRPP")) {
        frame->kind = COLIBRI_FRAME_GRPP;
        known = colibri_read_grpp(line, words, &frame->as.grpp, fault);
        frame->payload_bytes = known ? frame->as.grpp.payload.size + 1u : 0u;
        return known;
    }
    if (colibri_word_is(kind, "GRPG")) {
        frame->kind = COLIBRI_FRAME_GRPG;
        known = colibri_read_grpg(line, words, &frame->as.grpg, fault);
        frame->payload_bytes = known ? frame->as.grpg.payload.size + 1u : 0u;
        return known;
    }
    if (colibri_word_is(kind, "GRPS")) {
        frame->kind = COLIBRI_FRAME_GRPS;
        known = colibri_read_grps(line, words, &frame->as.grps, fault);
        return known;
    }
    if (colibri_word_is(kind, "GRPE")) {
        frame->kind = COLIBRI_FRAME_GRPE;
        known = colibri_read_grpe(line, words, &frame->as.grpe, fault);
        return known;
    }
    return colibri_fail(fault, "", COLIBRI_RULE_UNKNOWN_KIND);
}

/* Point the frame at its payload of payload_bytes bytes. False: the line feed after it is missing. */
static inline bool colibri_take_frame_payload(colibri_frame *frame, const char *payload, colibri_fault *fault) {
    if (frame->payload_bytes == 0u) {
        return true;
    }
    if (payload[frame->payload_bytes - 1u] != '\n') {
        return colibri_fail(fault, "", COLIBRI_RULE_TERMINATOR);
    }
    if (frame->kind == COLIBRI_FRAME_DATA) {
        frame->as.data.payload.data = payload;
    }
    if (frame->kind == COLIBRI_FRAME_ECHO) {
        frame->as.echo.payload.data = payload;
    }
    if (frame->kind == COLIBRI_FRAME_TOOL) {
        frame->as.tool.payload.data = payload;
    }
    if (frame->kind == COLIBRI_FRAME_GRPP) {
        frame->as.grpp.payload.data = payload;
    }
    if (frame->kind == COLIBRI_FRAME_GRPG) {
        frame->as.grpg.payload.data = payload;
    }
    return true;
}
#endif /* COLIBRI_GATEWAY_SIDE */

#ifdef __cplusplus
}
#endif

#endif /* COLIBRI_WIRE_H */
