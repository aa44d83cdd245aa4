// Runs a grammar over bytes: a state is the set of all stacks the text so far may have led to.
//
// A stack is the element that comes next and what follows when its alternative ends. Stacks share their tails and are
// numbered, equal ones alike, so that a set of them is a list of numbers. Calls at the end of an alternative leave
// nothing behind, so repetition does not deepen the stack. States are numbered too, and what a byte makes of one is
// found out once: words that lead to the same state go on from there together.
#ifndef COLIBRI_NATIVE_MACHINE_H
#define COLIBRI_NATIVE_MACHINE_H

#include "rules.h"

// What a mask may take, in parts of about 8 ns.
#define MOST_WORK 20000000u

// The empty stack: the text is complete.
#define STACK_EMPTY 0u

// The state without stacks: the text is not of the language.
#define STATE_NONE 0u

typedef struct stack_node {
    uint32_t place; // next element
    uint32_t below; // stack it continues with
    uint32_t seen;  // closure it was last met in
} stack_node;

typedef struct stack_list {
    uint32_t *stacks;
    size_t count;
    size_t room;
} stack_list;

// Where the stacks of a state are in the list of all.
typedef struct state_stacks {
    size_t first;
    size_t count;
} state_stacks;

// What a byte makes of a state.
typedef struct state_move {
    uint32_t from; // state and byte, or NO_MOVE
    uint32_t to;
} state_move;

typedef struct machine {
    const rules *grammar;
    stack_node *nodes;
    size_t count;
    size_t room;
    uint32_t *table; // nodes by content
    size_t table_mask;
    uint32_t closure;
    stack_list work; // nodes still to be followed
    stack_list all;  // stacks of all states, one state behind the other
    state_stacks *states;
    size_t state_count;
    size_t state_room;
    uint32_t *state_table; // states by content
    size_t state_mask;
    state_move *moves;
    size_t move_count;
    size_t move_mask;
    size_t work_left;
    bool exhausted; // the work is used up or there are too many stacks: the machine cannot go on
} machine;

void machine_open(machine *runner, const rules *grammar);
void machine_close(machine *runner);

// Begins a stretch of bounded work, after which the machine is exhausted. Returns what `state` is called from now on:
// states that were met before may be forgotten.
uint32_t machine_begin(machine *runner, uint32_t state);

// The state at the beginning of a rule.
uint32_t machine_start(machine *runner, uint32_t number);

// What a state becomes by one byte.
uint32_t machine_step(machine *runner, uint32_t state, unsigned char byte);

// Whether the text may end in this state, and whether nothing may follow.
bool machine_may_end(const machine *runner, uint32_t state);
bool machine_must_end(const machine *runner, uint32_t state);

#endif
