#include "schema.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "json_rules.h"
#include "schema_compiler.h"

static bool fail(schema_compiler *from, const char *fault) { return rules_fail(from->to, fault); }

typedef enum keyword_class { ANNOTATION, TYPE, VALUES, CHOICE, REFERENCE, OF_OBJECTS, OF_ARRAYS, OF_STRINGS, OF_NUMBERS } keyword_class;

static const struct {
    const char *name;
    keyword_class class;
} keywords[] = {
    {"title", ANNOTATION},       {"description", ANNOTATION},
    {"default", ANNOTATION},     {"examples", ANNOTATION},
    {"$schema", ANNOTATION},     {"$id", ANNOTATION},
    {"$comment", ANNOTATION},    {"$defs", ANNOTATION},
    {"definitions", ANNOTATION}, {"deprecated", ANNOTATION},
    {"readOnly", ANNOTATION},    {"writeOnly", ANNOTATION},
    {"format", ANNOTATION},      {"strict", ANNOTATION},
    {"type", TYPE},              {"enum", VALUES},
    {"const", VALUES},           {"anyOf", CHOICE},
    {"oneOf", CHOICE},           {"allOf", CHOICE},
    {"$ref", REFERENCE},         {"properties", OF_OBJECTS},
    {"required", OF_OBJECTS},    {"additionalProperties", OF_OBJECTS},
    {"items", OF_ARRAYS},        {"prefixItems", OF_ARRAYS},
    {"minItems", OF_ARRAYS},     {"maxItems", OF_ARRAYS},
    {"minLength", OF_STRINGS},   {"maxLength", OF_STRINGS},
    {"minimum", OF_NUMBERS},     {"maximum", OF_NUMBERS},
    {"exclusiveMinimum", OF_NUMBERS}, {"exclusiveMaximum", OF_NUMBERS},
};

/* The classes of all keywords of a schema, one bit each. False: one is not known. */
static bool classify(schema_compiler *from, const json_value *schema, unsigned *classes) {
    *classes = 0;
    for (const json_value *item = schema->first; item != NULL; item = item->next) {
        bool known = false;
        for (size_t index = 0; index < sizeof keywords / sizeof keywords[0] && !known; index++) {
            if (text_is(item->name, item->name_size, keywords[index].name)) {
                *classes |= 1u << keywords[index].class;
                known = true;
            }
        }
        if (!known) {
            return fail(from, "the schema has a keyword that is not supported");
        }
    }
    return true;
}

static const char *const type_names[] = {"object", "array", "string", "number", "integer", "boolean", "null"};
#define TYPE_COUNT (sizeof type_names / sizeof type_names[0])
#define ALL_TYPES ((1u << TYPE_COUNT) - 1u)

static unsigned type_bit(const json_value *name) {
    for (size_t index = 0; index < TYPE_COUNT; index++) {
        if (json_is(name, type_names[index])) {
            return 1u << index;
        }
    }
    return 0;
}

/* The types a schema allows; 0: malformed. */
static unsigned types_of(const json_value *schema, unsigned classes) {
    const json_value *type = json_member(schema, "type");
    unsigned types = 0;
    if (type == NULL) {
        types |= (classes >> OF_OBJECTS & 1u) != 0 ? SCHEMA_OBJECT : 0u;
        types |= (classes >> OF_ARRAYS & 1u) != 0 ? SCHEMA_ARRAY : 0u;
        types |= (classes >> OF_STRINGS & 1u) != 0 ? SCHEMA_STRING : 0u;
        types |= (classes >> OF_NUMBERS & 1u) != 0 ? SCHEMA_NUMBER : 0u;
        return types == 0 ? ALL_TYPES : types;
    }
    if (type->kind != JSON_ARRAY) {
        return type_bit(type);
    }
    for (const json_value *item = type->first; item != NULL; item = item->next) {
        if (type_bit(item) == 0) {
            return 0;
        }
        types |= type_bit(item);
    }
    return types;
}

uint32_t schema_rule(schema_compiler *from, const json_value *schema) {
    const size_t at = (uintptr_t)schema / sizeof *schema % SCHEMA_BUCKETS;
    schema_entry *added;
    for (schema_entry *entry = from->buckets[at]; entry != NULL; entry = entry->next) {
        if (entry->schema == schema) {
            return entry->number;
        }
    }
    added = allocate(1, sizeof *added);
    *added = (schema_entry){schema, rules_add(from->to), from->buckets[at], NULL};
    from->buckets[at] = added;
    *from->last = added;
    from->last = &added->later;
    return added->number;
}

