// For the tests: many loops of many sizes through the pool of threads.h, each item counted.
//
//   shared_loops THREADS LOOPS     prints the number of loops after whose return an item was not done exactly once
//
// The counters are plain memory: a result that is not visible to the caller when threads_run returns, or an item of a
// loop that is already over, is a wrong count here and a data race under ThreadSanitizer.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "threads.h"

#define MOST_ITEMS 97u

typedef struct work {
    unsigned done[MOST_ITEMS];
    unsigned wanted;
    size_t threads;
    bool strangers; // a thread number that does not exist was seen
} work;

static void count_items(void *context, size_t first, size_t end, size_t thread) {
    work *const loop = context;
    if (thread >= loop->threads) {
        loop->strangers = true;
    }
    for (size_t item = first; item < end; item++) {
        loop->done[item] += loop->wanted;
    }
}

int main(int argument_count, char **arguments) {
    static work loops[2];
    const size_t threads = argument_count == 3 ? strtoul(arguments[1], NULL, 10) : 1;
    const unsigned count = argument_count == 3 ? (unsigned)strtoul(arguments[2], NULL, 10) : 1;
    thread_pool *const pool = threads_start(threads, 1);
    unsigned wrong = 0;
    for (unsigned number = 0; number < count; number++) {
        work *const loop = &loops[number % 2u];
        const size_t items = number * 31u % (MOST_ITEMS + 1u);
        bool right = true;
        memset(loop, 0, sizeof *loop);
        loop->wanted = number + 1u;
        loop->threads = threads;
        threads_run(pool, count_items, loop, items, 1);
        for (size_t item = 0; item < MOST_ITEMS; item++) {
            right = right && loop->done[item] == (item < items ? number + 1u : 0u);
        }
        wrong += right && !loop->strangers ? 0u : 1u;
    }
    threads_stop(pool);
    printf("%u\n", wrong);
    return 0;
}
