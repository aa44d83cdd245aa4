// Sixteen floats at a time in the compiler's own vector notation: one AVX-512 register, two of AVX2, four of SSE or NEON.
// The order of additions is written down here and not left to the compiler, so that a row of a matrix product has the
// same bits whatever else is computed with it.
#ifndef COLIBRI_NATIVE_VECTOR_H
#define COLIBRI_NATIVE_VECTOR_H

#include <stdint.h>
#include <string.h>

#if defined(__F16C__) || defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "half.h"

#define LANES 16u

typedef float floats16 __attribute__((vector_size(64)));
typedef int32_t ints16 __attribute__((vector_size(64)));
typedef uint32_t words16 __attribute__((vector_size(64)));
typedef uint16_t halves16 __attribute__((vector_size(32)));

#define VECTOR_INLINE static inline __attribute__((always_inline))

VECTOR_INLINE void load_floats(floats16 *to, const float *from) { memcpy(to, from, sizeof *to); }

VECTOR_INLINE void store_floats(float *to, const floats16 *from) { memcpy(to, from, sizeof *from); }

VECTOR_INLINE void load_brains(floats16 *to, const uint16_t *from) {
    halves16 bits;
    words16 wide;
    memcpy(&bits, from, sizeof bits);
    wide = __builtin_convertvector(bits, words16) << 16u;
    memcpy(to, &wide, sizeof wide);
}

VECTOR_INLINE void load_halves(floats16 *to, const uint16_t *from) {
#if defined(__AVX512F__)
    const __m512 wide = _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)from));
    memcpy(to, &wide, sizeof wide);
#elif defined(__F16C__)
    const __m256 low = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)from));
    const __m256 high = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + 8)));
    memcpy(to, &low, sizeof low);
    memcpy((char *)to + sizeof low, &high, sizeof high);
#else
    float wide[LANES];
    for (unsigned lane = 0; lane < LANES; lane++) {
        wide[lane] = half_to_float(from[lane]);
    }
    memcpy(to, wide, sizeof wide);
#endif
}

// Lane by lane `where` (all bits set or none) ? left : right.
VECTOR_INLINE void choose_floats(floats16 *to, const ints16 *where, const floats16 *left, const floats16 *right) {
    ints16 one;
    ints16 other;
    memcpy(&one, left, sizeof one);
    memcpy(&other, right, sizeof other);
    one = (one & *where) | (other & ~*where);
    memcpy(to, &one, sizeof one);
}

VECTOR_INLINE void larger_floats(floats16 *to, const floats16 *left, const floats16 *right) {
    const ints16 where = *left > *right;
    choose_floats(to, &where, left, right);
}

// e^x to about two units in the last place; exactly 0 below -87 (minus infinity included), e^88 above 88.
VECTOR_INLINE void exponential(floats16 *value) {
    const floats16 zero = {0.0f};
    const floats16 smallest = zero - 87.0f;
    const floats16 largest = zero + 88.0f;
    const floats16 shift = zero + 12582912.0f; // 1.5 * 2^23: adding it rounds to an integer
    const ints16 vanishes = *value < smallest;
    floats16 x = *value;
    floats16 turns;
    floats16 sum;
    floats16 scale;
    ints16 exponent;
    ints16 above;
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
    exponent = (__builtin_convertvector(turns, ints16) + 127) << 23;
    memcpy(&scale, &exponent, sizeof scale);
    sum *= scale;
    choose_floats(value, &vanishes, &zero, &sum);
}

// The sum over all lanes, added pairwise in a fixed order.
VECTOR_INLINE float sum_of_lanes(const floats16 *value) {
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
