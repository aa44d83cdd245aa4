#include "transformer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"

static float *rows_of(const transformer *model, size_t width) {
    return allocate(model->most_rows * round_up(width, LANES), sizeof(float));
}

static void fill_rotation(transformer *model) {
    const size_t pairs = model->config->rotary_dim / 2u;
    model->rotation = allocate(model->cache->context * pairs * 2u, sizeof(float));
    for (size_t position = 0; position < model->cache->context; position++) {
        for (size_t pair = 0; pair < pairs; pair++) {
            const double angle = (double)position * model->config->frequencies[pair];
            float *const to = model->rotation + (position * pairs + pair) * 2u;
            to[0] = (float)cos(angle);
            to[1] = (float)sin(angle);
        }
    }
}

void transformer_open(transformer *model, const model_config *config, const model_weights *weights,
                      key_value_cache *cache, size_t most_rows, thread_pool *pool) {
    memset(model, 0, sizeof *model);
    model->config = config;
    model->weights = weights;
    model->cache = cache;
    model->pool = pool;
    model->most_rows = most_rows;
    model->attention = attention_open(config, cache, most_rows, pool);
    model->stream = rows_of(model, config->hidden);
    model->normed = rows_of(model, config->hidden);
    model->fused = rows_of(model, (config->heads + 2u * config->key_value_heads) * config->head_dim);
    model->attended = rows_of(model, config->heads * config->head_dim);
    model->projected = rows_of(model, config->hidden);
    model->gate_up = rows_of(model, 2u * config->intermediate);
    model->logits = rows_of(model, config->vocabulary);
    fill_rotation(model);
}

void transformer_close(transformer *model) {
    float *const buffers[] = {model->stream,    model->normed,  model->fused,  model->attended,
                              model->projected, model->gate_up, model->logits, model->rotation};
    for (size_t index = 0; index < sizeof buffers / sizeof buffers[0]; index++) {
        free(buffers[index]);
    }
    attention_close(model->attention);
    memset(model, 0, sizeof *model);
}

/* to = x / sqrt(mean(x^2) + epsilon) * scale; x and to may be the same. */
static void normalise(const float *x, const float *scale, float epsilon, size_t size, float *to) {
    floats16 squares = {0.0f};
    float lanes[LANES];
    float factor;
    const size_t whole = size / LANES * LANES;
    for (size_t at = 0; at < whole; at += LANES) {
        floats16 part;
        load_floats(&part, x + at);
        squares += part * part;
    }
    memcpy(lanes, &squares, sizeof lanes);
    for (size_t at = whole; at < size; at++) {
        lanes[at - whole] += x[at] * x[at];
    }
    memcpy(&squares, lanes, sizeof lanes);
    factor = 1.0f / sqrtf(sum_of_lanes(&squares) / (float)size + epsilon);
    for (size_t at = 0; at < size; at++) {
        to[at] = x[at] * factor * scale[at];
    }
}

/* Turns one head to its position. */
static void rotate(const transformer *model, float *head, size_t position) {
    const size_t pairs = model->config->rotary_dim / 2u;
    const float *const turn = model->rotation + position * pairs * 2u;
    const bool neighbours = model->config->family->interleaved_rotary;
    const size_t step = neighbours ? 2u : 1u;
    float *const second = head + (neighbours ? 1u : pairs);
    for (size_t pair = 0; pair < pairs; pair++) {
        const float one = head[pair * step];
        const float other = second[pair * step];
        head[pair * step] = one * turn[2u * pair] - other * turn[2u * pair + 1u];
        second[pair * step] = other * turn[2u * pair] + one * turn[2u * pair + 1u];
    }
}

/* Norms, rotates and stores what the fused product made of one row. */
static void place_heads(transformer *model, size_t index, float *fused, const row_place *place) {
    const model_config *const config = model->config;
    const layer_weights *const layer = &model->weights->layers[index];
    const size_t dim = config->head_dim;
    const float attention_scale = 1.0f / sqrtf((float)dim);
    float *const keys = fused + config->heads * dim;
    float *const values = keys + config->key_value_heads * dim;
    for (size_t head = 0; head < config->heads; head++) {
        float *const query = fused + head * dim;
        if (layer->query_norm != NULL) {
            normalise(query, layer->query_norm, config->norm_epsilon, dim, query);
        }
        rotate(model, query, place->position);
        for (size_t element = 0; element < dim; element++) {
            query[element] *= attention_scale;
        }
    }
    for (size_t head = 0; head < config->key_value_heads; head++) {
        float *const key = keys + head * dim;
        if (layer->key_norm != NULL) {
            normalise(key, layer->key_norm, config->norm_epsilon, dim, key);
        }
        rotate(model, key, place->position);
        cache_store(model->cache, index, place->slot, head, place->position, key, values + head * dim);
    }
}

/* silu(gate) * up, in place of the gate. */
static void activate(float *gate, const float *up, size_t size) {
    const floats16 one = {1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f};
    for (size_t at = 0; at < size; at += LANES) {
        float edge[2][LANES] = {{0.0f}};
        const size_t count = least(size - at, LANES);
        floats16 x;
        floats16 factor;
        floats16 falling;
        if (count == LANES) {
            load_floats(&x, gate + at);
            load_floats(&factor, up + at);
        } else {
            memcpy(edge[0], gate + at, count * sizeof(float));
            memcpy(edge[1], up + at, count * sizeof(float));
            load_floats(&x, edge[0]);
            load_floats(&factor, edge[1]);
        }
        falling = -x;
        exponential(&falling);
        x = x / (one + falling) * factor;
        if (count == LANES) {
            store_floats(gate + at, &x);
        } else {
            store_floats(edge[0], &x);
            memcpy(gate + at, edge[0], count * sizeof(float));
        }
    }
}

