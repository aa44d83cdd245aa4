// A pool of threads that share out loops. A loop is cut into pieces; each thread does its own part and then what the others
// have not begun. Each item is computed by the same operations whoever does it, so results do not depend on the number of
// threads. A helper that has not woken up yet is not waited for.
#ifndef COLIBRI_NATIVE_THREADS_H
#define COLIBRI_NATIVE_THREADS_H

#include <stddef.h>

typedef struct thread_pool thread_pool;

// Items first .. end - 1 of a loop, by thread number `thread`; called any number of times for different items.
typedef void (*loop_body)(void *context, size_t first, size_t end, size_t thread);

// A pool in which `count` threads work, the calling one included. A thread takes part in a loop that has at least `share`
// multiply-adds for each, of which there must be some.
thread_pool *threads_start(size_t count, size_t share);
void threads_stop(thread_pool *pool);
size_t threads_count(const thread_pool *pool);

// Runs the body over `items` items and returns when all are done. An item takes about as long as `adds` multiply-adds of a
// product. Without a pool (NULL) the calling thread, number 0, does everything.
void threads_run(thread_pool *pool, loop_body body, void *context, size_t items, size_t adds);

#endif
