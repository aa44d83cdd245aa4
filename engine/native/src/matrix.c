#include "matrix.h"

#include <stdlib.h>
#include <string.h>

#include "base.h"

// The most panels stored side by side, and how many of them are computed together for each number of rows: as many as
// leave registers for the sums of all rows, and sums enough to hide how long one addition takes. With the 32 registers
// of AVX-512 that is the whole group, so that any number of rows reads the weights once, in order.
// Groups have about the same number of panels, a multiple of UNIT_PANELS but for the last.
#if defined(__AVX512F__)
#define GROUP_PANELS 3u
#define UNIT_PANELS 1u
#define TWO_ROWS_PANELS 3
#define SIX_ROWS_PANELS 3
#define EIGHT_ROWS_PANELS 3
#else
#define GROUP_PANELS 4u
#define UNIT_PANELS 2u
#define TWO_ROWS_PANELS 4
#define SIX_ROWS_PANELS 2
#define EIGHT_ROWS_PANELS 1
#endif

#if defined(__GNUC__) && !defined(__clang__)
#define UNROLL _Pragma("GCC unroll 8")
#else
#define UNROLL _Pragma("unroll")
#endif

// Where a tile of results comes from and goes to. `weights` points at the first of its panels.
typedef struct tile {
    tensor_type type;
    const void *weights;
    size_t panel_stride;
    size_t input_stride;
    size_t depth;
    const float *x;
    size_t x_stride;
    const float *bias;
    float *out;
    size_t out_stride;
} tile;

VECTOR_INLINE void load_weights(lane_floats *to, tensor_type type, const void *weights, size_t at) {
    if (type == TENSOR_F32) {
        load_floats(to, (const float *)weights + at);
    } else if (type == TENSOR_F16) {
        load_halves(to, (const uint16_t *)weights + at);
    } else {
        load_brains(to, (const uint16_t *)weights + at);
    }
}

// Products that are added up in one go; a sum of such sums is off by less than one long sum.
#define DEPTH_OF_SUM 64u

/* The whole arithmetic of a product. `type`, `rows` and `panels` are constants wherever this is inlined. */
VECTOR_INLINE void multiply_tile(const tile *job, tensor_type type, size_t rows, size_t panels) {
    lane_floats sums[TILE_ROWS][GROUP_PANELS];
    UNROLL for (size_t panel = 0; panel < panels; panel++) {
        lane_floats start = {0.0f};
        if (job->bias != NULL) {
            load_floats(&start, job->bias + panel * LANES);
        }
        UNROLL for (size_t row = 0; row < rows; row++) { sums[row][panel] = start; }
    }
    for (size_t first = 0; first < job->depth; first += DEPTH_OF_SUM) {
        const size_t end = least(first + DEPTH_OF_SUM, job->depth);
        for (size_t input = first; input < end; input++) {
            lane_floats weights[GROUP_PANELS];
            UNROLL for (size_t panel = 0; panel < panels; panel++) {
                load_weights(&weights[panel], type, job->weights, panel * job->panel_stride + input * job->input_stride);
            }
            UNROLL for (size_t row = 0; row < rows; row++) {
                const float factor = job->x[row * job->x_stride + input];
                UNROLL for (size_t panel = 0; panel < panels; panel++) { sums[row][panel] += weights[panel] * factor; }
            }
        }
        UNROLL for (size_t row = 0; row < rows; row++) {
            UNROLL for (size_t panel = 0; panel < panels; panel++) {
                float *const out = job->out + row * job->out_stride + panel * LANES;
                if (first != 0) {
                    lane_floats before;
                    load_floats(&before, out);
                    sums[row][panel] += before;
                }
                store_floats(out, &sums[row][panel]);
                sums[row][panel] = (lane_floats){0.0f};
            }
        }
    }
}

