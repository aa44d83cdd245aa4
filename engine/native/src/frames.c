#include "frames.h"

#include <stdio.h>

#include "host.h"

#define FIRST_ROOM 512u
#define MOST_ROOM (1u << 20u)

// Defines a function that writes one frame, with more room each time there was too little.
#define DEFINE_PUT(kind, visibility)                                                                                   \
    static __attribute__((noinline)) size_t try_##kind(char *to, size_t room, const colibri_##kind *frame,             \
                                                       colibri_fault *fault) {                                         \
        return colibri_write_##kind(to, room, frame, fault);                                                           \
    }                                                                                                                  \
    visibility void put_##kind(buffer *to, const colibri_##kind *frame) {                                              \
        for (size_t room = FIRST_ROOM; room <= MOST_ROOM; room *= 2u) {                                                \
            colibri_fault fault = {"", COLIBRI_RULE_NONE, {"", 0}};                                                    \
            const size_t written = try_##kind(buffer_reserve(to, room), room, frame, &fault);                          \
            to->size += written;                                                                                       \
            if (written != 0) {                                                                                        \
                return;                                                                                                \
            }                                                                                                          \
            if (fault.rule != COLIBRI_RULE_NONE) {                                                                     \
                log_line("a frame could not be written: %s %s", #kind, fault.field);                                   \
                return;                                                                                                \
            }                                                                                                          \
        }                                                                                                              \
    }

DEFINE_PUT(stat, static)
DEFINE_PUT(accept, extern)
DEFINE_PUT(data, extern)
DEFINE_PUT(echo, extern)
DEFINE_PUT(prof, extern)
DEFINE_PUT(done, extern)
DEFINE_PUT(error, static)
DEFINE_PUT(hwinfo, static)
DEFINE_PUT(tiers, static)

void put_ready(buffer *to, const colibri_stat *facts) {
    buffer_append(to, COLIBRI_READY, sizeof COLIBRI_READY - 1u);
    put_stat(to, facts);
}

void put_error_words(buffer *to, uint64_t id, const char *words) {
    const colibri_error frame = {id, colibri_text(words)};
    put_error(to, &frame);
}

void put_machine(buffer *to) {
    char names[1024];
    colibri_hwinfo hardware = {0};
    const colibri_tiers tiers = {0};
    snprintf(names, sizeof names, "%s|", host_processor());
    hardware.cores = (double)host_cores();
    host_memory(&hardware.ram_total_gb, &hardware.ram_available_gb);
    hardware.names = colibri_text(names);
    put_hwinfo(to, &hardware);
    put_tiers(to, &tiers);
}
