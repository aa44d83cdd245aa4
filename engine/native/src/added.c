#include "added.h"

#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "unicode.h"
#include "utf8.h"
#include "vocabulary.h"

static bool truth_of(const json_value *entry, const char *name) {
    const json_value *value = json_member(entry, name);
    return value != NULL && value->kind == JSON_BOOLEAN && value->truth;
}

void added_tokens_add(added_tokens *list, const json_value *entry, uint32_t token) {
    const json_value *content = json_member(entry, "content");
    added_token *added;
    if (content->size == 0) {
        return;
    }
    list->tokens = reallocate(list->tokens, list->count + 1u, sizeof(added_token));
    added = &list->tokens[list->count++];
    added->text = allocate(content->size, 1);
    memcpy(added->text, content->text, content->size);
    added->size = content->size;
    added->token = token;
    added->single_word = truth_of(entry, "single_word");
    added->strip_left = truth_of(entry, "lstrip");
    added->strip_right = truth_of(entry, "rstrip");
}

static int by_first_byte(const void *left, const void *right) {
    const added_token *const one = left;
    const added_token *const other = right;
    const int first = (unsigned char)one->text[0];
    const int second = (unsigned char)other->text[0];
    if (first != second) {
        return first - second;
    }
    return one->size > other->size ? -1 : one->size < other->size;
}

void added_tokens_sort(added_tokens *list) {
    size_t at = 0;
    if (list->count != 0) {
        qsort(list->tokens, list->count, sizeof(added_token), by_first_byte);
    }
    for (size_t byte = 0; byte <= 256; byte++) {
        while (at < list->count && (unsigned char)list->tokens[at].text[0] < byte) {
            at++;
        }
        list->first[byte] = at;
    }
}

void added_tokens_free(added_tokens *list) {
    for (size_t index = 0; index < list->count; index++) {
        free(list->tokens[index].text);
    }
    free(list->tokens);
    memset(list, 0, sizeof *list);
}

bool added_tokens_strip(const added_tokens *list) {
    bool strip = false;
    for (size_t index = 0; index < list->count; index++) {
        strip = strip || list->tokens[index].strip_left || list->tokens[index].strip_right;
    }
    return strip;
}

uint32_t added_tokens_find(const added_tokens *list, const char *text) {
    const size_t size = strlen(text);
    for (size_t index = 0; index < list->count; index++) {
        if (list->tokens[index].size == size && memcmp(list->tokens[index].text, text, size) == 0) {
            return list->tokens[index].token;
        }
    }
    return NO_TOKEN;
}

static const added_token *longest_at(const added_tokens *list, const char *text, size_t size) {
    const unsigned char byte = (unsigned char)text[0];
    for (size_t index = list->first[byte]; index < list->first[byte + 1u]; index++) {
        const added_token *const token = &list->tokens[index];
        if (token->size <= size && memcmp(token->text, text, token->size) == 0) {
            return token;
        }
    }
    return NULL;
}

/* Where the character that ends at `at` begins. */
static size_t step_back(const char *text, size_t at) {
    do {
        at--;
    } while (at > 0 && ((unsigned char)text[at] & 0xc0u) == 0x80u);
    return at;
}

static bool stands_alone(const char *text, size_t size, size_t first, size_t end) {
    uint32_t character;
    if (first > 0) {
        const size_t before = step_back(text, first);
        if (utf8_read(text + before, first - before, &character) != 0 && unicode_is_word(character)) {
            return false;
        }
    }
    return end == size || utf8_read(text + end, size - end, &character) == 0 || !unicode_is_word(character);
}

static size_t strip_left(const char *text, size_t done, size_t first) {
    while (first > done) {
        uint32_t character;
        const size_t before = step_back(text, first);
        if (utf8_read(text + before, first - before, &character) == 0 || !unicode_is_space(character)) {
            break;
        }
        first = before;
    }
    return most(first, done);
}

static size_t strip_right(const char *text, size_t size, size_t end) {
    while (end < size) {
        uint32_t character;
        const size_t length = utf8_read(text + end, size - end, &character);
        if (length == 0 || !unicode_is_space(character)) {
            break;
        }
        end += length;
    }
    return end;
}

void added_tokens_cut(const added_tokens *list, const char *text, size_t size, part_taker take, void *context) {
    size_t done = 0;
    size_t at = 0;
    while (at < size && list->count != 0) {
        const added_token *const token = longest_at(list, text + at, size - at);
        size_t first = at;
        size_t end;
        if (token == NULL) {
            at++;
            continue;
        }
        at += token->size;
        end = at;
        if (token->single_word && !stands_alone(text, size, first, end)) {
            continue;
        }
        first = token->strip_left ? strip_left(text, done, first) : first;
        end = token->strip_right ? strip_right(text, size, end) : end;
        if (first > done) {
            take(context, text + done, first - done, NO_TOKEN);
        }
        take(context, text + first, end - first, token->token);
        done = end;
        at = end;
    }
    if (done < size) {
        take(context, text + done, size - done, NO_TOKEN);
    }
}
