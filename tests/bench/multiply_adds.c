// For the benchmarks: the most multiply-adds of 32-bit floats that one thread does in a second, here and now. Registers
// only: what a matrix product could reach if its weights and its results cost nothing.
//
// Prints the best of many short stretches, each timed by the processor time of the thread.

#include <stdio.h>
#include <time.h>

#include "vector.h"

#define SUMS 12u // enough to hide the latency of an addition, few enough for the registers
#define STEPS 200000u
#define STRETCHES 100u

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int main(void) {
    lane_floats sums[SUMS] = {{0.0f}};
    lane_floats factor = {0.0f};
    double best = 0.0;
    float used = 0.0f;
    factor += 0.999f;
    for (unsigned stretch = 0; stretch < STRETCHES; stretch++) {
        const double start = seconds();
        double speed;
        for (unsigned step = 0; step < STEPS; step++) {
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC unroll 12
#else
#pragma unroll
#endif
            for (unsigned sum = 0; sum < SUMS; sum++) {
                sums[sum] = sums[sum] * factor + factor;
            }
        }
        speed = (double)STEPS * SUMS * LANES / (seconds() - start);
        best = speed > best ? speed : best;
    }
    for (unsigned sum = 0; sum < SUMS; sum++) {
        used += sums[sum][0];
    }
    printf("%.0f\n", used > 0.0f ? best : 0.0);
    return 0;
}
