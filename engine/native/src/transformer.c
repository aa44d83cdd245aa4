#include "transformer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "rows.h"

// How many multiply-adds of a product take as long as the work on one number of a row.
#define ADDS_TO_PLACE 40u
#define ADDS_TO_JOIN 20u

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

static size_t fused_width(const model_config *config) {
    return (config->heads + 2u * config->key_value_heads) * config->head_dim;
}

static size_t attended_width(const model_config *config) { return config->heads * config->head_dim; }

/* Rows of each kind, one buffer behind the other, each row at the beginning of a cache line. */
static void allocate_rows(transformer *model) {
    const model_config *const config = model->config;
    const size_t hidden = row_stride(config->hidden);
    const size_t threads = threads_count(model->pool);
    const struct {
        float **rows;
        size_t stride;
    } buffers[] = {
        {&model->stream, hidden},
        {&model->normed, hidden * threads},
        {&model->fused, row_stride(fused_width(config))},
        {&model->attended, row_stride(attended_width(config))},
        {&model->projected, hidden},
        {&model->gate, row_stride(config->intermediate)},
        {&model->up, row_stride(config->intermediate)},
        {&model->logits, row_stride(config->vocabulary)},
    };
    size_t floats = LANES;
    float *next;
    for (size_t index = 0; index < sizeof buffers / sizeof buffers[0]; index++) {
        floats += model->most_rows * buffers[index].stride;
    }
    model->memory = allocate(floats, sizeof(float));
    next = model->memory + (LANES - (uintptr_t)model->memory / sizeof(float) % LANES);
    for (size_t index = 0; index < sizeof buffers / sizeof buffers[0]; index++) {
        *buffers[index].rows = next;
        next += model->most_rows * buffers[index].stride;
    }
}

void transformer_open(transformer *model, const model_config *config, const model_weights *weights,
                      key_value_cache *cache, size_t most_rows, thread_pool *pool, size_t shared_rows) {
    memset(model, 0, sizeof *model);
    model->config = config;
    model->weights = weights;
    model->cache = cache;
    model->pool = pool;
    model->shared_rows = shared_rows;
    model->most_rows = most_rows;
    model->norm_of = allocate(threads_count(pool), sizeof(size_t));
    attention_open(&model->attention, config, cache, most_rows, threads_count(pool));
    allocate_rows(model);
    fill_rotation(model);
}

void transformer_close(transformer *model) {
    free(model->memory);
    free(model->rotation);
    free(model->norm_of);
    attention_close(&model->attention);
    memset(model, 0, sizeof *model);
}

// ---------------------------------------------------------------- loops of a pass

// Each loop is one meeting of the threads, so what belongs to the rows is done in the loops of the products: a thread norms
// the rows for itself before its first group, and adds or activates the columns it has just computed.
typedef struct pass {
    transformer *model;
    thread_pool *pool; // NULL: this thread alone
    const row_place *places;
    size_t rows;
    const layer_weights *layer;
    size_t index;         // of the layer
    size_t first;         // row of a product with normed rows
    const float *norm;    // of that product
    const matrix *values; // of a product that is added to the stream, the rows it takes, and the norm behind it
    const float *x;
    const float *own_norm; // NULL: none
} pass;

/* The stream through the norm of the present loop, from the pass's first row on. */
static const float *normed_for(const pass *work, size_t thread) {
    transformer *const model = work->model;
    const size_t hidden = model->config->hidden;
    const size_t stride = row_stride(hidden);
    float *const normed = model->normed + thread * model->most_rows * stride;
    if (model->norm_of[thread] != model->norms) {
        for (size_t row = work->first; row < work->rows; row++) {
            normalise(model->stream + row * stride, work->norm, model->config->norm_epsilon, hidden,
                      normed + row * stride);
        }
        model->norm_of[thread] = model->norms;
    }
    return normed + work->first * stride;
}

static product normed_product(const pass *work, size_t thread, const matrix *values, float *out) {
    const size_t stride = row_stride(work->model->config->hidden);
    const float *const normed = normed_for(work, thread);
    return (product){values, normed, stride, work->rows - work->first, out, row_stride(values->width)};
}

