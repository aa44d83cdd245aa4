#include "json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "names.h"
#include "utf8.h"

#define BLOCK_VALUES 256u
#define MANY 16u // items of an array or object that is indexed

typedef struct json_block {
    struct json_block *next;
    size_t used;
    json_value values[BLOCK_VALUES];
} json_block;

// The items of an array or object in their order, and the places of an object's by name.
typedef struct json_index {
    struct json_index *next;
    name_table names;
    json_value *items[];
} json_index;

typedef struct reader {
    json_document *document;
    char *at;
    char *end;
    unsigned depth; // levels still allowed
} reader;

static bool fail(reader *input, const char *fault) {
    if (input->document->fault == NULL) {
        input->document->fault = fault;
        input->document->fault_at = (size_t)(input->at - input->document->source);
    }
    return false;
}

static json_value *new_value(reader *input) {
    json_block *block = input->document->blocks;
    if (block == NULL || block->used == BLOCK_VALUES) {
        json_block *added = allocate(1, sizeof *added);
        added->next = block;
        input->document->blocks = block = added;
    }
    return &block->values[block->used++];
}

static void skip_space(reader *input) {
    while (input->at < input->end && strchr(" \t\r\n", *input->at) != NULL && *input->at != '\0') {
        input->at++;
    }
}

static bool take(reader *input, char character) {
    skip_space(input);
    if (input->at == input->end || *input->at != character) {
        return false;
    }
    input->at++;
    return true;
}

static bool read_unit(reader *input, uint32_t *unit) {
    *unit = 0;
    if (input->end - input->at < 4) {
        return fail(input, "unfinished \\u escape");
    }
    for (int digit = 0; digit < 4; digit++) {
        const char character = *input->at++;
        uint32_t value;
        if (character >= '0' && character <= '9') {
            value = (uint32_t)(character - '0');
        } else if (character >= 'a' && character <= 'f') {
            value = (uint32_t)(character - 'a') + 10u;
        } else if (character >= 'A' && character <= 'F') {
            value = (uint32_t)(character - 'A') + 10u;
        } else {
            return fail(input, "malformed \\u escape");
        }
        *unit = *unit << 4u | value;
    }
    return true;
}

static bool read_escape(reader *input, char **to) {
    static const char plain[] = "\"\\/bfnrt";
    static const char meaning[] = "\"\\/\b\f\n\r\t";
    const char *found;
    uint32_t character;
    uint32_t low;
    if (input->at == input->end) {
        return fail(input, "unfinished string");
    }
    if (*input->at != 'u') {
        found = *input->at == '\0' ? NULL : strchr(plain, *input->at);
        if (found == NULL) {
            return fail(input, "unknown escape");
        }
        input->at++;
        *(*to)++ = meaning[found - plain];
        return true;
    }
    input->at++;
    if (!read_unit(input, &character)) {
        return false;
    }
    if (character >= 0xd800u && character < 0xe000u) {
        if (character >= 0xdc00u || input->end - input->at < 2 || input->at[0] != '\\' || input->at[1] != 'u') {
            return fail(input, "lone surrogate");
        }
        input->at += 2;
        if (!read_unit(input, &low)) {
            return false;
        }
        if (low < 0xdc00u || low >= 0xe000u) {
            return fail(input, "lone surrogate");
        }
        character = 0x10000u + ((character - 0xd800u) << 10u) + (low - 0xdc00u);
    }
    *to += utf8_write(*to, character);
    return true;
}

/* A string is unescaped where it stands: every escape is longer than what it means. */
static bool read_string(reader *input, const char **text, size_t *size) {
    char *to;
    if (!take(input, '"')) {
        return fail(input, "expected a string");
    }
    *text = to = input->at;
    while (input->at < input->end && *input->at != '"') {
        if ((unsigned char)*input->at < 0x20u) {
            return fail(input, "control character in a string");
        }
        if (*input->at == '\\') {
            input->at++;
            if (!read_escape(input, &to)) {
                return false;
            }
        } else {
            *to++ = *input->at++;
        }
    }
    if (input->at == input->end) {
        return fail(input, "unfinished string");
    }
    *size = (size_t)(to - *text);
    input->at++;
    return true;
}

static size_t digits(reader *input) {
    size_t count = 0;
    while (input->at < input->end && *input->at >= '0' && *input->at <= '9') {
        input->at++;
        count++;
    }
    return count;
}

static bool read_number(reader *input, json_value *value) {
    char copy[JSON_NUMBER_BYTES];
    char *const start = input->at;
    size_t whole;
    if (*input->at == '-') {
        input->at++;
    }
    whole = digits(input);
    if (whole == 0 || (whole > 1 && *(input->at - whole) == '0')) {
        return fail(input, "expected a value");
    }
    if (input->at < input->end && *input->at == '.') {
        input->at++;
        if (digits(input) == 0) {
            return fail(input, "malformed number");
        }
    }
    if (input->at < input->end && (*input->at == 'e' || *input->at == 'E')) {
        input->at++;
        if (input->at < input->end && (*input->at == '+' || *input->at == '-')) {
            input->at++;
        }
        if (digits(input) == 0) {
            return fail(input, "malformed number");
        }
    }
    value->kind = JSON_NUMBER;
    value->text = start;
    value->size = (size_t)(input->at - start);
    if (value->size >= sizeof copy) {
        return fail(input, "number with too many digits");
    }
    memcpy(copy, start, value->size);
    copy[value->size] = '\0';
    value->number = strtod(copy, NULL);
    return true;
}

static bool read_word(reader *input, const char *word) {
    const size_t size = strlen(word);
    if ((size_t)(input->end - input->at) < size || memcmp(input->at, word, size) != 0) {
        return fail(input, "expected a value");
    }
    input->at += size;
    return true;
}