/* Results of `panels` panels, as many at a time as `together` says. */
VECTOR_INLINE void multiply_panels(tile job, tensor_type type, size_t rows, size_t panels, size_t together) {
    const size_t width = type == TENSOR_F32 ? sizeof(float) : sizeof(uint16_t);
    size_t done = 0;
    while (done < panels) {
        const size_t step = least(panels - done, together);
        if (step == together) {
            multiply_tile(&job, type, rows, together);
        } else if (step == 3) {
            multiply_tile(&job, type, rows, 3);
        } else if (step == 2) {
            multiply_tile(&job, type, rows, 2);
        } else {
            multiply_tile(&job, type, rows, 1);
        }
        job.weights = (const char *)job.weights + step * job.panel_stride * width;
        job.bias = job.bias == NULL ? NULL : job.bias + step * LANES;
        job.out += step * LANES;
        done += step;
    }
}

#define ROWS_CASE(type, rows, together)                                                                                \
    case rows:                                                                                                         \
        multiply_panels(*job, type, rows, panels, together);                                                           \
        break;

#define DEFINE_MULTIPLY(name, type)                                                                                    \
    static void name(const tile *job, size_t rows, size_t panels) {                                                    \
        switch (rows) {                                                                                                \
            ROWS_CASE(type, 1, TWO_ROWS_PANELS)                                                                        \
            ROWS_CASE(type, 2, TWO_ROWS_PANELS)                                                                        \
            ROWS_CASE(type, 3, SIX_ROWS_PANELS)                                                                        \
            ROWS_CASE(type, 4, SIX_ROWS_PANELS)                                                                        \
            ROWS_CASE(type, 5, SIX_ROWS_PANELS)                                                                        \
            ROWS_CASE(type, 6, SIX_ROWS_PANELS)                                                                        \
            ROWS_CASE(type, 7, EIGHT_ROWS_PANELS)                                                                      \
            ROWS_CASE(type, 8, EIGHT_ROWS_PANELS)                                                                      \
        default:                                                                                                       \
            break;                                                                                                     \
        }                                                                                                              \
    }

DEFINE_MULTIPLY(multiply_f32, TENSOR_F32)
DEFINE_MULTIPLY(multiply_f16, TENSOR_F16)
DEFINE_MULTIPLY(multiply_bf16, TENSOR_BF16)

static void multiply_rows(const tile *job, size_t rows, size_t panels) {
    if (job->type == TENSOR_F32) {
        multiply_f32(job, rows, panels);
    } else if (job->type == TENSOR_F16) {
        multiply_f16(job, rows, panels);
    } else {
        multiply_bf16(job, rows, panels);
    }
}

void panels_multiply(const panel_view *view, const float *x, size_t x_stride, size_t rows, float *out,
                     size_t out_stride) {
    const tile job = {TENSOR_F32, view->weights, view->panel_stride, view->input_stride, view->depth, x, x_stride, NULL,
                      out, out_stride};
    multiply_f32(&job, rows, view->panels);
}

// ---------------------------------------------------------------- whole matrices

static size_t weight_size(tensor_type type) { return type == TENSOR_F32 ? sizeof(float) : sizeof(uint16_t); }

size_t product_adds(const matrix *values, size_t rows) {
    return values->depth * LANES * values->panels * rows / values->groups;
}

size_t product_column(const matrix *values, size_t group) { return values->first[group] * LANES; }

/* Rows of a tile: all tiles of about equal height. */
static size_t tile_height(size_t rows) {
    const size_t tiles = (rows + TILE_ROWS - 1u) / TILE_ROWS;
    return tiles <= 1 ? rows : (rows + tiles - 1u) / tiles;
}

/* All rows while the weights of the group are in the cache. */
void product_run(const product *work, size_t group) {
    const matrix *const values = work->values;
    const size_t panel = values->first[group];
    const size_t panels = values->first[group + 1u] - panel;
    const size_t height = tile_height(work->rows);
    for (size_t row = 0; row < work->rows; row += height) {
        const tile job = {values->type,
                          (const char *)values->weights + panel * values->depth * LANES * weight_size(values->type),
                          LANES,
                          panels * LANES,
                          values->depth,
                          work->x + row * work->x_stride,
                          work->x_stride,
                          values->bias == NULL ? NULL : values->bias + panel * LANES,
                          work->out + row * work->out_stride + panel * LANES,
                          work->out_stride};
        multiply_rows(&job, least(work->rows - row, height), panels);
    }
}

