#include "attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"

// Up to TILE_ROWS query heads that share a key/value head of one slot: pairs (row, head of the group) in order.
typedef struct item {
    size_t head; // key/value head
    size_t row;  // first row of the slot
    size_t pair; // first pair, counted from that row
    size_t pairs;
} item;

struct attention {
    const key_value_cache *cache;
    thread_pool *pool;
    size_t group; // query heads per key/value head
    size_t heads; // key/value heads
    size_t dim;
    size_t padded_dim;
    size_t score_stride;
    item *items;
    float *scratch; // per thread: queries, scores, results
    size_t scratch_size;
    // of the present run
    size_t layer;
    const row_place *places;
    const float *queries;
    size_t query_stride;
    float *out;
    size_t out_stride;
};

attention *attention_open(const model_config *config, const key_value_cache *cache, size_t most_rows,
                          thread_pool *pool) {
    attention *work = allocate(1, sizeof *work);
    size_t floats;
    work->cache = cache;
    work->pool = pool;
    work->heads = config->key_value_heads;
    work->group = config->heads / config->key_value_heads;
    work->dim = config->head_dim;
    work->padded_dim = cache->padded_dim;
    work->score_stride = round_up(cache->context, LANES);
    work->items = allocate(most_rows * work->heads * ((work->group + TILE_ROWS - 1u) / TILE_ROWS), sizeof(item));
    floats = TILE_ROWS * (work->dim + work->score_stride + work->padded_dim);
    work->scratch_size = round_up(floats, LANES);
    work->scratch = allocate(work->scratch_size * threads_count(pool), sizeof(float));
    return work;
}

void attention_close(attention *work) {
    free(work->items);
    free(work->scratch);
    free(work);
}

/* Turns the scores of the first `length` positions into weights (not yet divided by their sum, which is returned), and
 * those behind, up to `end`, into zeros. */
static float soften(float *scores, size_t length, size_t end) {
    floats16 peaks;
    floats16 total = {0.0f};
    float lanes[LANES];
    float peak;
    for (size_t at = length; at < round_up(end, LANES); at++) {
        scores[at] = -INFINITY;
    }
    load_floats(&peaks, scores);
    for (size_t at = LANES; at < length; at += LANES) {
        floats16 part;
        load_floats(&part, scores + at);
        larger_floats(&peaks, &part, &peaks);
    }
    memcpy(lanes, &peaks, sizeof lanes);
    peak = lanes[0];
    for (size_t lane = 1; lane < LANES; lane++) {
        peak = lanes[lane] > peak ? lanes[lane] : peak;
    }
    for (size_t at = 0; at < end; at += LANES) {
        floats16 part;
        load_floats(&part, scores + at);
        part -= peak;
        exponential(&part);
        total += part;
        store_floats(scores + at, &part);
    }
    return sum_of_lanes(&total);
}

static void attend(const attention *work, const item *job, float *scratch) {
    float *const queries = scratch;
    float *const results = queries + TILE_ROWS * work->dim;
    float *const scores = results + TILE_ROWS * work->padded_dim;
    const size_t slot = work->places[job->row].slot;
    const size_t last_row = job->row + (job->pair + job->pairs - 1u) / work->group;
    const size_t end = work->places[last_row].position + 1u;
    const panel_view keys = cache_keys(work->cache, work->layer, slot, job->head, end);
    const panel_view values = cache_values(work->cache, work->layer, slot, job->head, end);
    float totals[TILE_ROWS];
    for (size_t pair = 0; pair < job->pairs; pair++) {
        const size_t row = job->row + (job->pair + pair) / work->group;
        const size_t head = job->head * work->group + (job->pair + pair) % work->group;
        memcpy(queries + pair * work->dim, work->queries + row * work->query_stride + head * work->dim,
               work->dim * sizeof(float));
    }
    panels_multiply(&keys, queries, work->dim, job->pairs, scores, work->score_stride);
    for (size_t pair = 0; pair < job->pairs; pair++) {
        const size_t row = job->row + (job->pair + pair) / work->group;
        totals[pair] = soften(scores + pair * work->score_stride, work->places[row].position + 1u, end);
    }
    panels_multiply(&values, scores, work->score_stride, job->pairs, results, work->padded_dim);
    for (size_t pair = 0; pair < job->pairs; pair++) {
        const size_t row = job->row + (job->pair + pair) / work->group;
        const size_t head = job->head * work->group + (job->pair + pair) % work->group;
        float *const to = work->out + row * work->out_stride + head * work->dim;
        for (size_t element = 0; element < work->dim; element++) {
            to[element] = results[pair * work->padded_dim + element] / totals[pair];
        }
    }
}

static void attend_share(void *context, size_t first, size_t end, size_t thread) {
    const attention *const work = context;
    for (size_t index = first; index < end; index++) {
        attend(work, &work->items[index], work->scratch + thread * work->scratch_size);
    }
}

void attention_run(attention *work, size_t layer, const row_place *places, size_t rows, const float *queries,
                   size_t query_stride, float *out, size_t out_stride) {
    size_t items = 0;
    size_t longest = 0;
    size_t adds;
    for (size_t row = 0; row < rows;) {
        size_t next = row + 1u;
        while (next < rows && places[next].slot == places[row].slot) {
            next++;
        }
        for (size_t head = 0; head < work->heads; head++) {
            const size_t pairs = (next - row) * work->group;
            for (size_t pair = 0; pair < pairs; pair += TILE_ROWS) {
                work->items[items++] = (item){head, row, pair, least(pairs - pair, TILE_ROWS)};
            }
        }
        longest = most(longest, places[next - 1u].position + 1u);
        row = next;
    }
    work->layer = layer;
    work->places = places;
    work->queries = queries;
    work->query_stride = query_stride;
    work->out = out;
    work->out_stride = out_stride;
    adds = 2u * longest * work->dim * least(work->group * rows, TILE_ROWS);
    threads_run(work->pool, attend_share, work, items, adds);
}
