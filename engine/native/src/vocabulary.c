#include "vocabulary.h"

#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "utf8.h"

#define LETTERS 0x144u // characters below this may stand for a byte

/* Printable Latin-1 stands for itself, the other bytes in order for the characters from 256 up. */
static bool stands_for_itself(uint32_t byte) {
    return (byte >= 0x21u && byte < 0x7fu) || (byte >= 0xa1u && byte < 0xadu) || (byte >= 0xaeu && byte < 0x100u);
}

uint32_t vocabulary_letter(unsigned char byte) {
    uint32_t letter = 256;
    if (stands_for_itself(byte)) {
        return byte;
    }
    for (uint32_t before = 0; before < byte; before++) {
        letter += stands_for_itself(before) ? 0u : 1u;
    }
    return letter;
}

static uint64_t hash_pair(uint64_t pair) {
    pair *= UINT64_C(0x9e3779b97f4a7c15);
    return pair ^ pair >> 31u;
}

static size_t table_size(size_t entries) {
    size_t size = 16;
    while (size < 2u * entries) {
        size *= 2u;
    }
    return size;
}

uint32_t vocabulary_find(const vocabulary *words, const char *text, size_t size) {
    return name_table_number(&words->tokens, text, size);
}

static merge_entry *merge_place(const vocabulary *words, uint64_t pair) {
    size_t at = (size_t)hash_pair(pair) & words->merge_mask;
    while (words->merges[at].token != NO_TOKEN && words->merges[at].pair != pair) {
        at = (at + 1u) & words->merge_mask;
    }
    return &words->merges[at];
}

const merge_entry *vocabulary_merge(const vocabulary *words, uint32_t left, uint32_t right) {
    const merge_entry *const found = merge_place(words, (uint64_t)left << 32u | right);
    return found->token == NO_TOKEN ? NULL : found;
}

void vocabulary_set_piece(vocabulary *words, uint64_t token, const char *data, size_t size, bool special,
                          const char *path) {
    token_piece *piece;
    if (token >= words->count) {
        refuse_launch("%s is not a valid tokenizer: token id %llu is too large", path, (unsigned long long)token);
    }
    piece = &words->pieces[token];
    free(piece->data);
    piece->data = allocate(size + 1u, 1);
    piece->size = size;
    piece->special = special;
    if (size != 0) {
        memcpy(piece->data, data, size);
    }
}

/* The bytes of a word in the byte alphabet; a word with other characters is taken literally. */
static void set_word_piece(vocabulary *words, uint64_t token, const json_value *word, const int *bytes,
                           const char *path) {
    char *decoded = allocate(word->name_size + 1u, 1);
    size_t size = 0;
    bool literal = false;
    for (size_t at = 0; at < word->name_size;) {
        uint32_t character;
        at += utf8_read(word->name + at, word->name_size - at, &character);
        if (character >= LETTERS || bytes[character] < 0) {
            literal = true;
            break;
        }
        decoded[size++] = (char)bytes[character];
    }
    if (literal) {
        vocabulary_set_piece(words, token, word->name, word->name_size, false, path);
    } else {
        vocabulary_set_piece(words, token, decoded, size, false, path);
    }
    free(decoded);
}

static void load_words(vocabulary *words, const json_value *vocab, const char *path) {
    int bytes[LETTERS];
    size_t all_letters = 0;
    char *free_letters;
    if (vocab == NULL || vocab->kind != JSON_OBJECT) {
        refuse_launch("%s is not a valid tokenizer: no vocab", path);
    }
    for (size_t letter = 0; letter < LETTERS; letter++) {
        bytes[letter] = -1;
    }
    for (int byte = 0; byte < 256; byte++) {
        bytes[vocabulary_letter((unsigned char)byte)] = byte;
    }
    for (const json_value *item = vocab->first; item != NULL; item = item->next) {
        all_letters += item->name_size;
    }
    free_letters = words->letters = allocate(most(all_letters, 1), 1);
    for (const json_value *item = vocab->first; item != NULL; item = item->next) {
        uint64_t token;
        if (!json_count(item, NO_TOKEN - 1u, &token)) {
            refuse_launch("%s is not a valid tokenizer: a word without an id", path);
        }
        set_word_piece(words, token, item, bytes, path);
        memcpy(free_letters, item->name, item->name_size);
        *name_table_place(&words->tokens, free_letters, item->name_size) = (uint32_t)token;
        free_letters += item->name_size;
    }
    for (int byte = 0; byte < 256; byte++) {
        char letter[4];
        const size_t size = utf8_write(letter, vocabulary_letter((unsigned char)byte));
        words->byte_tokens[byte] = vocabulary_find(words, letter, size);
    }
}

