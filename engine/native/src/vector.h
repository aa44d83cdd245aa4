// As many floats at a time as one register holds, in the compiler's own vector notation: sixteen with AVX-512, eight with
// AVX, four with SSE or NEON. (A vector of more than a register lives in memory, which makes everything twenty times
// slower.) The order of additions is written down here and not left to the compiler, so that a row of a matrix product has
// the same bits whatever else is computed with it.
#ifndef COLIBRI_NATIVE_VECTOR_H
#define COLIBRI_NATIVE_VECTOR_H

#include <stdint.h>
#include <string.h>

#if defined(__F16C__) || defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "half.h"

#if defined(__AVX512F__)
#define LANES 16u
#elif defined(__AVX__)
#define LANES 8u
#else
#define LANES 4u
#endif

typedef float lane_floats __attribute__((vector_size(4 * LANES)));
typedef int32_t lane_ints __attribute__((vector_size(4 * LANES)));
typedef uint32_t lane_words __attribute__((vector_size(4 * LANES)));
typedef uint16_t lane_halves __attribute__((vector_size(2 * LANES)));

#define VECTOR_INLINE static inline __attribute__((always_inline))

VECTOR_INLINE void load_floats(lane_floats *to, const float *from) { memcpy(to, from, sizeof *to); }

VECTOR_INLINE void store_floats(float *to, const lane_floats *from) { memcpy(to, from, sizeof *from); }

VECTOR_INLINE void load_brains(lane_floats *to, const uint16_t *from) {
    lane_halves bits;
    lane_words wide;
    memcpy(&bits, from, sizeof bits);
    wide = __builtin_convertvector(bits, lane_words) << 16u;
    memcpy(to, &wide, sizeof wide);
}

VECTOR_INLINE void load_halves(lane_floats *to, const uint16_t *from) {
#if defined(__AVX512F__)
    const __m512 wide = _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)from));
    memcpy(to, &wide, sizeof wide);
#elif defined(__F16C__)
    const __m256 wide = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)from));
    memcpy(to, &wide, sizeof wide);
#else
    float wide[LANES];
    for (unsigned lane = 0; lane < LANES; lane++) {
        wide[lane] = half_to_float(from[lane]);
    }
    memcpy(to, wide, sizeof wide);
#endif
}

// Lane by lane `where` (all bits set or none) ? left : right.
VECTOR_INLINE void choose_floats(lane_floats *to, const lane_ints *where, const lane_floats *left, const lane_floats *right) {
    lane_ints one;
    lane_ints other;
    memcpy(&one, left, sizeof one);
    memcpy(&other, right, sizeof other);
    one = (one & *where) | (other & ~*where);
    memcpy(to, &one, sizeof one);
}

VECTOR_INLINE void larger_floats(lane_floats *to, const lane_floats *left, const lane_floats *right) {
    const lane_ints where = *left > *right;
    choose_floats(to, &where, left, right);
}

// e^x to about two units in the last place; exactly 0 below -87 (minus infinity included), e^88 above 88.
VECTOR_INLINE void exponential(lane_floats *value) {
    const lane_floats zero = {0.0f};
    const lane_floats smallest = zero - 87.0f;
    const lane_floats largest = zero + 88.0f;
    const lane_floats shift = zero + 12582912.0f; // 1.5 * 2^23: adding it rounds to an integer
    const lane_ints vanishes = *value < smallest;
    lane_floats x = *value;
    lane_floats turns;
    lane_floats sum;
    lane_floats scale;
    lane_ints exponent;
    lane_ints above;
    choose_floats(&x, &vanishes, &smallest, &x);
    above = x > largest;
    choose_floats(&x, &above, &largest, &x);
    turns = x * 1.44269504088896341f + shift;
    turns -= shift;
    x -= turns * 0.693359375f; // ln 2 in two parts, the first exact in few bits
    x -= turns * -2.12194440e-4f;
    sum = zero + 1.9875691500e-4f;
    sum = sum * x + 1.3981999507e-3f;
    sum = sum * x + 8.3334519073e-3f;
    sum = sum * x + 4.1665795894e-2f;
    sum = sum * x + 1.6666665459e-1f;
    sum = sum * x + 5.0000001201e-1f;
    sum = sum * (x * x) + x + 1.0f;
    exponent = (__builtin_convertvector(turns, lane_ints) + 127) << 23;
    memcpy(&scale, &exponent, sizeof scale);
    sum *= scale;
    choose_floats(value, &vanishes, &zero, &sum);
}

// The sum over all lanes, added pairwise in a fixed order.
VECTOR_INLINE float sum_of_lanes(const lane_floats *value) {
    float lanes[LANES];
    memcpy(lanes, value, sizeof lanes);
    for (unsigned width = LANES / 2u; width > 0; width /= 2u) {
        for (unsigned lane = 0; lane < width; lane++) {
            lanes[lane] += lanes[lane + width];
        }
    }
    return lanes[0];
}

#endif
