#include "threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base.h"

// How a thread without work waits for the next loop: it looks this often, then as often with a turn for whoever else
// wants the processor, and then sleeps. Loops of one forward pass follow each other within the first stretch, passes
// within the second.
#define SPINS 2000
#define TURNS 100

// Pieces per thread a loop is cut into, so that a thread that comes late, or not at all, leaves its part to the others.
#define PIECES 4u

struct thread_pool {
    size_t count;
    size_t share; // multiply-adds that are worth a thread
    pthread_t *threads;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    atomic_size_t generation; // number of the present loop
    atomic_size_t sleeping;   // helpers that must be woken
    atomic_size_t inside;     // helpers that may be reading the loop below
    atomic_bool open;         // whether they may
    atomic_size_t next;       // first piece nobody has taken
    atomic_bool ending;
    // the loop; written only while nobody is inside
    loop_body body;
    void *context;
    size_t items;
    size_t pieces;
    size_t shares; // threads that take part
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

/* Takes pieces of the loop until none is left. */
static void run_pieces(thread_pool *pool, size_t thread) {
    for (;;) {
        const size_t piece = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
        if (piece >= pool->pieces) {
            return;
        }
        pool->body(pool->context, pool->items * piece / pool->pieces, pool->items * (piece + 1u) / pool->pieces, thread);
    }
}

static void wait_for_loop(thread_pool *pool, size_t seen) {
    for (int look = 0; look < SPINS + TURNS; look++) {
        if (atomic_load_explicit(&pool->generation, memory_order_acquire) != seen) {
            return;
        }
        if (look < SPINS) {
            pause_a_moment();
        } else {
            sched_yield();
        }
    }
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add(&pool->sleeping, 1);
    while (atomic_load(&pool->generation) == seen) {
        pthread_cond_wait(&pool->wake, &pool->lock);
    }
    atomic_fetch_sub(&pool->sleeping, 1);
    pthread_mutex_unlock(&pool->lock);
}

static void *help(void *argument) {
    helper *const self = argument;
    thread_pool *const pool = self->pool;
    const size_t number = self->number;
    free(self);
    for (size_t seen = 0;;) {
        wait_for_loop(pool, seen);
        seen = atomic_load(&pool->generation);
        if (atomic_load(&pool->ending)) {
            return NULL;
        }
        /* Either the owner sees this helper inside, or this helper sees the loop closed. */
        atomic_fetch_add(&pool->inside, 1);
        if (atomic_load(&pool->open) && number < pool->shares) {
            run_pieces(pool, number);
        }
        atomic_fetch_sub_explicit(&pool->inside, 1, memory_order_release);
    }
}

thread_pool *threads_start(size_t count, size_t share) {
    thread_pool *pool = allocate(1, sizeof *pool);
    pool->count = most(count, 1);
    pool->share = share;
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

static void announce(thread_pool *pool) {
    atomic_fetch_add(&pool->generation, 1);
    if (atomic_load(&pool->sleeping) != 0) {
        pthread_mutex_lock(&pool->lock);
        pthread_cond_broadcast(&pool->wake);
        pthread_mutex_unlock(&pool->lock);
    }
}

void threads_stop(thread_pool *pool) {
    atomic_store(&pool->ending, true);
    announce(pool);
    for (size_t number = 1; number < pool->count; number++) {
        pthread_join(pool->threads[number], NULL);
    }
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
    free(pool->threads);
    free(pool);
}

size_t threads_count(const thread_pool *pool) { return pool->count; }

void threads_run(thread_pool *pool, loop_body body, void *context, size_t items, size_t adds) {
    const size_t shares = least(pool->count, items / (pool->share / most(adds, 1) + 1u));
    if (shares <= 1) {
        if (items != 0) {
            body(context, 0, items, 0);
        }
        return;
    }
    pool->body = body;
    pool->context = context;
    pool->items = items;
    pool->pieces = least(items, shares * PIECES);
    pool->shares = shares;
    atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
    atomic_store(&pool->open, true);
    announce(pool);
    run_pieces(pool, 0);
    atomic_store(&pool->open, false);
    for (int look = 0; atomic_load(&pool->inside) != 0; look++) {
        if (look < SPINS) {
            pause_a_moment();
        } else {
            sched_yield();
        }
    }
}