static void run_groups(const product *work, size_t first, size_t end) {
    for (size_t group = first; group < end; group++) {
        product_run(work, group);
    }
}

static void fuse_share(void *context, size_t first, size_t end, size_t thread) {
    const pass *const work = context;
    const product fused = normed_product(work, thread, &work->layer->query_key_value, work->model->fused);
    run_groups(&fused, first, end);
}

/* One matrix after the other, since memory is fastest in order. */
static void gate_share(void *context, size_t first, size_t end, size_t thread) {
    const pass *const work = context;
    const product gate = normed_product(work, thread, &work->layer->gate, work->model->gate);
    const product up = normed_product(work, thread, &work->layer->up, work->model->up);
    const size_t from = product_column(gate.values, first);
    const size_t columns = product_column(gate.values, end) - from;
    run_groups(&gate, first, end);
    run_groups(&up, first, end);
    for (size_t row = 0; row < work->rows; row++) {
        activate(gate.out + row * gate.out_stride + from, up.out + row * up.out_stride + from, columns);
    }
}

static void head_share(void *context, size_t first, size_t end, size_t thread) {
    const pass *const work = context;
    const product head = normed_product(work, thread, weights_head(work->model->weights), work->model->logits);
    run_groups(&head, first, end);
}

static void add_columns(float *stream, const float *projected, size_t columns) {
    for (size_t column = 0; column < columns; column++) {
        stream[column] += projected[column];
    }
}

/* What a sublayer projects, added to the stream unless it goes through a norm of its own first. */
static void project_share(void *context, size_t first, size_t end, size_t thread) {
    const pass *const work = context;
    transformer *const model = work->model;
    const size_t stride = row_stride(model->config->hidden);
    const product projected = {work->values, work->x, row_stride(work->values->depth), work->rows, model->projected, stride};
    const size_t from = product_column(work->values, first);
    const size_t columns = product_column(work->values, end) - from;
    (void)thread;
    run_groups(&projected, first, end);
    for (size_t row = 0; row < work->rows && work->own_norm == NULL; row++) {
        const size_t at = row * stride + from;
        add_columns(model->stream + at, model->projected + at, columns);
    }
}

static void join_share(void *context, size_t first, size_t end, size_t thread) {
    const pass *const work = context;
    const size_t hidden = work->model->config->hidden;
    (void)thread;
    for (size_t row = first; row < end; row++) {
        float *const projected = work->model->projected + row * row_stride(hidden);
        normalise(projected, work->own_norm, work->model->config->norm_epsilon, hidden, projected);
        add_columns(work->model->stream + row * row_stride(hidden), projected, hidden);
    }
}

/* Norms and rotates the queries of a row that share a key/value head, and their key, and stores key and value. */
static void place_head(const pass *work, size_t row, size_t head) {
    transformer *const model = work->model;
    const model_config *const config = model->config;
    const size_t dim = config->head_dim;
    const size_t pairs = config->rotary_dim / 2u;
    const size_t group = config->heads / config->key_value_heads;
    const bool neighbours = config->family->interleaved_rotary;
    const float attention_scale = 1.0f / sqrtf((float)dim);
    const row_place *const place = &work->places[row];
    const float *const turns = model->rotation + place->position * pairs * 2u;
    float *const fused = model->fused + row * row_stride(fused_width(config));
    float *const key = fused + (config->heads + head) * dim;
    for (size_t member = head * group; member < (head + 1u) * group; member++) {
        float *const query = fused + member * dim;
        if (work->layer->query_norm != NULL) {
            normalise(query, work->layer->query_norm, config->norm_epsilon, dim, query);
        }
        rotate(query, turns, pairs, neighbours);
        for (size_t element = 0; element < dim; element++) {
            query[element] *= attention_scale;
        }
    }
    if (work->layer->key_norm != NULL) {
        normalise(key, work->layer->key_norm, config->norm_epsilon, dim, key);
    }
    rotate(key, turns, pairs, neighbours);
    cache_store(model->cache, work->index, place->slot, head, place->position, key, key + config->key_value_heads * dim);
}

