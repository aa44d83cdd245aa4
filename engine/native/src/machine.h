// Runs a grammar over bytes: the set of all stacks the text so far may have led to.
//
// A stack is the element that comes next and what follows when its alternative ends. Stacks share their tails and are
// numbered, equal ones alike, so that a set of them is a list of numbers. Calls at the end of an alternative leave nothing
// behind, so repetition does not deepen the stack.
#ifndef COLIBRI_NATIVE_MACHINE_H
#define COLIBRI_NATIVE_MACHINE_H

#include "rules.h"

// The empty stack: the text is complete.
#define STACK_EMPTY 0u

typedef struct stack_node {
    uint32_t place; // next element
    uint32_t below; // stack it continues with
    uint32_t seen;  // closure it was last met in
} stack_node;

typedef struct machine {
    const rules *grammar;
    stack_node *nodes;
    size_t count;
    size_t room;
    uint32_t *table; // nodes by content
    size_t table_mask;
    uint32_t closure;
    uint32_t *work; // nodes still to be followed
    size_t work_count;
    size_t work_room;
    bool exhausted; // too many stacks: the machine cannot go on
} machine;

typedef struct stack_set {
    uint32_t *stacks;
    size_t count;
    size_t room;
} stack_set;

void machine_open(machine *runner, const rules *grammar);
void machine_close(machine *runner);

// Adds the stacks at the beginning of a rule.
void machine_start(machine *runner, uint32_t number, stack_set *to);

// Adds what `count` stacks become by one byte.
void machine_step(machine *runner, const uint32_t *stacks, size_t count, unsigned char byte, stack_set *to);

void stack_set_append(stack_set *set, const uint32_t *stacks, size_t count);
void stack_set_free(stack_set *set);

#endif
