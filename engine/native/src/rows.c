#include "rows.h"

#include <math.h>
#include <string.h>

#include "vector.h"

void normalise(const float *x, const float *scale, float epsilon, size_t size, float *to) {
    lane_floats squares = {0.0f};
    float lanes[LANES];
    float factor;
    const size_t whole = size / LANES * LANES;
    for (size_t at = 0; at < whole; at += LANES) {
        lane_floats part;
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

void rotate(float *head, const float *turns, size_t pairs, bool neighbours) {
    const size_t step = neighbours ? 2u : 1u;
    float *const second = head + (neighbours ? 1u : pairs);
    for (size_t pair = 0; pair < pairs; pair++) {
        const float one = head[pair * step];
        const float other = second[pair * step];
        head[pair * step] = one * turns[2u * pair] - other * turns[2u * pair + 1u];
        second[pair * step] = other * turns[2u * pair] + one * turns[2u * pair + 1u];
    }
}

void activate(float *gate, const float *up, size_t size) {
    const lane_floats one = (lane_floats){0.0f} + 1.0f;
    for (size_t at = 0; at < size; at += LANES) {
        lane_floats x;
        lane_floats factor;
        lane_floats falling;
        load_floats(&x, gate + at);
        load_floats(&factor, up + at);
        falling = -x;
        exponential(&falling);
        x = x / (one + falling) * factor;
        store_floats(gate + at, &x);
    }
}
