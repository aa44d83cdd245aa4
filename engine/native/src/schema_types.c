#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "names.h"
#include "schema_compiler.h"

#define MOST_PROPERTIES 4096u
#define MOST_TIMES 100000u
#define FARTHEST INT64_C(1000000000000000) // 10^15: what a bound may be, and how far an open side reaches
#define NO_LIMIT SIZE_MAX

static bool fail(schema_compiler *from, const char *fault) { return rules_fail(from->to, fault); }

static void add_rule(sequence *run, uint32_t number) { sequence_add(run, ELEMENT_RULE, number); }

/* A count such as minItems, or `absent`. */
static size_t count_of(schema_compiler *from, const json_value *schema, const char *name, size_t absent) {
    const json_value *value = json_member(schema, name);
    uint64_t count = 0;
    if (value == NULL) {
        return absent;
    }
    if (!json_count(value, MOST_TIMES, &count)) {
        fail(from, "the schema has a count that is malformed or too large");
    }
    return (size_t)count;
}

// ---------------------------------------------------------------- objects

typedef struct property {
    const json_value *key;   // carries the name
    const json_value *value; // its schema
    bool required;
} property;

typedef struct object_plan {
    property *properties;
    size_t count;
    name_table places; // of the properties, by name
    const json_value *additional; // schema of further values; NULL: any value
    bool closed;                  // no further keys
} object_plan;

static bool add_property(schema_compiler *from, object_plan *plan, const json_value *key, const json_value *value,
                         bool required) {
    uint32_t *const place = name_table_place(&plan->places, key->name, key->name_size);
    if (plan->count == MOST_PROPERTIES || *place != NO_NAME) {
        return fail(from, "the schema has a property twice, or too many of them");
    }
    *place = (uint32_t)plan->count;
    plan->properties[plan->count++] = (property){key, value, required};
    return true;
}

/* A required property that is not listed has the schema of additional ones. Its name is a string in `required`; a copy
 * carries it as a name, and goes with the plan. */
static bool require(schema_compiler *from, object_plan *plan, const json_value *name, json_value *copy) {
    uint32_t known;
    if (name->kind != JSON_STRING) {
        return fail(from, "the schema has a malformed required");
    }
    known = name_table_number(&plan->places, name->text, name->size);
    if (known != NO_NAME) {
        plan->properties[known].required = true;
        return true;
    }
    if (plan->closed) {
        return fail(from, "the schema requires a property that it does not allow");
    }
    copy->name = name->text;
    copy->name_size = name->size;
    return add_property(from, plan, copy, plan->additional, true);
}

static uint32_t value_rule(schema_compiler *from, const json_value *schema) {
    return schema == NULL ? from->parts.value : schema_rule(from, schema);
}

/* Further keys, each behind a comma; the rule `*pair` is one key and value. */
static uint32_t further_keys(schema_compiler *from, const object_plan *plan, uint32_t *pair) {
    const json_value **keys = allocate(plan->count, sizeof *keys);
    const uint32_t further = rules_add(from->to);
    sequence run = {NULL, 0, 0};
    for (size_t index = 0; index < plan->count; index++) {
        keys[index] = plan->properties[index].key;
    }
    *pair = rules_add(from->to);
    add_rule(&run, json_rules_other_key(&from->parts, keys, plan->count));
    sequence_word(&run, ":");
    add_rule(&run, value_rule(from, plan->additional));
    rules_alternative(from->to, *pair, &run);
    run.count = 0;
    sequence_word(&run, ",");
    add_rule(&run, *pair);
    add_rule(&run, further);
    rules_alternative(from->to, further, &run);
    rules_alternative_empty(from->to, further);
    sequence_free(&run);
    free(keys);
    return further;
}

