// Commands in, frames out: the engine's side of a request's life (wire.md sections 2 to 5).
//
// No pipe in here: bytes come in through the reader, work is done one step at a time, and the frames collect in `output`.
// Guarantees: ACCEPT or exactly one ERROR answers each SUBMIT; ACCEPT comes before any prefill of its request; STOP and
// CANCEL take effect before the next step; one step is at most one chunk of the oldest prompt and one pass for all requests
// that are generating, with one token of each. One whose mask is heavy waits with its logits while the masks of others fill
// the step; a later step begins with its token and may have another of it from the pass, so two of one request at most.
#ifndef COLIBRI_NATIVE_LOOP_H
#define COLIBRI_NATIVE_LOOP_H

#include "commands.h"
#include "grammar.h"
#include "model.h"
#include "sampler.h"

typedef enum request_phase { REQUEST_NONE, REQUEST_PREFILLING, REQUEST_GENERATING, REQUEST_WAITING } request_phase;

// One request in flight; there is one place per slot.
typedef struct request {
    request_phase phase;
    uint64_t id;
    uint64_t order; // of arrival
    token_list prompt;
    uint32_t max_tokens;
    sampler chooser;
    grammar *constraint; // NULL: any text
    bool complete;       // the constraint allows nothing more
    size_t logprobs;
    bool pin;
    double accepted_at;
    double prefill_began_at; // 0: not yet
    work_totals work_before;
    size_t reused;    // prompt tokens found in the slot's cache
    size_t prefilled; // prompt tokens computed or reused so far
    uint64_t produced; // tokens sampled so far, the end token included
    uint32_t last_token;
    float *logits;    // of a request that waits for its mask
    uint64_t waiting; // its place in the order of waiting
} request;

typedef struct engine_loop {
    model *served;
    grammar_words *grammars;
    command_reader reader;
    buffer output;
    bool urgent; // the output holds more than further tokens of answers; whoever writes it takes this back
    request *requests; // per slot
    size_t in_flight;
    uint64_t arrivals;
    uint64_t waits;
    size_t step_work; // of the masks that this step has made
    uint64_t image_for; // id of an IMAGE whose SUBMIT is still to come; 0: none
    bool broken;        // the command stream lost its framing; the engine must end
    sampling_space space;
    size_t *step_slots;
    uint32_t *step_tokens;
} engine_loop;

void loop_open(engine_loop *loop, model *served);
void loop_close(engine_loop *loop);

// READY and the facts of the machine.
void loop_greet(engine_loop *loop);

// Acts on all commands that are complete in the reader.
void loop_receive(engine_loop *loop);

// No more commands will come.
void loop_end_input(engine_loop *loop);

// Computes one step.
void loop_step(engine_loop *loop);


#endif