static void place_share(void *context, size_t first, size_t end, size_t thread) {
    const pass *const work = context;
    (void)thread;
    for (size_t row = first; row < end; row++) {
        for (size_t head = 0; head < work->model->config->key_value_heads; head++) {
            place_head(work, row, head);
        }
    }
}

static void attend_share(void *context, size_t first, size_t end, size_t thread) {
    const pass *const work = context;
    transformer *const model = work->model;
    const attention *const plan = &model->attention;
    for (size_t index = first; index < end; index++) {
        if (plan->separated) {
            place_head(work, plan->items[index].row, plan->items[index].head);
        }
        attention_attend(plan, index, work->index, thread, model->fused, row_stride(fused_width(model->config)),
                         model->attended, row_stride(attended_width(model->config)));
    }
}

// ---------------------------------------------------------------- passes

static void run_attention(pass *work) {
    transformer *const model = work->model;
    const attention *const plan = &model->attention;
    const double start = seconds_now();
    const size_t place_adds = fused_width(model->config) * ADDS_TO_PLACE;
    size_t adds = plan->adds;
    if (plan->separated) {
        adds += place_adds / plan->heads;
    } else {
        threads_run(work->pool, place_share, work, work->rows, place_adds);
    }
    threads_run(work->pool, attend_share, work, plan->item_count, adds);
    model->totals.attention += seconds_now() - start;
}

/* A product of all rows with the stream through a norm. */
static void run_normed(pass *work, loop_body body, const float *norm, const matrix *values, size_t matrices) {
    work->norm = norm;
    work->model->norms++;
    threads_run(work->pool, body, work, values->groups,
                matrices * product_adds(values, work->rows - work->first));
}

/* The end of a sublayer: its last product, added to the stream. */
static void run_projection(pass *work, const matrix *values, const float *x, const float *own_norm) {
    work->values = values;
    work->x = x;
    work->own_norm = own_norm;
    threads_run(work->pool, project_share, work, values->groups, product_adds(values, work->rows));
    if (own_norm != NULL) {
        threads_run(work->pool, join_share, work, work->rows, work->model->config->hidden * ADDS_TO_JOIN);
    }
}

static void run_layer(pass *work, size_t index) {
    transformer *const model = work->model;
    const layer_weights *const layer = &model->weights->layers[index];
    work->index = index;
    work->layer = layer;
    run_normed(work, fuse_share, layer->before_attention, &layer->query_key_value, 1);
    run_attention(work);
    run_projection(work, &layer->output, model->attended, layer->after_attention);
    run_normed(work, gate_share, layer->before_mlp, &layer->gate, 2);
    run_projection(work, &layer->down, model->gate, layer->after_mlp);
}

void transformer_run(transformer *model, const uint32_t *tokens, const row_place *places, size_t rows, bool every_row) {
    const size_t stride = row_stride(model->config->hidden);
    const double attention_before = model->totals.attention;
    const double start = seconds_now();
    pass work = {.model = model, .places = places, .rows = rows};
    double middle;
    model->shared = rows >= model->shared_rows && threads_count(model->pool) > 1u;
    work.pool = model->shared ? model->pool : NULL;
    for (size_t row = 0; row < rows; row++) {
        matrix_read_output(&model->weights->embedding, tokens[row], model->stream + row * stride);
    }
    attention_plan(&model->attention, places, rows);
    for (size_t layer = 0; layer < model->config->layers; layer++) {
        run_layer(&work, layer);
    }
    middle = seconds_now();
    model->totals.matmul += middle - start - (model->totals.attention - attention_before);
    work.first = every_row ? 0 : rows - 1u;
    model->logit_rows = rows - work.first;
    run_normed(&work, head_share, model->weights->final_norm, weights_head(model->weights), 1);
    model->totals.head += seconds_now() - middle;
    model->totals.forwards++;
}

const float *transformer_logits(const transformer *model, size_t row) {
    return model->logits + row * row_stride(model->config->vocabulary);
}