/* What may follow once all properties are dealt with: `ends[1]` behind another one, `ends[0]` as the first. */
static void plan_ends(schema_compiler *from, const object_plan *plan, uint32_t *ends) {
    uint32_t pair;
    uint32_t further;
    sequence run = {NULL, 0, 0};
    ends[0] = rules_add(from->to);
    ends[1] = rules_add(from->to);
    rules_alternative_empty(from->to, ends[0]);
    if (plan->closed) {
        rules_alternative_empty(from->to, ends[1]);
        return;
    }
    further = further_keys(from, plan, &pair);
    rules_alternative_rule(from->to, ends[1], further);
    add_rule(&run, pair);
    add_rule(&run, further);
    rules_alternative(from->to, ends[0], &run);
    sequence_free(&run);
}

static void write_object(schema_compiler *from, const object_plan *plan, uint32_t number) {
    uint32_t rest[2];
    sequence run = {NULL, 0, 0};
    plan_ends(from, plan, rest);
    for (size_t left = plan->count; left > 0 && from->to->fault == NULL; left--) {
        const property *const now = &plan->properties[left - 1u];
        const uint32_t value = value_rule(from, now->value);
        json_value name;
        uint32_t states[2];
        memset(&name, 0, sizeof name);
        name.kind = JSON_STRING;
        name.text = now->key->name;
        name.size = now->key->name_size;
        for (size_t started = 0; started < 2; started++) {
            states[started] = rules_add(from->to);
            run.count = 0;
            sequence_word(&run, started != 0 ? "," : "");
            json_rules_literal(&run, &name);
            sequence_word(&run, ":");
            add_rule(&run, value);
            add_rule(&run, rest[1]);
            rules_alternative(from->to, states[started], &run);
            if (!now->required) {
                rules_alternative_rule(from->to, states[started], rest[started]);
            }
        }
        memcpy(rest, states, sizeof rest);
    }
    run.count = 0;
    sequence_word(&run, "{");
    add_rule(&run, rest[0]);
    sequence_word(&run, "}");
    rules_alternative(from->to, number, &run);
    sequence_free(&run);
}

void schema_object(schema_compiler *from, const json_value *schema, uint32_t number) {
    const json_value *properties = json_member(schema, "properties");
    const json_value *required = json_member(schema, "required");
    const json_value *additional = json_member(schema, "additionalProperties");
    object_plan plan = {NULL, 0, {NULL, 0, 0}, additional, false};
    const size_t names = (properties == NULL ? 0 : properties->count) + (required == NULL ? 0 : required->count);
    json_value *copies;
    size_t copied = 0;
    bool good = (properties == NULL || properties->kind == JSON_OBJECT) &&
                (required == NULL || (required->kind == JSON_ARRAY && required->count <= MOST_PROPERTIES));
    if (!good) {
        fail(from, "the schema has malformed properties");
        return;
    }
    plan.closed = additional != NULL && additional->kind == JSON_BOOLEAN && !additional->truth;
    plan.properties = allocate(most(names, 1), sizeof(property));
    copies = allocate(required == NULL ? 1 : most(required->count, 1), sizeof(json_value));
    for (const json_value *item = properties == NULL ? NULL : properties->first; good && item != NULL; item = item->next) {
        good = add_property(from, &plan, item, item, false);
    }
    for (const json_value *item = required == NULL ? NULL : required->first; good && item != NULL; item = item->next) {
        good = require(from, &plan, item, &copies[copied++]);
    }
    if (good) {
        write_object(from, &plan, number);
    }
    free(plan.properties);
    name_table_free(&plan.places);
    free(copies);
}

// ---------------------------------------------------------------- arrays

/* The rule of the element at a place; false when there may be none. */
static bool element_rule(schema_compiler *from, const json_value *prefix, const json_value *items, size_t place,
                         uint32_t *number) {
    const json_value *schema = prefix == NULL ? NULL : json_item(prefix, place);
    schema = schema == NULL ? items : schema;
    if (schema != NULL && schema->kind == JSON_BOOLEAN && !schema->truth) {
        return false;
    }
    *number = value_rule(from, schema);
    return true;
}

