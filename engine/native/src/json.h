// A JSON reader for files and schemas: the whole document as a tree that points into one copy of the text.
//
// Guarantees: nesting is bounded, so the stack is; invalid UTF-8, lone surrogates and anything after the value are
// refused; of a key given twice the last one counts.
#ifndef COLIBRI_NATIVE_JSON_H
#define COLIBRI_NATIVE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A number is shorter than this.
#define JSON_NUMBER_BYTES 64

typedef enum json_kind { JSON_NULL, JSON_BOOLEAN, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT } json_kind;

typedef struct json_value {
    json_kind kind;
    bool truth;        // of a boolean
    double number;     // of a number
    const char *text;  // UTF-8 of a string, or a number as it is written; not terminated
    size_t size;
    const char *name; // key, when this is a member of an object
    size_t name_size;
    struct json_value *first; // of an array or object
    struct json_value *next;  // in the array or object this is in
    size_t count;
    struct json_index *index; // of an array or object of many
} json_value;

typedef struct json_document {
    json_value *root;
    char *source;
    struct json_block *blocks;
    struct json_index *indexes;
    const char *fault; // what is wrong, when reading failed
    size_t fault_at;   // byte offset of it
} json_document;

// False: `fault` says why. The document is to be freed either way.
bool json_read(json_document *document, const char *data, size_t size, unsigned depth);
void json_free(json_document *document);

// The member of an object, or NULL; NULL also when `value` is NULL or no object.
const json_value *json_member(const json_value *value, const char *name);

// The same for a name that is not terminated.
const json_value *json_find(const json_value *value, const char *name, size_t size);

// The item of an array at a place, or NULL.
const json_value *json_item(const json_value *value, size_t place);

// Whether `value` is the string `text`.
bool json_is(const json_value *value, const char *text);

// Whether `value` is a number written as an integer of at most `largest` that is not negative; puts it into `*number`.
bool json_count(const json_value *value, uint64_t largest, uint64_t *number);

// The value in few words for an error message; `to` has room for `size` bytes.
const char *json_describe(const json_value *value, char *to, size_t size);

#endif
