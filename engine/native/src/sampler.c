#include "sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "vector.h"

void sampling_space_open(sampling_space *space, size_t vocabulary) {
    space->vocabulary = vocabulary;
    space->weights = allocate(vocabulary, sizeof(double));
    space->order = allocate(vocabulary, sizeof(uint32_t));
}

void sampling_space_close(sampling_space *space) {
    free(space->weights);
    free(space->order);
    memset(space, 0, sizeof *space);
}

/* One step of splitmix64. */
static uint64_t next_random(uint64_t *state) {
    uint64_t value = *state += UINT64_C(0x9e3779b97f4a7c15);
    value = (value ^ value >> 30u) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27u) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31u;
}

sampler sampler_start(double temperature, double top_p, uint64_t seed, uint64_t request) {
    uint64_t mixed = seed;
    sampler made = {temperature, top_p, 0};
    mixed = next_random(&mixed) ^ request;
    made.state = next_random(&mixed);
    return made;
}

static bool is_allowed(const uint64_t *allowed, size_t token) {
    return allowed == NULL || (allowed[token / 64u] >> token % 64u & 1u) != 0;
}

/* The lowest of the tokens with the largest logit. LANES candidates side by side, each the first of its lane. */
static uint32_t best_of_all(const float *logits, size_t count) {
    const size_t whole = count / LANES * LANES;
    const lane_ints step = (lane_ints){0} + (int32_t)LANES;
    lane_floats peaks;
    lane_ints places;
    lane_ints best;
    float lane_peaks[LANES];
    int32_t lane_places[LANES];
    size_t found = 0;
    for (size_t lane = 0; lane < LANES; lane++) {
        lane_places[lane] = (int32_t)lane;
    }
    memcpy(&places, lane_places, sizeof places);
    best = places;
    if (whole != 0) {
        load_floats(&peaks, logits);
        for (size_t at = LANES; at < whole; at += LANES) {
            lane_floats part;
            lane_ints larger;
            load_floats(&part, logits + at);
            places += step;
            larger = part > peaks;
            choose_floats(&peaks, &larger, &part, &peaks);
            best = (places & larger) | (best & ~larger);
        }
        memcpy(lane_peaks, &peaks, sizeof lane_peaks);
        memcpy(lane_places, &best, sizeof lane_places);
        found = (size_t)lane_places[0];
        for (size_t lane = 1; lane < LANES; lane++) {
            const size_t place = (size_t)lane_places[lane];
            if (lane_peaks[lane] > logits[found] || (lane_peaks[lane] == logits[found] && place < found)) {
                found = place;
            }
        }
    }
    for (size_t token = whole; token < count; token++) {
        found = logits[token] > logits[found] ? token : found;
    }
    return (uint32_t)found;
}

static uint32_t best_token(const float *logits, size_t count, const uint64_t *allowed) {
    size_t best = count;
    if (allowed == NULL) {
        return best_of_all(logits, count);
    }
    for (size_t token = 0; token < count; token++) {
        if (is_allowed(allowed, token) && (best == count || logits[token] > logits[best])) {
            best = token;
        }
    }
    return (uint32_t)(best == count ? 0 : best);
}

/* The first place whose running total is above `wanted`; `order` NULL: tokens in their own order. */
static uint32_t draw(const double *weights, const uint32_t *order, size_t count, double wanted) {
    double mass = 0.0;
    uint32_t last = 0;
    for (size_t place = 0; place < count; place++) {
        const uint32_t token = order == NULL ? (uint32_t)place : order[place];
        mass += weights[token];
        if (weights[token] > 0.0) {
            last = token;
            if (mass > wanted) {
                break;
            }
        }
    }
    return last;
}

static bool heavier(const double *weights, uint32_t one, uint32_t other) {
    return weights[one] != weights[other] ? weights[one] > weights[other] : one < other;
}

static void sift(const double *weights, uint32_t *heap, size_t count, size_t at) {
    const uint32_t moved = heap[at];
    for (;;) {
        size_t child = 2u * at + 1u;
        if (child + 1u < count && heavier(weights, heap[child + 1u], heap[child])) {
            child++;
        }
        if (child >= count || !heavier(weights, heap[child], moved)) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
}

/* Puts the heaviest tokens that together weigh `wanted` at the end of `order` and their weight into `*mass`; returns how
 * many they are. By a heap, so that no more is sorted than is needed. */
static size_t nucleus(const double *weights, uint32_t *order, size_t count, double wanted, double *mass) {
    size_t left = count;
    *mass = 0.0;
    for (size_t at = count / 2u; at-- > 0;) {
        sift(weights, order, count, at);
    }
    while (left > 0) {
        const uint32_t heaviest = order[0];
        order[0] = order[--left];
        if (left > 0) {
            sift(weights, order, left, 0);
        }
        order[left] = heaviest;
        *mass += weights[heaviest];
        if (*mass >= wanted) {
            break;
        }
    }
    return count - left;
}

uint32_t sampler_choose(sampler *from, sampling_space *space, const float *logits, const uint64_t *allowed) {
    const size_t count = space->vocabulary;
    const uint32_t best = best_token(logits, count, allowed);
    double total = 0.0;
    double random;
    double mass;
    size_t candidates = 0;
    size_t kept;
    double least_weight;
    if (from->temperature == 0.0) {
        return best;
    }
    for (size_t token = 0; token < count; token++) {
        const double scaled = ((double)logits[token] - (double)logits[best]) / from->temperature;
        space->weights[token] = is_allowed(allowed, token) ? exp(scaled) : 0.0;
        total += space->weights[token];
    }
    random = (double)(next_random(&from->state) >> 11u) * 0x1p-53;
    if (from->top_p >= 1.0) {
        return draw(space->weights, NULL, count, random * total);
    }
    /* A token below this cannot be in the nucleus: all such tokens together weigh less than what it leaves out. */
    least_weight = total * (1.0 - from->top_p) / (double)count;
    for (size_t token = 0; token < count; token++) {
        if (space->weights[token] >= least_weight && space->weights[token] > 0.0) {
            space->order[candidates++] = (uint32_t)token;
        }
    }
    kept = nucleus(space->weights, space->order, candidates, total * from->top_p, &mass);
    return draw(space->weights, space->order + (candidates - kept), kept, random * mass);
}

/* Puts a token among the best so far, if it belongs there. */
static size_t insert(const float *logits, uint32_t *tokens, size_t held, size_t room, uint32_t token) {
    size_t at;
    if (held == room && !(logits[token] > logits[tokens[held - 1u]])) {
        return held;
    }
    at = held < room ? held : room - 1u;
    while (at > 0 && logits[token] > logits[tokens[at - 1u]]) {
        tokens[at] = tokens[at - 1u];
        at--;
    }
    tokens[at] = token;
    return held < room ? held + 1u : room;
}

size_t token_numbers(sampling_space *space, const float *logits, uint32_t token, size_t count, double *logprob,
                     uint32_t *tokens, double *token_logprobs) {
    const double peak = (double)logits[best_token(logits, space->vocabulary, NULL)];
    const size_t room = least(count, space->vocabulary);
    size_t held = 0;
    double total = 0.0;
    for (size_t index = 0; index < space->vocabulary; index++) {
        total += exp((double)logits[index] - peak);
        if (room != 0) {
            held = insert(logits, tokens, held, room, (uint32_t)index);
        }
    }
    total = peak + log(total);
    *logprob = (double)logits[token] - total;
    for (size_t place = 0; place < held; place++) {
        token_logprobs[place] = (double)logits[tokens[place]] - total;
    }
    return held;
}