// ---------------------------------------------------------------- work on rows, each by itself

// How many multiply-adds of a product take as long as the work on one number of a row.
#define ADDS_TO_PLACE 40u
#define ADDS_TO_ACTIVATE 30u
#define ADDS_TO_JOIN 20u

typedef struct row_work {
    transformer *model;
    size_t layer;
    const row_place *places;
    const float *own_norm;  // of what a sublayer projected; NULL: none
    const float *next_norm; // of the stream, for the product that follows
} row_work;

static void place_rows(void *context, size_t first, size_t end, size_t thread) {
    const row_work *const work = context;
    const size_t stride = matrix_stride(&work->model->weights->layers[work->layer].query_key_value);
    (void)thread;
    for (size_t row = first; row < end; row++) {
        place_heads(work->model, work->layer, work->model->fused + row * stride, &work->places[row]);
    }
}

static void activate_rows(void *context, size_t first, size_t end, size_t thread) {
    const row_work *const work = context;
    const size_t stride = matrix_stride(&work->model->weights->layers[work->layer].gate_up);
    const size_t width = work->model->config->intermediate;
    (void)thread;
    for (size_t row = first; row < end; row++) {
        float *const gate = work->model->gate_up + row * stride;
        activate(gate, gate + width, width);
    }
}

/* Adds what a sublayer projected to the stream, through its own norm where the family has one, and norms the sum. */
static void join_rows(void *context, size_t first, size_t end, size_t thread) {
    const row_work *const work = context;
    transformer *const model = work->model;
    const size_t hidden = model->config->hidden;
    const size_t stride = round_up(hidden, LANES);
    const float epsilon = model->config->norm_epsilon;
    (void)thread;
    for (size_t row = first; row < end; row++) {
        float *const projected = model->projected + row * stride;
        float *const stream = model->stream + row * stride;
        if (work->own_norm != NULL) {
            normalise(projected, work->own_norm, epsilon, hidden, projected);
        }
        for (size_t element = 0; element < hidden; element++) {
            stream[element] += projected[element];
        }
        normalise(stream, work->next_norm, epsilon, hidden, model->normed + row * stride);
    }
}

// ---------------------------------------------------------------- passes

/* From the normed stream to the normed stream of what follows. */
static void run_layer(transformer *model, size_t index, const row_place *places, size_t rows) {
    const layer_weights *const layer = &model->weights->layers[index];
    const bool last = index + 1u == model->config->layers;
    const size_t stride = round_up(model->config->hidden, LANES);
    const size_t fused_stride = matrix_stride(&layer->query_key_value);
    const size_t attended_stride = round_up(layer->output.depth, LANES);
    const size_t gate_stride = matrix_stride(&layer->gate_up);
    row_work work = {model, index, places, layer->after_attention, layer->before_mlp};
    double start;
    matrix_multiply(&layer->query_key_value, model->normed, stride, rows, model->fused, fused_stride, model->pool);
    threads_run(model->pool, place_rows, &work, rows, fused_stride * ADDS_TO_PLACE);
    start = seconds_now();
    attention_run(model->attention, index, places, rows, model->fused, fused_stride, model->attended, attended_stride);
    model->totals.attention += seconds_now() - start;
    matrix_multiply(&layer->output, model->attended, attended_stride, rows, model->projected, stride, model->pool);
    threads_run(model->pool, join_rows, &work, rows, stride * ADDS_TO_JOIN);
    matrix_multiply(&layer->gate_up, model->normed, stride, rows, model->gate_up, gate_stride, model->pool);
    threads_run(model->pool, activate_rows, &work, rows, model->config->intermediate * ADDS_TO_ACTIVATE);
    matrix_multiply(&layer->down, model->gate_up, gate_stride, rows, model->projected, stride, model->pool);
    work.own_norm = layer->after_mlp;
    work.next_norm = last ? model->weights->final_norm : layer[1].before_attention;
    threads_run(model->pool, join_rows, &work, rows, stride * ADDS_TO_JOIN);
}

void transformer_run(transformer *model, const uint32_t *tokens, const row_place *places, size_t rows, bool every_row) {
    const size_t stride = round_up(model->config->hidden, LANES);
    const matrix *const head = weights_head(model->weights);
    const size_t first = every_row ? 0 : rows - 1u;
    const double attention_before = model->totals.attention;
    const double start = seconds_now();
    double middle;
    for (size_t row = 0; row < rows; row++) {
        float *const stream = model->stream + row * stride;
        matrix_read_output(&model->weights->embedding, tokens[row], stream);
        normalise(stream, model->weights->layers[0].before_attention, model->config->norm_epsilon, model->config->hidden,
                  model->normed + row * stride);
    }
    for (size_t layer = 0; layer < model->config->layers; layer++) {
        run_layer(model, layer, places, rows);
    }
    middle = seconds_now();
    model->totals.matmul += middle - start - (model->totals.attention - attention_before);
    model->logit_rows = rows - first;
    matrix_multiply(head, model->normed + first * stride, stride, model->logit_rows, model->logits, matrix_stride(head),
                    model->pool);
    model->totals.head += seconds_now() - middle;
    model->totals.forwards++;
}

const float *transformer_logits(const transformer *model, size_t row) {
    return model->logits + row * matrix_stride(weights_head(model->weights));
}