// ---------------------------------------------------------------- keywords

static bool matches_type(const json_value *value, unsigned types) {
    switch (value->kind) {
    case JSON_NULL:
        return (types & SCHEMA_NULL) != 0;
    case JSON_BOOLEAN:
        return (types & SCHEMA_BOOLEAN) != 0;
    case JSON_STRING:
        return (types & SCHEMA_STRING) != 0;
    case JSON_ARRAY:
        return (types & SCHEMA_ARRAY) != 0;
    case JSON_OBJECT:
        return (types & SCHEMA_OBJECT) != 0;
    case JSON_NUMBER:
    default:
        return (types & SCHEMA_NUMBER) != 0 || ((types & SCHEMA_INTEGER) != 0 && floor(value->number) == value->number);
    }
}

/* const, or the values of enum, as far as they are of the right type. */
static void compile_values(schema_compiler *from, const json_value *schema, unsigned types, uint32_t number) {
    const json_value *constant = json_member(schema, "const");
    const json_value *list = json_member(schema, "enum");
    const json_value *value = constant != NULL ? constant : list == NULL ? NULL : list->first;
    bool any = false;
    if ((constant != NULL && list != NULL) || (constant == NULL && (list == NULL || list->kind != JSON_ARRAY))) {
        fail(from, "the schema has a malformed enum");
        return;
    }
    for (; value != NULL; value = constant != NULL ? NULL : value->next) {
        sequence run = {NULL, 0, 0};
        if (matches_type(value, types)) {
            json_rules_literal(&run, value);
            rules_alternative(from->to, number, &run);
            any = true;
        }
        sequence_free(&run);
    }
    if (!any) {
        fail(from, "the schema has an enum without a value of its type");
    }
}

/* Whether no value can match two of the choices: each has types of its own. */
static bool are_apart(const json_value *choices) {
    unsigned seen = 0;
    for (const json_value *choice = choices->first; choice != NULL; choice = choice->next) {
        unsigned types = choice->kind == JSON_OBJECT ? types_of(choice, 0) : ALL_TYPES;
        types |= (types & (SCHEMA_NUMBER | SCHEMA_INTEGER)) != 0 ? SCHEMA_NUMBER | SCHEMA_INTEGER : 0u;
        if (types == 0 || (types & seen) != 0) {
            return false;
        }
        seen |= types;
    }
    return true;
}

static void compile_choice(schema_compiler *from, const json_value *schema, uint32_t number) {
    const json_value *any = json_member(schema, "anyOf");
    const json_value *one = json_member(schema, "oneOf");
    const json_value *both = json_member(schema, "allOf");
    const json_value *choices = any != NULL ? any : one != NULL ? one : both;
    if ((any != NULL) + (one != NULL) + (both != NULL) != 1 || choices->kind != JSON_ARRAY || choices->count == 0) {
        fail(from, "the schema combines choices in a way that is not supported");
        return;
    }
    if ((both != NULL && choices->count != 1) || (one != NULL && choices->count != 1 && !are_apart(choices))) {
        fail(from, "the schema has an allOf of several, or a oneOf whose choices may overlap");
        return;
    }
    for (const json_value *choice = choices->first; choice != NULL; choice = choice->next) {
        rules_alternative_rule(from->to, number, schema_rule(from, choice));
    }
}

/* Whether a step of a JSON pointer is the number of an item: digits, no zero before others. */
static bool is_index(const char *name, size_t length) {
    size_t digits = 0;
    while (digits < length && name[digits] >= '0' && name[digits] <= '9') {
        digits++;
    }
    return digits == length && length != 0 && length < 10 && (name[0] != '0' || length == 1);
}

/* The member of an object or array that a step of a JSON pointer names. */
static const json_value *step_into(const json_value *value, const char *step, size_t size) {
    char *name = allocate(size + 1u, 1);
    const json_value *found = NULL;
    size_t length = 0;
    for (size_t at = 0; at < size; at++) {
        if (step[at] == '~' && at + 1u < size) {
            name[length++] = step[++at] == '1' ? '/' : '~';
        } else {
            name[length++] = step[at];
        }
    }
    if (value->kind == JSON_OBJECT) {
        found = json_find(value, name, length);
    } else if (value->kind == JSON_ARRAY && is_index(name, length)) {
        found = json_item(value, strtoul(name, NULL, 10));
    }
    free(name);
    return found;
}

