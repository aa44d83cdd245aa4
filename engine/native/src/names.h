// Numbers by name, found in the same time however many there are and whoever chose them. A table of zeros is empty and
// valid. Names are not copied.
#ifndef COLIBRI_NATIVE_NAMES_H
#define COLIBRI_NATIVE_NAMES_H

#include <stddef.h>
#include <stdint.h>

#define NO_NAME UINT32_MAX

typedef struct name_table {
    struct name_entry *entries;
    size_t count;
    size_t mask;
} name_table;

// Where the number of a name is, until the next call; NO_NAME in it when the name is new.
uint32_t *name_table_place(name_table *table, const char *name, size_t size);

// The number of a name, or NO_NAME.
uint32_t name_table_number(const name_table *table, const char *name, size_t size);

void name_table_free(name_table *table);

#endif
