#include "utf8.h"

size_t utf8_read(const char *data, size_t size, uint32_t *character) {
    static const uint32_t smallest[5] = {0u, 0u, 0x80u, 0x800u, 0x10000u};
    uint32_t value;
    size_t length;
    if (size == 0) {
        return 0;
    }
    value = (unsigned char)data[0];
    if (value < 0x80u) {
        *character = value;
        return 1;
    }
    if (value >= 0xc2u && value < 0xe0u) {
        length = 2;
        value &= 0x1fu;
    } else if (value >= 0xe0u && value < 0xf0u) {
        length = 3;
        value &= 0x0fu;
    } else if (value >= 0xf0u && value < 0xf5u) {
        length = 4;
        value &= 0x07u;
    } else {
        return 0;
    }
    if (size < length) {
        return 0;
    }
    for (size_t at = 1; at < length; at++) {
        const uint32_t next = (unsigned char)data[at];
        if ((next & 0xc0u) != 0x80u) {
            return 0;
        }
        value = value << 6u | (next & 0x3fu);
    }
    if (value < smallest[length] || value > 0x10ffffu || (value >= 0xd800u && value < 0xe000u)) {
        return 0;
    }
    *character = value;
    return length;
}

size_t utf8_write(char *to, uint32_t character) {
    if (character < 0x80u) {
        to[0] = (char)character;
        return 1;
    }
    if (character < 0x800u) {
        to[0] = (char)(0xc0u | character >> 6u);
        to[1] = (char)(0x80u | (character & 0x3fu));
        return 2;
    }
    if (character < 0x10000u) {
        to[0] = (char)(0xe0u | character >> 12u);
        to[1] = (char)(0x80u | (character >> 6u & 0x3fu));
        to[2] = (char)(0x80u | (character & 0x3fu));
        return 3;
    }
    to[0] = (char)(0xf0u | character >> 18u);
    to[1] = (char)(0x80u | (character >> 12u & 0x3fu));
    to[2] = (char)(0x80u | (character >> 6u & 0x3fu));
    to[3] = (char)(0x80u | (character & 0x3fu));
    return 4;
}

bool utf8_valid(const char *data, size_t size) {
    size_t at = 0;
    uint32_t character;
    while (at < size) {
        const size_t length = utf8_read(data + at, size - at, &character);
        if (length == 0) {
            return false;
        }
        at += length;
    }
    return true;
}