// ---------------------------------------------------------------- loading

static uint16_t stored_half(const tensor *from, uint64_t index) {
    const unsigned char *at = from->data + 2u * index;
    return (uint16_t)(at[0] | (unsigned)at[1] << 8u);
}

static size_t units_of(const matrix *values) { return (values->panels + UNIT_PANELS - 1u) / UNIT_PANELS; }

/* Cuts the panels into groups: an even number of them, so that two threads have the same to do. */
static void cut_groups(matrix *to, arena *memory) {
    const size_t groups = (to->panels + GROUP_PANELS - 1u) / GROUP_PANELS;
    to->groups = groups <= 1 ? groups : round_up(groups, 2u);
    to->first = arena_take(memory, (to->groups + 1u) * sizeof(size_t));
    for (size_t group = 0; group <= to->groups; group++) {
        to->first[group] = least(units_of(to) * group / to->groups * UNIT_PANELS, to->panels);
    }
}

/* Where the weight of an output for input 0 is, and how far it is to that of the next input. A group of panels is stored
 * input by input, so that a product reads the matrix from one end to the other. */
static size_t output_start(const matrix *values, size_t output, size_t *step) {
    const size_t panel = output / LANES;
    /* The last group that begins, by cut_groups, at or before the panel. */
    const size_t group = ((panel / UNIT_PANELS + 1u) * values->groups - 1u) / units_of(values);
    const size_t first = values->first[group];
    *step = (values->first[group + 1u] - first) * LANES;
    return first * values->depth * LANES + (panel - first) * LANES + output % LANES;
}

/* Puts one output's weights into its lane of its panel. */
static void place_output(matrix *to, size_t output, const tensor *from, size_t row, float *scratch) {
    size_t step;
    const size_t start = output_start(to, output, &step);
    if (to->type == TENSOR_F32) {
        tensor_floats(from, (uint64_t)row * to->depth, to->depth, scratch);
        for (size_t input = 0; input < to->depth; input++) {
            ((float *)to->weights)[start + input * step] = scratch[input];
        }
        return;
    }
    for (size_t input = 0; input < to->depth; input++) {
        ((uint16_t *)to->weights)[start + input * step] = stored_half(from, (uint64_t)row * to->depth + input);
    }
}

void matrix_load(matrix *to, arena *memory, size_t depth, const matrix_part *parts, size_t count) {
    float *scratch = allocate(depth, sizeof(float));
    size_t output = 0;
    memset(to, 0, sizeof *to);
    to->type = parts[0].weights->type;
    to->depth = depth;
    for (size_t index = 0; index < count; index++) {
        to->width += parts[index].width;
        to->type = parts[index].weights->type == to->type ? to->type : TENSOR_F32;
    }
    to->panels = (to->width + LANES - 1u) / LANES;
    cut_groups(to, memory);
    to->weights = arena_take(memory, to->panels * LANES * depth * weight_size(to->type));
    for (size_t index = 0; index < count; index++) {
        if (parts[index].bias != NULL) {
            to->bias = to->bias == NULL ? arena_take(memory, to->panels * LANES * sizeof(float)) : to->bias;
            tensor_floats(parts[index].bias, parts[index].first, parts[index].width, to->bias + output);
        }
        for (size_t row = 0; row < parts[index].width; row++) {
            place_output(to, output++, parts[index].weights, parts[index].first + row, scratch);
        }
    }
    free(scratch);
}

void matrix_read_output(const matrix *values, size_t output, float *to) {
    size_t step;
    const size_t start = output_start(values, output, &step);
    for (size_t input = 0; input < values->depth; input++) {
        const size_t at = start + input * step;
        if (values->type == TENSOR_F32) {
            to[input] = ((const float *)values->weights)[at];
        } else if (values->type == TENSOR_F16) {
            to[input] = half_to_float(((const uint16_t *)values->weights)[at]);
        } else {
            to[input] = brain_to_float(((const uint16_t *)values->weights)[at]);
        }
    }
}
