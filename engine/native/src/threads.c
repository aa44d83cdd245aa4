#include "threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"

// How a thread without work waits for the next loop: it looks this often, then as often with a turn for whoever else
// wants the processor, and then sleeps. Loops of one forward pass follow each other within the first stretch, passes
// within the second.
#define SPINS 2000
#define TURNS 100

// Pieces per thread a loop is cut into, so that a thread that comes late, or not at all, leaves its part to the others.
#define PIECES 8u

#define CACHE_LINE 64

// Pieces of the loop `generation` that are still to be taken, next .. end - 1, in one word: whoever takes one does it by
// a single exchange that fails when the loop is over, so that a thread that comes late touches nothing and nobody has
// to wait until it has noticed. A generation comes again after 2^32 loops, which nobody sleeps through between two
// instructions.
typedef uint64_t pieces_left;

// What one thread takes part in. Two cache lines, one that the owner of the pool writes and one that the thread does: one
// transfer brings a loop to a helper, one brings the result back.
typedef struct seat {
    _Alignas(CACHE_LINE) _Atomic(pieces_left) left; // written after the fields below
    _Atomic(loop_body) body;
    _Atomic(void *) context;
    atomic_size_t items;
    atomic_size_t pieces; // of all threads together
    atomic_size_t shares; // threads that take part
    _Alignas(CACHE_LINE) _Atomic(uint64_t) done; // generation << 32 | pieces this thread has done in it
    atomic_bool sleeping;
    pthread_cond_t wake;
    pthread_t thread;
} seat;