static void index_items(reader *input, json_value *value) {
    json_index *index = allocate(1, sizeof *index + value->count * sizeof(json_value *));
    uint32_t place = 0;
    index->next = input->document->indexes;
    input->document->indexes = index;
    value->index = index;
    for (json_value *item = value->first; item != NULL; item = item->next) {
        if (value->kind == JSON_OBJECT) {
            *name_table_place(&index->names, item->name, item->name_size) = place;
        }
        index->items[place++] = item;
    }
}

static bool read_value(reader *input, json_value *value);

/* The rest of an array or object whose opening bracket is read. */
static bool read_items(reader *input, json_value *value, char closing) {
    json_value **last = &value->first;
    if (input->depth == 0) {
        return fail(input, "nested too deeply");
    }
    input->depth--;
    if (!take(input, closing)) {
        do {
            json_value *item = new_value(input);
            if (closing == '}') {
                if (!read_string(input, &item->name, &item->name_size)) {
                    return false;
                }
                if (!take(input, ':')) {
                    return fail(input, "expected a colon");
                }
            }
            if (!read_value(input, item)) {
                return false;
            }
            *last = item;
            last = &item->next;
            value->count++;
        } while (take(input, ','));
        if (!take(input, closing)) {
            return fail(input, "expected a comma or a closing bracket");
        }
    }
    if (value->count > MANY) {
        index_items(input, value);
    }
    input->depth++;
    return true;
}

static bool read_value(reader *input, json_value *value) {
    skip_space(input);
    if (input->at == input->end) {
        return fail(input, "unfinished");
    }
    switch (*input->at) {
    case '{':
        input->at++;
        value->kind = JSON_OBJECT;
        return read_items(input, value, '}');
    case '[':
        input->at++;
        value->kind = JSON_ARRAY;
        return read_items(input, value, ']');
    case '"':
        value->kind = JSON_STRING;
        return read_string(input, &value->text, &value->size);
    case 't':
        value->kind = JSON_BOOLEAN;
        value->truth = true;
        return read_word(input, "true");
    case 'f':
        value->kind = JSON_BOOLEAN;
        return read_word(input, "false");
    case 'n':
        return read_word(input, "null");
    default:
        return read_number(input, value);
    }
}

bool json_read(json_document *document, const char *data, size_t size, unsigned depth) {
    reader input;
    memset(document, 0, sizeof *document);
    document->source = allocate(size + 1u, 1);
    if (size != 0) {
        memcpy(document->source, data, size);
    }
    input.document = document;
    input.at = document->source;
    input.end = document->source + size;
    input.depth = depth;
    if (!utf8_valid(data, size)) {
        return fail(&input, "not UTF-8 text");
    }
    document->root = new_value(&input);
    if (!read_value(&input, document->root)) {
        return false;
    }
    skip_space(&input);
    return input.at == input.end || fail(&input, "something follows the value");
}

void json_free(json_document *document) {
    while (document->blocks != NULL) {
        json_block *block = document->blocks;
        document->blocks = block->next;
        free(block);
    }
    while (document->indexes != NULL) {
        json_index *index = document->indexes;
        document->indexes = index->next;
        name_table_free(&index->names);
        free(index);
    }
    free(document->source);
    memset(document, 0, sizeof *document);
}

const json_value *json_find(const json_value *value, const char *name, size_t size) {
    const json_value *found = NULL;
    if (value == NULL || value->kind != JSON_OBJECT) {
        return NULL;
    }
    if (value->index != NULL) {
        const uint32_t place = name_table_number(&value->index->names, name, size);
        return place == NO_NAME ? NULL : value->index->items[place];
    }
    for (const json_value *item = value->first; item != NULL; item = item->next) {
        if (item->name_size == size && memcmp(item->name, name, size) == 0) {
            found = item;
        }
    }
    return found;
}

const json_value *json_member(const json_value *value, const char *name) {
    return json_find(value, name, strlen(name));
}

const json_value *json_item(const json_value *value, size_t place) {
    const json_value *item = value->first;
    if (value->index != NULL) {
        return place < value->count ? value->index->items[place] : NULL;
    }
    while (item != NULL && place-- > 0) {
        item = item->next;
    }
    return item;
}

bool json_is(const json_value *value, const char *text) {
    return value != NULL && value->kind == JSON_STRING && text_is(value->text, value->size, text);
}

bool json_count(const json_value *value, uint64_t largest, uint64_t *number) {
    uint64_t total = 0;
    if (value == NULL || value->kind != JSON_NUMBER) {
        return false;
    }
    for (size_t at = 0; at < value->size; at++) {
        const char character = value->text[at];
        if (character < '0' || character > '9') {
            return false;
        }
        if (total > (largest - (uint64_t)(character - '0')) / 10u) {
            return false;
        }
        total = total * 10u + (uint64_t)(character - '0');
    }
    *number = total;
    return true;
}

const char *json_describe(const json_value *value, char *to, size_t size) {
    const int length = value == NULL ? 0 : (int)least(value->size, 100u);
    if (value == NULL || value->kind == JSON_NULL) {
        snprintf(to, size, "null");
    } else if (value->kind == JSON_BOOLEAN) {
        snprintf(to, size, "%s", value->truth ? "true" : "false");
    } else if (value->kind == JSON_NUMBER) {
        snprintf(to, size, "%.*s", length, value->text);
    } else if (value->kind == JSON_STRING) {
        snprintf(to, size, "'%.*s'", length, value->text);
    } else {
        snprintf(to, size, "%s", value->kind == JSON_ARRAY ? "a list" : "an object");
    }
    return to;
}
