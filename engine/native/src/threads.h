// A pool of threads that share out loops. Work is split by position, never by who is free, so that every result is
// computed by the same operations whatever the number of threads.
#ifndef COLIBRI_NATIVE_THREADS_H
#define COLIBRI_NATIVE_THREADS_H

#include <stddef.h>

typedef struct thread_pool thread_pool;

// Items first .. end - 1 of a loop, by thread number `thread`.
typedef void (*loop_body)(void *context, size_t first, size_t end, size_t thread);

// A pool in which `count` threads work, the calling one included.
thread_pool *threads_start(size_t count);
void threads_stop(thread_pool *pool);
size_t threads_count(const thread_pool *pool);

// Runs the body over `items` items and returns when all are done. `enough` is the number of items that are worth a thread
// of their own.
void threads_run(thread_pool *pool, loop_body body, void *context, size_t items, size_t enough);

#endif