struct thread_pool {
    size_t count;
    size_t share;        // multiply-adds that are worth a thread
    uint32_t generation; // number of the present loop
    seat *seats;
    pthread_mutex_t lock;
    atomic_bool ending;
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

static inline pieces_left pack(uint32_t generation, size_t next, size_t end) {
    return (uint64_t)generation << 32u | (uint64_t)end << 16u | (uint64_t)next;
}

static inline uint32_t generation_of(uint64_t word) { return (uint32_t)(word >> 32u); }

/* Takes a piece of the loop `generation` from a seat, if there is one left. */
static bool take(seat *from, uint32_t generation, size_t *piece) {
    pieces_left left = atomic_load_explicit(&from->left, memory_order_acquire);
    for (;;) {
        const size_t next = (size_t)(left & 0xffffu);
        if (generation_of(left) != generation || next >= (size_t)(left >> 16u & 0xffffu)) {
            return false;
        }
        if (atomic_compare_exchange_weak_explicit(&from->left, &left, left + 1u, memory_order_acq_rel,
                                                  memory_order_acquire)) {
            *piece = next;
            return true;
        }
    }
}

/* Does pieces of the loop until none is left: its own first, so that a thread finds the same weights in its cache in
 * each pass, then what others have not come to. What it reads of the loop holds once a piece is taken: until that is
 * done the owner writes no other loop. */
static size_t do_pieces(thread_pool *pool, uint32_t generation, size_t number) {
    seat *const own = &pool->seats[number];
    const loop_body body = atomic_load_explicit(&own->body, memory_order_relaxed);
    void *const context = atomic_load_explicit(&own->context, memory_order_relaxed);
    const size_t items = atomic_load_explicit(&own->items, memory_order_relaxed);
    const size_t pieces = atomic_load_explicit(&own->pieces, memory_order_relaxed);
    const size_t shares = atomic_load_explicit(&own->shares, memory_order_relaxed);
    size_t done = 0;
    for (size_t turn = 0; turn < shares; turn++) {
        size_t piece;
        while (take(&pool->seats[(number + turn) % shares], generation, &piece)) {
            body(context, items * piece / pieces, items * (piece + 1u) / pieces, number);
            done++;
            atomic_store_explicit(&own->done, (uint64_t)generation << 32u | done, memory_order_release);
        }
    }
    return done;
}

/* The generation that follows `seen` at a seat. */
static uint32_t wait_for_loop(thread_pool *pool, seat *own, uint32_t seen) {
    for (int look = 0; look < SPINS + TURNS; look++) {
        const uint32_t generation = generation_of(atomic_load_explicit(&own->left, memory_order_acquire));
        if (generation != seen) {
            return generation;
        }
        if (look < SPINS) {
            pause_a_moment();
        } else {
            sched_yield();
        }
    }
    pthread_mutex_lock(&pool->lock);
    atomic_store(&own->sleeping, true);
    while (generation_of(atomic_load(&own->left)) == seen) {
        pthread_cond_wait(&own->wake, &pool->lock);
    }
    atomic_store(&own->sleeping, false);
    pthread_mutex_unlock(&pool->lock);
    return generation_of(atomic_load(&own->left));
}

static void *help(void *argument) {
    helper *const self = argument;
    thread_pool *const pool = self->pool;
    const size_t number = self->number;
    free(self);
    for (uint32_t seen = 0;;) {
        seen = wait_for_loop(pool, &pool->seats[number], seen);
        if (atomic_load(&pool->ending)) {
            return NULL;
        }
        (void)do_pieces(pool, seen, number);
    }
}

thread_pool *threads_start(size_t count, size_t share) {
    thread_pool *pool = allocate(1, sizeof *pool);
    pool->count = most(count, 1);
    pool->share = share;
    pool->seats = aligned_alloc(CACHE_LINE, pool->count * sizeof(seat));
    if (pool->seats == NULL) {
        refuse_launch("not enough memory for %zu threads", count);
    }
    memset(pool->seats, 0, pool->count * sizeof(seat));
    pthread_mutex_init(&pool->lock, NULL);
    for (size_t number = 1; number < pool->count; number++) {
        helper *self = allocate(1, sizeof *self);
        self->pool = pool;
        self->number = number;
        pthread_cond_init(&pool->seats[number].wake, NULL);
        if (pthread_create(&pool->seats[number].thread, NULL, help, self) != 0) {
            free(self);
            refuse_launch("thread %zu of %zu cannot be started", number + 1u, count);
        }
    }
    return pool;
}

/* Opens pieces first .. end - 1 of the present loop at a seat. Either a helper that goes to sleep sees them, or it is seen
 * asleep. */
static void offer(thread_pool *pool, seat *to, size_t first, size_t end) {
    atomic_store(&to->left, pack(pool->generation, first, end));
    if (atomic_load(&to->sleeping)) {
        pthread_mutex_lock(&pool->lock);
        pthread_cond_signal(&to->wake);
        pthread_mutex_unlock(&pool->lock);
    }
}

void threads_stop(thread_pool *pool) {
    atomic_store(&pool->ending, true);
    pool->generation++;
    for (size_t number = 1; number < pool->count; number++) {
        offer(pool, &pool->seats[number], 0, 0);
        pthread_join(pool->seats[number].thread, NULL);
        pthread_cond_destroy(&pool->seats[number].wake);
    }
    pthread_mutex_destroy(&pool->lock);
    free(pool->seats);
    free(pool);
}

size_t threads_count(const thread_pool *pool) { return pool->count; }

/* Pieces of the present loop that helpers have done. */
static size_t done_by_helpers(thread_pool *pool, size_t shares) {
    size_t total = 0;
    for (size_t number = 1; number < shares; number++) {
        const uint64_t done = atomic_load_explicit(&pool->seats[number].done, memory_order_acquire);
        total += generation_of(done) == pool->generation ? (size_t)(done & 0xffffffffu) : 0;
    }
    return total;
}

void threads_run(thread_pool *pool, loop_body body, void *context, size_t items, size_t adds) {
    const size_t shares = pool == NULL ? 1u : least(pool->count, items * most(adds, 1) / pool->share);
    const size_t pieces = least(items, shares * PIECES);
    size_t done;
    if (shares <= 1 || items <= 1) {
        if (items != 0) {
            body(context, 0, items, 0);
        }
        return;
    }
    pool->generation++;
    for (size_t number = shares; number-- > 0;) {
        seat *const to = &pool->seats[number];
        atomic_store_explicit(&to->body, body, memory_order_relaxed);
        atomic_store_explicit(&to->context, context, memory_order_relaxed);
        atomic_store_explicit(&to->items, items, memory_order_relaxed);
        atomic_store_explicit(&to->pieces, pieces, memory_order_relaxed);
        atomic_store_explicit(&to->shares, shares, memory_order_relaxed);
        offer(pool, to, pieces * number / shares, pieces * (number + 1u) / shares);
    }
    done = do_pieces(pool, pool->generation, 0);
    for (int look = 0; done + done_by_helpers(pool, shares) != pieces; look++) {
        if (look < SPINS) {
            pause_a_moment();
        } else {
            sched_yield();
        }
    }
}
