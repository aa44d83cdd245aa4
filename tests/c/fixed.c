/* Compares colibri_put_fixed with snprintf over random bit patterns and halfway cases; prints the first difference. */
#include <stdio.h>

#include "colibri_wire.h"

static uint64_t state = UINT64_C(88172645463325252);

static uint64_t next(void) {
    state ^= state << 13u;
    state ^= state >> 7u;
    state ^= state << 17u;
    return state;
}

static void compare(double value) {
    char ours[400];
    char theirs[400];
    unsigned decimals;
    for (decimals = 0u; decimals <= 9u; decimals++) {
        colibri_out out;
        out.at = ours;
        colibri_put_fixed(&out, value, decimals);
        *out.at = '\0';
        (void)snprintf(theirs, sizeof theirs, "%.*f", (int)decimals, value);
        if (isnan(value)) {
            (void)snprintf(theirs, sizeof theirs, "nan"); /* printf writes the sign of a nan, the wire has none */
        }
        if (strcmp(ours, theirs) != 0) {
            printf("%a with %u decimals: %s, snprintf: %s\n", value, decimals, ours, theirs);
            exit(1);
        }
    }
}

int main(void) {
    static const double special[] = {0.0, 0.5, 1.5, 2.5, 0.125, 5e-324, 1.7976931348623157e308, 9007199254740992.0,
                                     4503599627370496.5, 0.9999995, 0.9999994999999999, 1e22, 1e23, 0.0000005, 123456.7890625};
    size_t place;
    for (place = 0u; place < sizeof special / sizeof special[0]; place++) {
        compare(special[place]);
        compare(-special[place]);
    }
    compare(HUGE_VAL);
    compare(-HUGE_VAL);
    compare((double)NAN);
    for (place = 0u; place < 40000u; place++) {
        const uint64_t bits = next();
        double value;
        memcpy(&value, &bits, sizeof value);
        compare(value);
        compare((double)(next() % 200000u) / 64.0);                        /* exact halves of every decimal place */
        compare(ldexp((double)(next() & 0xfffffu), -(int)(next() % 40u))); /* few bits: many halfway cases */
        compare(ldexp((double)(next() >> 11u), (int)(next() % 200u) - 140));
    }
    puts("equal");
    return 0;
}
