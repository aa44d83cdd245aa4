// Weight matrices as the forward pass wants them, and their product with rows of activations.
//
// A matrix of `width` outputs is stored in panels of LANES outputs, a few panels side by side and input by input, in the
// type of the checkpoint.
// Each output is the sum over the inputs in their order, one fused multiply-add each: the bits of one row depend neither
// on how many rows are computed together nor on the number of threads, and 16-bit weights give the bits of the same
// weights in 32.
#ifndef COLIBRI_NATIVE_MATRIX_H
#define COLIBRI_NATIVE_MATRIX_H

#include <stddef.h>

#include "arena.h"
#include "checkpoint.h"
#include "vector.h"

typedef struct matrix {
    tensor_type type;
    size_t depth;  // inputs
    size_t width;  // outputs
    size_t panels; // of LANES outputs; outputs beyond `width` are zero
    size_t groups; // of panels
    size_t *first; // panel of each group, and behind the last group the number of panels
    void *weights;
    float *bias; // per output, padded; NULL: none
} matrix;

// One of the checkpoint's matrices that are joined side by side, or rows first .. first + width - 1 of it; `bias` NULL: none.
typedef struct matrix_part {
    const tensor *weights; // (rows, depth)
    const tensor *bias;    // (rows)
    size_t first;
    size_t width;
} matrix_part;

// Joins parts of equal depth, in memory of the arena. Weights stay 16-bit when all parts have the same such type.
void matrix_load(matrix *to, arena *memory, size_t depth, const matrix_part *parts, size_t count);

// Floats from one row of `width` numbers to the next: whole vectors, and an odd number of them, so that the same column
// of all rows that are computed together does not fall into the same few places of the first-level cache.
static inline size_t row_stride(size_t width) { return ((width + LANES - 1u) / LANES | 1u) * LANES; }

// The weights of output `output` as floats: the row of an embedding.
void matrix_read_output(const matrix *values, size_t output, float *to);

// out[row] = x[row] * weights + bias, for `rows` rows that are `x_stride` and `out_stride` floats apart. Whole panels are
// written.
typedef struct product {
    const matrix *values;
    const float *x;
    size_t x_stride;
    size_t rows;
    float *out;
    size_t out_stride;
} product;

// A product is computed in groups of columns, each by itself: the multiply-adds of one, and the column a group begins with,
// which is also where the one before it ends (a multiple of LANES; the last group ends with a whole panel).
size_t product_adds(const matrix *values, size_t rows);
size_t product_column(const matrix *values, size_t group);

// Computes one group.
void product_run(const product *work, size_t group);

// Sixteen-output panels of plain floats that are somewhere else, as keys and values of attention are: panel p, input k
// begins at weights + p * panel_stride + k * input_stride.
typedef struct panel_view {
    const float *weights;
    size_t panel_stride;
    size_t input_stride;
    size_t depth;
    size_t panels;
} panel_view;

#define TILE_ROWS 8u

// The same product with at most TILE_ROWS rows, in this thread.
void panels_multiply(const panel_view *view, const float *x, size_t x_stride, size_t rows, float *out, size_t out_stride);

#endif
