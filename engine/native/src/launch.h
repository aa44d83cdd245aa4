// What the gateway tells an engine at its start (wire.md section 1): argv and the environment, checked.
#ifndef COLIBRI_NATIVE_LAUNCH_H
#define COLIBRI_NATIVE_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct launch {
    const char *directory;
    size_t slots;
    size_t context; // 0: the model's own
    uint64_t seed;  // drawn from the system when none was given
    size_t threads; // 0: one per processor, used where it pays
} launch;

// Refuses the launch, naming what is wrong.
launch launch_read(int argument_count, char **arguments);

#endif
