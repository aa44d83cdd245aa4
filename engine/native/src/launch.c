#include "launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "colibri_wire.h"

#define LARGEST UINT64_C(0x7fffffffffffffff)
#define MOST_THREADS 256u

static uint64_t integer(const char *name, const char *text, uint64_t smallest, uint64_t largest) {
    const colibri_bytes word = colibri_text(text);
    uint64_t value = 0;
    bool good = word.size != 0;
    for (size_t at = 0; at < word.size; at++) {
        good = good && colibri_is_digit(text[at]);
    }
    if (!good || colibri_read_uint(word, smallest, largest, &value) != COLIBRI_RULE_NONE) {
        refuse_launch("%s must be an integer from %llu to %llu, not '%.100s'", name, (unsigned long long)smallest,
                      (unsigned long long)largest, text);
    }
    return value;
}

/* An environment variable, NULL when it is not set or empty. */
static const char *variable(const char *name) {
    const char *value = getenv(name);
    return value == NULL || *value == '\0' ? NULL : value;
}

/* The number an environment variable holds, `otherwise` when it is not set. */
static uint64_t given(const char *name, uint64_t smallest, uint64_t largest, uint64_t otherwise) {
    const char *text = variable(name);
    return text == NULL ? otherwise : integer(name, text, smallest, largest);
}

static uint64_t random_seed(void) {
    uint64_t seed = 0;
    FILE *file = fopen("/dev/urandom", "rb");
    if (file == NULL || fread(&seed, sizeof seed, 1, file) != 1) {
        seed = (uint64_t)(seconds_now() * 1e9);
    }
    if (file != NULL) {
        fclose(file);
    }
    return seed;
}

/* OMP_NUM_THREADS may be a list, one entry per nesting level: the first counts. What is no number is no wish. */
static size_t wanted_threads(void) {
    const char *text = variable("OMP_NUM_THREADS");
    const unsigned long count = text == NULL ? 0 : strtoul(text, NULL, 10);
    return count > MOST_THREADS ? MOST_THREADS : (size_t)count;
}

launch launch_read(int argument_count, char **arguments) {
    launch found = {.directory = variable(COLIBRI_ENV_SNAP), .threads = wanted_threads()};
    if (argument_count > 2) {
        refuse_launch("expected one argument, the cache bound, not %d", argument_count - 1);
    }
    if (argument_count == 2) {
        (void)integer("cache bound", arguments[1], 0, LARGEST);
    }
    if (found.directory == NULL) {
        refuse_launch(COLIBRI_ENV_SNAP " must name the model directory");
    }
    (void)given(COLIBRI_ENV_NGEN, 0, LARGEST, 0);
    found.slots = (size_t)given(COLIBRI_ENV_KV_SLOTS, 1, COLIBRI_LIMIT_KV_SLOTS, 1);
    found.context = (size_t)given(COLIBRI_ENV_CTX, 1, LARGEST, 0);
    found.seed = variable(COLIBRI_ENV_SEED) == NULL ? random_seed() : given(COLIBRI_ENV_SEED, 0, LARGEST, 0);
    return found;
}
