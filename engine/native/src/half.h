// The two 16-bit floating point formats of checkpoints.
#ifndef COLIBRI_NATIVE_HALF_H
#define COLIBRI_NATIVE_HALF_H

#include <stdint.h>
#include <string.h>

// bfloat16 is the upper half of a float.
static inline float brain_to_float(uint16_t bits) {
    const uint32_t wide = (uint32_t)bits << 16u;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

// IEEE half precision: exact, subnormals included. The exponent is moved by scaling with 2^112, which also normalises
// subnormals; infinities and NaNs keep their meaning.
static inline float half_to_float(uint16_t bits) {
    const uint32_t sign = (uint32_t)(bits & 0x8000u) << 16u;
    uint32_t wide = (uint32_t)(bits & 0x7fffu) << 13u;
    float value;
    if (wide >= 0x0f800000u) {
        wide |= 0x7f800000u;
        wide |= sign;
        memcpy(&value, &wide, sizeof value);
        return value;
    }
    memcpy(&value, &wide, sizeof value);
    value *= 0x1p112f;
    memcpy(&wide, &value, sizeof wide);
    wide |= sign;
    memcpy(&value, &wide, sizeof value);
    return value;
}

#endif
