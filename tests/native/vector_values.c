// For the tests: what the conversions and the exponential of vector.h make of their inputs.
//
//   vector_values halves           65,536 pairs of floats: half_to_float and load_halves of each bit pattern
//   vector_values brains           likewise with brain_to_float and load_brains
//   vector_values exponential      floats on stdin, their exponentials on stdout
//
// Floats are binary, little endian.

#include <stdio.h>
#include <string.h>

#include "vector.h"

static void write_floats(const float *values, size_t count) {
    if (fwrite(values, sizeof *values, count, stdout) != count) {
        fputs("stdout is closed\n", stderr);
    }
}

static void convert(int halves) {
    for (uint32_t first = 0; first < 0x10000u; first += LANES) {
        uint16_t bits[LANES];
        float pairs[LANES][2];
        float lanes[LANES];
        lane_floats together;
        for (uint32_t lane = 0; lane < LANES; lane++) {
            bits[lane] = (uint16_t)(first + lane);
            pairs[lane][0] = halves ? half_to_float(bits[lane]) : brain_to_float(bits[lane]);
        }
        if (halves) {
            load_halves(&together, bits);
        } else {
            load_brains(&together, bits);
        }
        store_floats(lanes, &together);
        for (uint32_t lane = 0; lane < LANES; lane++) {
            pairs[lane][1] = lanes[lane];
        }
        write_floats(&pairs[0][0], 2u * LANES);
    }
}

int main(int argument_count, char **arguments) {
    float lanes[LANES];
    if (argument_count != 2) {
        return 2;
    }
    if (strcmp(arguments[1], "exponential") != 0) {
        convert(strcmp(arguments[1], "halves") == 0);
        return 0;
    }
    while (fread(lanes, sizeof(float), LANES, stdin) == LANES) {
        lane_floats values;
        load_floats(&values, lanes);
        exponential(&values);
        store_floats(lanes, &values);
        write_floats(lanes, LANES);
    }
    return 0;
}
