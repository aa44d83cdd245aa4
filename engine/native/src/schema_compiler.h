// Between the parts of the schema compiler: what is known so far, and the rules for each type.
#ifndef COLIBRI_NATIVE_SCHEMA_COMPILER_H
#define COLIBRI_NATIVE_SCHEMA_COMPILER_H

#include "json_rules.h"

#define SCHEMA_OBJECT 1u
#define SCHEMA_ARRAY 2u
#define SCHEMA_STRING 4u
#define SCHEMA_NUMBER 8u
#define SCHEMA_INTEGER 16u
#define SCHEMA_BOOLEAN 32u
#define SCHEMA_NULL 64u

#define SCHEMA_BUCKETS 65536u // a text of 1 MiB has up to 350,000 schemas

// A schema that has a rule; `later` is the one that got its rule next, which is the order of compiling.
typedef struct schema_entry {
    const json_value *schema;
    uint32_t number;
    struct schema_entry *next;
    struct schema_entry *later;
} schema_entry;

typedef struct schema_compiler {
    rules *to;
    json_rules parts;
    const json_value *root;
    schema_entry **buckets;
    schema_entry *first;
    schema_entry **last;
} schema_compiler;

// The rule of a schema, which is compiled when its turn comes: schemas that contain themselves end.
uint32_t schema_rule(schema_compiler *from, const json_value *schema);

// Each adds alternatives of `number` for one type of value.
void schema_object(schema_compiler *from, const json_value *schema, uint32_t number);
void schema_array(schema_compiler *from, const json_value *schema, uint32_t number);
void schema_string(schema_compiler *from, const json_value *schema, uint32_t number);
void schema_number(schema_compiler *from, const json_value *schema, bool integer, uint32_t number);

#endif
