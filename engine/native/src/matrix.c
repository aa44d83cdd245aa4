#include "matrix.h"

#include <stdlib.h>
#include <string.h>

#include "base.h"

// The most panels stored side by side, and how many of them are computed together: as many as leave registers for the
// sums of all rows. With AVX-512 that is the whole group, so that any number of rows reads the weights once, in order.
// Groups have about the same number of panels, a multiple of UNIT_PANELS but for the last.
#if defined(__AVX512F__)
#define GROUP_PANELS 3u
#define UNIT_PANELS 1u
#define FEW_ROWS_PANELS 3
#define MANY_ROWS_PANELS 3
#else
#define GROUP_PANELS 4u
#define UNIT_PANELS 2u
#define FEW_ROWS_PANELS 2
#define MANY_ROWS_PANELS 1
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

VECTOR_INLINE void load_weights(floats16 *to, tensor_type type, const void *weights, size_t at) {
    if (type == TENSOR_F32) {
        load_floats(to, (const float *)weights + at);
    } else if (type == TENSOR_F16) {
        load_halves(to, (const uint16_t *)weights + at);
    } else {
        load_brains(to, (const uint16_t *)weights + at);
    }
}

/* The whole arithmetic of a product. `type`, `rows` and `panels` are constants wherever this is inlined. */
VECTOR_INLINE void multiply_tile(const tile *job, tensor_type type, size_t rows, size_t panels) {
    floats16 sums[TILE_ROWS][GROUP_PANELS];
    UNROLL for (size_t panel = 0; panel < panels; panel++) {
        floats16 start = {0.0f};
        if (job->bias != NULL) {
            load_floats(&start, job->bias + panel * LANES);
        }
        UNROLL for (size_t row = 0; row < rows; row++) { sums[row][panel] = start; }
    }
    for (size_t input = 0; input < job->depth; input++) {
        floats16 weights[GROUP_PANELS];
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
            store_floats(job->out + row * job->out_stride + panel * LANES, &sums[row][panel]);
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
            ROWS_CASE(type, 1, FEW_ROWS_PANELS)                                                                        \
            ROWS_CASE(type, 2, FEW_ROWS_PANELS)                                                                        \
            ROWS_CASE(type, 3, FEW_ROWS_PANELS)                                                                        \
            ROWS_CASE(type, 4, FEW_ROWS_PANELS)                                                                        \
            ROWS_CASE(type, 5, MANY_ROWS_PANELS)                                                                       \
            ROWS_CASE(type, 6, MANY_ROWS_PANELS)                                                                       \
            ROWS_CASE(type, 7, MANY_ROWS_PANELS)                                                                       \
            ROWS_CASE(type, 8, MANY_ROWS_PANELS)                                                                       \
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

/* An even number, so that two threads have the same to do. */
size_t product_groups(const matrix *values) {
    const size_t groups = (values->panels + GROUP_PANELS - 1u) / GROUP_PANELS;
    return groups <= 1 ? groups : round_up(groups, 2u);
}

static size_t units_of(const matrix *values) { return (values->panels + UNIT_PANELS - 1u) / UNIT_PANELS; }

static size_t first_panel(const matrix *values, size_t group) {
    return least(units_of(values) * group / product_groups(values) * UNIT_PANELS, values->panels);
}

/* The group whose panels from the first one to the one before the next group's first contain `panel`. */
static size_t group_of(const matrix *values, size_t panel) {
    return ((panel / UNIT_PANELS + 1u) * product_groups(values) - 1u) / units_of(values);
}

size_t product_adds(const matrix *values, size_t rows) {
    return values->depth * LANES * values->panels * rows / most(product_groups(values), 1);
}

size_t product_column(const matrix *values, size_t group) { return first_panel(values, group) * LANES; }

/* All rows while the weights of the group are in the cache, in tiles of about equal height. */
void product_run(const product *work, size_t group) {
    const matrix *const values = work->values;
    const size_t panel = first_panel(values, group);
    const size_t panels = first_panel(values, group + 1u) - panel;
    const size_t tiles = (work->rows + TILE_ROWS - 1u) / TILE_ROWS;
    for (size_t part = 0; part < tiles; part++) {
        const size_t row = work->rows * part / tiles;
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
        multiply_rows(&job, work->rows * (part + 1u) / tiles - row, panels);
    }
}

// ---------------------------------------------------------------- loading

static uint16_t stored_half(const tensor *from, uint64_t index) {
    const unsigned char *at = from->data + 2u * index;
    return (uint16_t)(at[0] | (unsigned)at[1] << 8u);
}

/* Where the weight of an output for input 0 is, and how far it is to that of the next input. A group of panels is stored
 * input by input, so that a product reads the matrix from one end to the other. */
static size_t output_start(const matrix *values, size_t output, size_t *step) {
    const size_t panel = output / LANES;
    const size_t group = group_of(values, panel);
    const size_t first = first_panel(values, group);
    *step = (first_panel(values, group + 1u) - first) * LANES;
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
