#include "attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"

void attention_open(attention *work, const model_config *config, const key_value_cache *cache, size_t most_rows,
                    size_t threads) {
    memset(work, 0, sizeof *work);
    work->cache = cache;
    work->heads = config->key_value_heads;
    work->group = config->heads / config->key_value_heads;
    work->dim = config->head_dim;
    work->items =
        allocate(most_rows * work->heads * ((work->group + TILE_ROWS - 1u) / TILE_ROWS), sizeof(attention_item));
    work->scratch_size = row_stride(TILE_ROWS * (2u * row_stride(work->dim) + row_stride(cache->context)));
    work->scratch = allocate(work->scratch_size * threads, sizeof(float));
}

void attention_close(attention *work) {
    free(work->items);
    free(work->scratch);
    memset(work, 0, sizeof *work);
}

void attention_plan(attention *work, const row_place *places, size_t rows) {
    size_t longest = 0;
    size_t largest = 0;
    size_t runs = 0;
    work->places = places;
    work->item_count = 0;
    for (size_t row = 0; row < rows; runs++) {
        size_t next = row + 1u;
        while (next < rows && places[next].slot == places[row].slot) {
            next++;
        }
        for (size_t head = 0; head < work->heads; head++) {
            const size_t pairs = (next - row) * work->group;
            for (size_t pair = 0; pair < pairs; pair += TILE_ROWS) {
                const size_t part = least(pairs - pair, TILE_ROWS);
                work->items[work->item_count++] = (attention_item){head, row, pair, part};
                largest = most(largest, part);
            }
        }
        longest = most(longest, places[next - 1u].position + 1u);
        row = next;
    }
    work->separated = runs == rows && work->group <= TILE_ROWS;
    work->adds = 2u * longest * work->dim * largest;
}

/* Turns the scores of the first `length` positions into weights (not yet divided by their sum, which is returned), and
 * those behind, up to `end`, into zeros. */
static float soften(float *scores, size_t length, size_t end) {
    lane_floats peaks;
    lane_floats total = {0.0f};
    float lanes[LANES];
    float peak;
    for (size_t at = length; at < round_up(end, LANES); at++) {
        scores[at] = -INFINITY;
    }
    load_floats(&peaks, scores);
    for (size_t at = LANES; at < length; at += LANES) {
        lane_floats part;
        load_floats(&part, scores + at);
        larger_floats(&peaks, &part, &peaks);
    }
    memcpy(lanes, &peaks, sizeof lanes);
    peak = lanes[0];
    for (size_t lane = 1; lane < LANES; lane++) {
        peak = lanes[lane] > peak ? lanes[lane] : peak;
    }
    for (size_t at = 0; at < end; at += LANES) {
        lane_floats part;
        load_floats(&part, scores + at);
        part -= peak;
        exponential(&part);
        total += part;
        store_floats(scores + at, &part);
    }
    return sum_of_lanes(&total);
}

void attention_attend(const attention *work, size_t index, size_t layer, size_t thread, const float *queries,
                      size_t query_stride, float *out, size_t out_stride) {
    const attention_item *const job = &work->items[index];
    const size_t dim_stride = row_stride(work->dim);
    const size_t score_stride = row_stride(work->cache->context);
    float *const chosen = work->scratch + thread * work->scratch_size;
    float *const results = chosen + TILE_ROWS * dim_stride;
    float *const scores = results + TILE_ROWS * dim_stride;
    const size_t slot = work->places[job->row].slot;
    const size_t last_row = job->row + (job->pair + job->pairs - 1u) / work->group;
    const size_t end = work->places[last_row].position + 1u;
    const panel_view keys = cache_keys(work->cache, layer, slot, job->head, end);
    const panel_view values = cache_values(work->cache, layer, slot, job->head, end);
    float totals[TILE_ROWS];
    for (size_t pair = 0; pair < job->pairs; pair++) {
        const size_t row = job->row + (job->pair + pair) / work->group;
        const size_t head = job->head * work->group + (job->pair + pair) % work->group;
        memcpy(chosen + pair * dim_stride, queries + row * query_stride + head * work->dim, work->dim * sizeof(float));
    }
    panels_multiply(&keys, chosen, dim_stride, job->pairs, scores, score_stride);
    for (size_t pair = 0; pair < job->pairs; pair++) {
        const size_t row = job->row + (job->pair + pair) / work->group;
        totals[pair] = soften(scores + pair * score_stride, work->places[row].position + 1u, end);
    }
    panels_multiply(&values, scores, score_stride, job->pairs, results, dim_stride);
    for (size_t pair = 0; pair < job->pairs; pair++) {
        const size_t row = job->row + (job->pair + pair) / work->group;
        const size_t head = job->head * work->group + (job->pair + pair) % work->group;
        float *const to = out + row * out_stride + head * work->dim;
        for (size_t element = 0; element < work->dim; element++) {
            to[element] = results[pair * dim_stride + element] / totals[pair];
        }
    }
}
