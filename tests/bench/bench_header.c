/* Times the C header's writers beside snprintf making the same bytes; prints messages per second. */
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <time.h>

#include "colibri_wire.h"

static char out[8192];
static char other[8192];
static volatile size_t sink;

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static size_t printed(const colibri_echo *echo) {
    size_t at = (size_t)snprintf(other, sizeof other, "ECHO %llu %zu %u %.6f %u", (unsigned long long)echo->id,
                                 echo->payload.size, (unsigned)echo->position, echo->logprob, (unsigned)echo->k);
    for (size_t entry = 0u; entry < echo->k; entry++) {
        at += (size_t)snprintf(other + at, sizeof other - at, " %u %.6f", (unsigned)echo->tokens[entry],
                               echo->token_logprobs[entry]);
    }
    return at + (size_t)snprintf(other + at, sizeof other - at, "\n%.*s\n", (int)echo->payload.size, echo->payload.data);
}

int main(void) {
    uint32_t tokens[COLIBRI_LIMIT_TOP_K];
    double logprobs[COLIBRI_LIMIT_TOP_K];
    colibri_data data;
    colibri_echo echo;
    double start;
    memset(&data, 0, sizeof data);
    memset(&echo, 0, sizeof echo);
    data.id = 12345u;
    data.payload = colibri_text(" token");
    start = seconds();
    for (unsigned turn = 0u; turn < 20000000u; turn++) {
        data.id++;
        sink = colibri_write_data(out, sizeof out, &data, NULL);
    }
    printf("write DATA %.0f\n", 20000000.0 / (seconds() - start));
    for (unsigned entry = 0u; entry < COLIBRI_LIMIT_TOP_K; entry++) {
        tokens[entry] = 1000u * entry + 7u;
        logprobs[entry] = -0.123456789 * (double)(entry + 1u);
    }
    echo.id = 12345u;
    echo.payload = colibri_text(" token");
    echo.logprob = -1.25;
    echo.k = COLIBRI_LIMIT_TOP_K;
    echo.tokens = tokens;
    echo.token_logprobs = logprobs;
    if (colibri_write_echo(out, sizeof out, &echo, NULL) != printed(&echo) || memcmp(out, other, printed(&echo)) != 0) {
        puts("the bytes differ");
        return 1;
    }
    start = seconds();
    for (unsigned turn = 0u; turn < 400000u; turn++) {
        echo.position = turn;
        sink = colibri_write_echo(out, sizeof out, &echo, NULL);
    }
    printf("write ECHO %.0f\n", 400000.0 / (seconds() - start));
    start = seconds();
    for (unsigned turn = 0u; turn < 100000u; turn++) {
        echo.position = turn;
        sink = printed(&echo);
    }
    printf("snprintf ECHO %.0f\n", 100000.0 / (seconds() - start));
    return 0;
}
