// JSON Schemas as grammars of compact JSON.
//
// Everything a compiled grammar lets through validates against the schema. Understood: booleans as schemas; type, enum,
// const, $ref within the document, anyOf, oneOf of different types, allOf of one; properties, required,
// additionalProperties; items, prefixItems, minItems, maxItems; minLength, maxLength; minimum, maximum and their exclusive
// forms. Annotations (format among them) are passed over. Any other keyword is refused. Where the language of a schema is
// hard to cut out exactly, the grammar is smaller than it: properties come in the order of the schema, numbers have a
// bounded count of digits, additional keys have no escapes.
#ifndef COLIBRI_NATIVE_SCHEMA_H
#define COLIBRI_NATIVE_SCHEMA_H

#include "json.h"
#include "rules.h"

// Adds the rules of a schema to an empty grammar; `*root` is the rule of the whole. False: `fault` says why.
bool schema_compile(rules *grammar, const json_value *schema, uint32_t *root);

#endif
