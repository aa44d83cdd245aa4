#include "threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base.h"

// How often a thread looks for the next loop before it goes to sleep: some ten microseconds. Loops of one forward pass
// follow each other faster than a sleeping thread wakes up.
#define SPINS 4000

struct thread_pool {
    size_t count;
    pthread_t *threads;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    atomic_size_t generation; // number of the present loop
    atomic_size_t pending;    // helpers still at it
    atomic_bool ending;
    loop_body body;
    void *context;
    size_t items;
    size_t shares;
};

typedef struct helper {
    thread_pool *pool;
    size_t number;
} helper;

static inline void pause_a_moment(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

static void run_share(const thread_pool *pool, size_t share) {
    const size_t first = pool->items * share / pool->shares;
    const size_t end = pool->items * (share + 1u) / pool->shares;
    if (first < end) {
        pool->body(pool->context, first, end, share);
    }
}

static void wait_for_loop(thread_pool *pool, size_t seen) {
    for (int spin = 0; spin < SPINS; spin++) {
        if (atomic_load_explicit(&pool->generation, memory_order_acquire) != seen) {
            return;
        }
        pause_a_moment();
    }
    pthread_mutex_lock(&pool->lock);
    while (atomic_load_explicit(&pool->generation, memory_order_acquire) == seen) {
        pthread_cond_wait(&pool->wake, &pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
}

static void *help(void *argument) {
    helper *const self = argument;
    thread_pool *const pool = self->pool;
    const size_t number = self->number;
    free(self);
    for (size_t seen = 0;;) {
        wait_for_loop(pool, seen);
        seen = atomic_load_explicit(&pool->generation, memory_order_acquire);
        if (atomic_load(&pool->ending)) {
            return NULL;
        }
        if (number < pool->shares) {
            run_share(pool, number);
        }
        atomic_fetch_sub_explicit(&pool->pending, 1, memory_order_release);
    }
}

thread_pool *threads_start(size_t count) {
    thread_pool *pool = allocate(1, sizeof *pool);
    pool->count = most(count, 1);
    pool->threads = allocate(pool->count, sizeof(pthread_t));
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    for (size_t number = 1; number < pool->count; number++) {
        helper *self = allocate(1, sizeof *self);
        self->pool = pool;
        self->number = number;
        if (pthread_create(&pool->threads[number], NULL, help, self) != 0) {
            free(self);
            refuse_launch("thread %zu of %zu cannot be started", number + 1u, count);
        }
    }
    return pool;
}

static void begin_loop(thread_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add_explicit(&pool->generation, 1, memory_order_release);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
}

void threads_stop(thread_pool *pool) {
    atomic_store(&pool->ending, true);
    begin_loop(pool);
    for (size_t number = 1; number < pool->count; number++) {
        pthread_join(pool->threads[number], NULL);
    }
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
    free(pool->threads);
    free(pool);
}

size_t threads_count(const thread_pool *pool) { return pool->count; }

void threads_run(thread_pool *pool, loop_body body, void *context, size_t items, size_t enough) {
    const size_t shares = least(pool->count, items / most(enough, 1));
    if (shares <= 1) {
        if (items != 0) {
            body(context, 0, items, 0);
        }
        return;
    }
    pool->body = body;
    pool->context = context;
    pool->items = items;
    pool->shares = shares;
    atomic_store_explicit(&pool->pending, pool->count - 1u, memory_order_relaxed);
    begin_loop(pool);
    run_share(pool, 0);
    for (int spin = 0; atomic_load_explicit(&pool->pending, memory_order_acquire) != 0; spin++) {
        pause_a_moment();
        if (spin > SPINS) {
            sched_yield();
        }
    }
}