/* Both halves of a merge: ["left", "right"], or "left right". */
static bool split_merge(const json_value *item, const char **left, size_t *left_size, const char **right,
                        size_t *right_size) {
    if (item->kind == JSON_ARRAY && item->count == 2 && item->first->kind == JSON_STRING &&
        item->first->next->kind == JSON_STRING) {
        *left = item->first->text;
        *left_size = item->first->size;
        *right = item->first->next->text;
        *right_size = item->first->next->size;
        return true;
    }
    if (item->kind == JSON_STRING && item->size != 0) {
        const char *space = memchr(item->text, ' ', item->size);
        if (space != NULL) {
            *left = item->text;
            *left_size = (size_t)(space - item->text);
            *right = space + 1;
            *right_size = item->size - *left_size - 1u;
            return true;
        }
    }
    return false;
}

static void load_merges(vocabulary *words, const json_value *merges, const char *path) {
    uint32_t rank = 0;
    buffer joined = {NULL, 0, 0};
    if (merges == NULL || merges->kind != JSON_ARRAY || merges->count >= NO_TOKEN) {
        refuse_launch("%s is not a valid tokenizer: no merges", path);
    }
    words->merge_mask = table_size(merges->count) - 1u;
    words->merges = allocate(words->merge_mask + 1u, sizeof(merge_entry));
    for (size_t at = 0; at <= words->merge_mask; at++) {
        words->merges[at].token = NO_TOKEN;
    }
    for (const json_value *item = merges->first; item != NULL; item = item->next, rank++) {
        const char *left = NULL;
        const char *right = NULL;
        size_t left_size = 0;
        size_t right_size = 0;
        merge_entry added;
        uint32_t tokens[2];
        if (!split_merge(item, &left, &left_size, &right, &right_size)) {
            refuse_launch("%s is not a valid tokenizer: merge %u is malformed", path, rank);
        }
        joined.size = 0;
        buffer_append(&joined, left, left_size);
        buffer_append(&joined, right, right_size);
        tokens[0] = vocabulary_find(words, left, left_size);
        tokens[1] = vocabulary_find(words, right, right_size);
        added.rank = rank;
        added.token = vocabulary_find(words, joined.data == NULL ? "" : joined.data, joined.size);
        if (tokens[0] == NO_TOKEN || tokens[1] == NO_TOKEN || added.token == NO_TOKEN) {
            refuse_launch("%s is not a valid tokenizer: merge %u has a word that is not in the vocab", path, rank);
        }
        added.pair = (uint64_t)tokens[0] << 32u | tokens[1];
        *merge_place(words, added.pair) = added;
    }
    buffer_free(&joined);
}

static bool is_set(const json_value *value) {
    return value != NULL && value->kind != JSON_NULL && !(value->kind == JSON_BOOLEAN && !value->truth) &&
           !(value->kind == JSON_STRING && value->size == 0) && !(value->kind == JSON_NUMBER && value->number == 0.0);
}

void vocabulary_load(vocabulary *words, const json_value *model, size_t count, const char *path) {
    static const char *const unsupported[] = {"dropout", "continuing_subword_prefix", "end_of_word_suffix",
                                              "byte_fallback"};
    const json_value *type = json_member(model, "type");
    const json_value *unknown = json_member(model, "unk_token");
    memset(words, 0, sizeof *words);
    if (!json_is(type, "BPE")) {
        char text[128];
        refuse_launch("%s: the model %s is not supported (supported: BPE)", path,
                      json_describe(type, text, sizeof text));
    }
    for (size_t index = 0; index < sizeof unsupported / sizeof unsupported[0]; index++) {
        if (is_set(json_member(model, unsupported[index]))) {
            refuse_launch("%s: %s is not supported", path, unsupported[index]);
        }
    }
    words->count = count;
    words->pieces = allocate(count, sizeof(token_piece));
    words->whole_words_first = is_set(json_member(model, "ignore_merges"));
    load_words(words, json_member(model, "vocab"), path);
    load_merges(words, json_member(model, "merges"), path);
    words->unknown = NO_TOKEN;
    if (unknown != NULL && unknown->kind == JSON_STRING) {
        words->unknown = vocabulary_find(words, unknown->text, unknown->size);
    }
}

void vocabulary_free(vocabulary *words) {
    for (size_t token = 0; token < words->count; token++) {
        free(words->pieces[token].data);
    }
    free(words->pieces);
    name_table_free(&words->tokens);
    free(words->letters);
    free(words->merges);
    memset(words, 0, sizeof *words);
}