static void compile_reference(schema_compiler *from, const json_value *schema, uint32_t number) {
    const json_value *reference = json_member(schema, "$ref");
    const json_value *target = from->root;
    const char *at = reference->text;
    const char *end;
    if (reference->kind != JSON_STRING || reference->size == 0 || *at != '#') {
        fail(from, "the schema has a $ref to another document");
        return;
    }
    end = at++ + reference->size;
    while (target != NULL && at < end) {
        const char *stop = memchr(at + 1, '/', (size_t)(end - at - 1));
        stop = stop == NULL ? end : stop;
        target = *at == '/' ? step_into(target, at + 1, (size_t)(stop - at - 1)) : NULL;
        at = stop;
    }
    if (target == NULL) {
        fail(from, "the schema has a $ref to nothing");
        return;
    }
    rules_alternative_rule(from->to, number, schema_rule(from, target));
}

static void compile_types(schema_compiler *from, const json_value *schema, unsigned types, unsigned classes,
                          uint32_t number) {
    const json_rules *const parts = &from->parts;
    const bool numbers = (classes >> OF_NUMBERS & 1u) != 0;
    if ((types & SCHEMA_OBJECT) != 0) {
        schema_object(from, schema, number);
    }
    if ((types & SCHEMA_ARRAY) != 0) {
        schema_array(from, schema, number);
    }
    if ((types & SCHEMA_STRING) != 0) {
        schema_string(from, schema, number);
    }
    if ((types & (SCHEMA_NUMBER | SCHEMA_INTEGER)) != 0 && numbers) {
        schema_number(from, schema, (types & SCHEMA_NUMBER) == 0, number);
    } else if ((types & SCHEMA_NUMBER) != 0) {
        rules_alternative_rule(from->to, number, parts->number);
    } else if ((types & SCHEMA_INTEGER) != 0) {
        rules_alternative_rule(from->to, number, parts->integer);
    }
    if ((types & SCHEMA_BOOLEAN) != 0) {
        rules_alternative_rule(from->to, number, parts->boolean);
    }
    if ((types & SCHEMA_NULL) != 0) {
        rules_alternative_rule(from->to, number, parts->null);
    }
}

static void compile(schema_compiler *from, const json_value *schema, uint32_t number) {
    const unsigned assertions = ~(1u << ANNOTATION);
    unsigned classes;
    unsigned types;
    if (schema->kind == JSON_BOOLEAN && schema->truth) {
        rules_alternative_rule(from->to, number, from->parts.value);
        return;
    }
    if (schema->kind != JSON_OBJECT) {
        fail(from, schema->kind == JSON_BOOLEAN ? "the schema allows nothing" : "a schema must be an object or boolean");
        return;
    }
    if (!classify(from, schema, &classes)) {
        return;
    }
    types = types_of(schema, classes);
    if (types == 0) {
        fail(from, "the schema has a type that does not exist");
    } else if ((classes & assertions) == 1u << REFERENCE) {
        compile_reference(from, schema, number);
    } else if ((classes & assertions) == 1u << CHOICE) {
        compile_choice(from, schema, number);
    } else if ((classes & (1u << VALUES)) != 0 && (classes & assertions & ~(1u << VALUES | 1u << TYPE)) == 0) {
        compile_values(from, schema, types, number);
    } else if ((classes & (1u << REFERENCE | 1u << CHOICE | 1u << VALUES)) != 0) {
        fail(from, "the schema combines keywords in a way that is not supported");
    } else {
        compile_types(from, schema, types, classes, number);
    }
}

bool schema_compile(rules *grammar, const json_value *schema, uint32_t *root) {
    schema_compiler from = {grammar, {0}, schema, allocate(SCHEMA_BUCKETS, sizeof(schema_entry *)), NULL, NULL};
    from.last = &from.first;
    json_rules_open(&from.parts, grammar);
    *root = schema_rule(&from, schema);
    for (schema_entry *entry = from.first; entry != NULL && grammar->fault == NULL; entry = entry->later) {
        compile(&from, entry->schema, entry->number);
    }
    while (from.first != NULL) {
        schema_entry *const done = from.first;
        from.first = done->later;
        free(done);
    }
    free(from.buckets);
    return grammar->fault == NULL;
}
