#include "names.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base.h"

typedef struct name_entry {
    const char *name; // NULL: free
    size_t size;
    uint32_t number;
} name_entry;

/* Differs from process to process: a client must not know which names end up in one place of a table. */
static uint64_t name_hash(const char *name, size_t size) {
    static uint64_t seed = 0;
    uint64_t value;
    if (seed == 0 && getrandom(&seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed) {
        seed = (uintptr_t)&seed;
    }
    value = seed;
    for (size_t at = 0; at < size; at++) {
        value = (value ^ (unsigned char)name[at]) * UINT64_C(0x9e3779b97f4a7c15);
        value ^= value >> 32u;
    }
    return value;
}

static name_entry *name_place(const name_table *table, const char *name, size_t size) {
    size_t at = (size_t)name_hash(name, size) & table->mask;
    while (table->entries[at].name != NULL &&
           (table->entries[at].size != size || memcmp(table->entries[at].name, name, size) != 0)) {
        at = (at + 1u) & table->mask;
    }
    return &table->entries[at];
}

static void grow_names(name_table *table) {
    const name_table old = *table;
    const size_t size = old.entries == NULL ? 32u : 2u * (old.mask + 1u);
    table->entries = allocate(size, sizeof(name_entry));
    table->mask = size - 1u;
    for (size_t at = 0; old.entries != NULL && at <= old.mask; at++) {
        if (old.entries[at].name != NULL) {
            *name_place(table, old.entries[at].name, old.entries[at].size) = old.entries[at];
        }
    }
    free(old.entries);
}

uint32_t *name_table_place(name_table *table, const char *name, size_t size) {
    name_entry *entry;
    if (table->entries == NULL || 2u * table->count > table->mask) {
        grow_names(table);
    }
    entry = name_place(table, name, size);
    if (entry->name == NULL) {
        *entry = (name_entry){name, size, NO_NAME};
        table->count++;
    }
    return &entry->number;
}

uint32_t name_table_number(const name_table *table, const char *name, size_t size) {
    const name_entry *const entry = table->entries == NULL ? NULL : name_place(table, name, size);
    return entry == NULL || entry->name == NULL ? NO_NAME : entry->number;
}

void name_table_free(name_table *table) {
    free(table->entries);
    memset(table, 0, sizeof *table);
}
