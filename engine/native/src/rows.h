// Work on the numbers of one row that is not a product: norms, rotation, activation.
#ifndef COLIBRI_NATIVE_ROWS_H
#define COLIBRI_NATIVE_ROWS_H

#include <stdbool.h>
#include <stddef.h>

// to = x / sqrt(mean(x^2) + epsilon) * scale; x and to may be the same.
void normalise(const float *x, const float *scale, float epsilon, size_t size, float *to);

// Turns `pairs` pairs of numbers by the angles whose cosines and sines are in `turns`, one after the other. A pair lies side
// by side (`neighbours`) or `pairs` apart.
void rotate(float *head, const float *turns, size_t pairs, bool neighbours);

// gate = silu(gate) * up; `size` is a multiple of LANES.
void activate(float *gate, const float *up, size_t size);

#endif
