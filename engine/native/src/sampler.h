// Choosing a token from logits, and the numbers of the log probability channel.
//
// Greedy decoding takes the lowest id among equal maxima. Sampling is repeatable: a request's draws depend on the seed of
// the engine and the request's id only.
#ifndef COLIBRI_NATIVE_SAMPLER_H
#define COLIBRI_NATIVE_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sampler {
    double temperature;
    double top_p;
    uint64_t state;
} sampler;

// Working memory for one vocabulary, shared by all requests.
typedef struct sampling_space {
    size_t vocabulary;
    double *weights;
    uint32_t *order;
} sampling_space;

void sampling_space_open(sampling_space *space, size_t vocabulary);
void sampling_space_close(sampling_space *space);

sampler sampler_start(double temperature, double top_p, uint64_t seed, uint64_t request);

// The next token. `allowed` has one bit per token, at least one of them set; NULL: any token.
uint32_t sampler_choose(sampler *from, sampling_space *space, const float *logits, const uint64_t *allowed);

// Log probability of `token`, and the `count` most likely tokens with theirs, most likely first, equal ones by id.
// Returns how many there are: `count`, or the vocabulary if that is smaller.
size_t token_numbers(sampling_space *space, const float *logits, uint32_t token, size_t count, double *logprob,
                     uint32_t *tokens, double *token_logprobs);

#endif