void schema_array(schema_compiler *from, const json_value *schema, uint32_t number) {
    const json_value *prefix = json_member(schema, "prefixItems");
    const json_value *items = json_member(schema, "items");
    const size_t fewest = count_of(from, schema, "minItems", 0);
    const size_t most_items = count_of(from, schema, "maxItems", NO_LIMIT);
    const size_t listed = prefix == NULL ? 0 : prefix->count;
    const size_t last = most_items != NO_LIMIT ? most_items : most(most(listed, fewest), 1);
    uint32_t state = rules_add(from->to);
    sequence run = {NULL, 0, 0};
    if ((prefix != NULL && prefix->kind != JSON_ARRAY) || fewest > most_items || listed > MOST_PROPERTIES) {
        fail(from, "the schema has malformed items");
        return;
    }
    sequence_word(&run, "[");
    add_rule(&run, state);
    sequence_word(&run, "]");
    rules_alternative(from->to, number, &run);
    for (size_t place = 0; place <= last && from->to->fault == NULL; place++) {
        uint32_t item = 0;
        const bool more = place < most_items && element_rule(from, prefix, items, place, &item);
        const bool loops = place == last && most_items == NO_LIMIT;
        const uint32_t next = more && !loops ? rules_add(from->to) : state;
        if (place >= fewest) {
            rules_alternative_empty(from->to, state);
        } else if (!more) {
            fail(from, "the schema wants more items than it allows");
        }
        if (!more) {
            break;
        }
        run.count = 0;
        sequence_word(&run, place != 0 ? "," : "");
        add_rule(&run, item);
        add_rule(&run, next);
        rules_alternative(from->to, state, &run);
        state = next;
    }
    sequence_free(&run);
}

// ---------------------------------------------------------------- strings and numbers

void schema_string(schema_compiler *from, const json_value *schema, uint32_t number) {
    const size_t shortest = count_of(from, schema, "minLength", 0);
    const size_t longest = count_of(from, schema, "maxLength", NO_LIMIT);
    sequence run = {NULL, 0, 0};
    if (shortest > longest) {
        fail(from, "the schema has a minLength above its maxLength");
        return;
    }
    sequence_word(&run, "\"");
    sequence_repeat(from->to, &run, from->parts.character, shortest, longest);
    sequence_word(&run, "\"");
    rules_alternative(from->to, number, &run);
    sequence_free(&run);
}

/* The integer next to a bound on the allowed side; false when the keyword is malformed. `*found` stays when it is absent. */
static bool bound(const json_value *schema, const char *name, bool exclusive, bool lower, double *found) {
    const json_value *value = json_member(schema, name);
    double nearest;
    if (value == NULL) {
        return true;
    }
    if (value->kind != JSON_NUMBER || fabs(value->number) > (double)FARTHEST) {
        return false;
    }
    nearest = lower ? ceil(value->number) : floor(value->number);
    if (exclusive && nearest == value->number) {
        nearest += lower ? 1.0 : -1.0;
    }
    *found = lower ? fmax(*found, nearest) : fmin(*found, nearest);
    return true;
}

void schema_number(schema_compiler *from, const json_value *schema, bool integer, uint32_t number) {
    const sequence nothing = {NULL, 0, 0};
    double low = -INFINITY;
    double high = INFINITY;
    int64_t first;
    int64_t last;
    if (!bound(schema, "minimum", false, true, &low) || !bound(schema, "exclusiveMinimum", true, true, &low) ||
        !bound(schema, "maximum", false, false, &high) || !bound(schema, "exclusiveMaximum", true, false, &high)) {
        fail(from, "the schema has a bound that is malformed or too large");
        return;
    }
    first = isfinite(low) ? (int64_t)low : (isfinite(high) && high < 0 ? (int64_t)high : 0) - (FARTHEST - 1);
    last = isfinite(high) ? (int64_t)high : (isfinite(low) && low > 0 ? (int64_t)low : 0) + (FARTHEST - 1);
    if (first > last) {
        fail(from, "the schema has bounds with no integer between them");
        return;
    }
    json_rules_integers(from->to, number, first, last, &nothing);
    if (!integer) {
        json_rules_fractions(from->to, number, first, last);
    }
}
