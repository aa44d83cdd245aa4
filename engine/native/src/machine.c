#include "machine.h"

#include <stdlib.h>
#include <string.h>

#include "base.h"

#define MOST_NODES 4000000u
#define MOST_IN_A_CLOSURE 200000u
#define FREE UINT32_MAX

static size_t hash(uint32_t place, uint32_t below) {
    uint64_t mixed = ((uint64_t)place << 32u | below) * UINT64_C(0x9e3779b97f4a7c15);
    mixed ^= mixed >> 29u;
    return (size_t)mixed;
}

static void grow_table(machine *runner) {
    const size_t size = most(1024, 2u * (runner->table_mask + 1u));
    runner->table = reallocate(runner->table, size, sizeof(uint32_t));
    runner->table_mask = size - 1u;
    memset(runner->table, 0xff, size * sizeof(uint32_t));
    for (size_t node = 1; node < runner->count; node++) {
        size_t at = hash(runner->nodes[node].place, runner->nodes[node].below) & runner->table_mask;
        while (runner->table[at] != FREE) {
            at = (at + 1u) & runner->table_mask;
        }
        runner->table[at] = (uint32_t)node;
    }
}

/* The number of a stack. */
static uint32_t node_of(machine *runner, uint32_t place, uint32_t below) {
    size_t at = hash(place, below) & runner->table_mask;
    while (runner->table[at] != FREE) {
        const stack_node *const node = &runner->nodes[runner->table[at]];
        if (node->place == place && node->below == below) {
            return runner->table[at];
        }
        at = (at + 1u) & runner->table_mask;
    }
    if (runner->count == runner->room) {
        runner->room *= 2u;
        runner->nodes = reallocate(runner->nodes, runner->room, sizeof(stack_node));
    }
    runner->nodes[runner->count] = (stack_node){place, below, 0};
    runner->table[at] = (uint32_t)runner->count++;
    if (2u * runner->count > runner->table_mask) {
        grow_table(runner);
    }
    return (uint32_t)runner->count - 1u;
}

void machine_open(machine *runner, const rules *grammar) {
    memset(runner, 0, sizeof *runner);
    runner->grammar = grammar;
    runner->room = 1024;
    runner->nodes = allocate(runner->room, sizeof(stack_node));
    runner->count = 1; // STACK_EMPTY
    grow_table(runner);
}

void machine_close(machine *runner) {
    free(runner->nodes);
    free(runner->table);
    free(runner->work);
    memset(runner, 0, sizeof *runner);
}

void stack_set_free(stack_set *set) {
    free(set->stacks);
    memset(set, 0, sizeof *set);
}

static void append(uint32_t **list, size_t *count, size_t *room, uint32_t value) {
    if (*count == *room) {
        *room = most(64, 2u * *room);
        *list = reallocate(*list, *room, sizeof(uint32_t));
    }
    (*list)[(*count)++] = value;
}

void stack_set_append(stack_set *set, const uint32_t *stacks, size_t count) {
    for (size_t index = 0; index < count; index++) {
        append(&set->stacks, &set->count, &set->room, stacks[index]);
    }
}

/* Has a stack looked at in the present closure, once. */
static void visit(machine *runner, uint32_t node) {
    if (runner->nodes[node].seen != runner->closure) {
        runner->nodes[node].seen = runner->closure;
        append(&runner->work, &runner->work_count, &runner->work_room, node);
    }
}

static void visit_place(machine *runner, uint32_t place, uint32_t below) {
    visit(runner, node_of(runner, place, below));
}

/* Follows ends and calls until only stacks are left that wait for a byte, or for nothing. */
static void close_set(machine *runner, stack_set *to) {
    size_t followed = 0;
    while (runner->work_count != 0 && !runner->exhausted) {
        const uint32_t number = runner->work[--runner->work_count];
        const stack_node node = runner->nodes[number];
        const element now = number == STACK_EMPTY ? (element){ELEMENT_SET, 0} : runner->grammar->elements[node.place];
        if (now.kind == ELEMENT_SET) {
            append(&to->stacks, &to->count, &to->room, number);
        } else if (now.kind == ELEMENT_END) {
            visit(runner, node.below);
        } else {
            const rule *const called = &runner->grammar->rules[now.value];
            const bool last = runner->grammar->elements[node.place + 1u].kind == ELEMENT_END;
            const uint32_t below = last ? node.below : node_of(runner, node.place + 1u, node.below);
            for (uint32_t index = 0; index < called->count; index++) {
                visit_place(runner, called->starts[index], below);
            }
        }
        runner->exhausted = ++followed > MOST_IN_A_CLOSURE || runner->count > MOST_NODES;
    }
    runner->work_count = 0;
}

void machine_start(machine *runner, uint32_t number, stack_set *to) {
    const rule *const called = &runner->grammar->rules[number];
    runner->closure++;
    for (uint32_t index = 0; index < called->count; index++) {
        visit_place(runner, called->starts[index], STACK_EMPTY);
    }
    close_set(runner, to);
}

void machine_step(machine *runner, const uint32_t *stacks, size_t count, unsigned char byte, stack_set *to) {
    runner->closure++;
    for (size_t index = 0; index < count; index++) {
        const stack_node node = runner->nodes[stacks[index]];
        if (stacks[index] != STACK_EMPTY) {
            const byte_set *const set = &runner->grammar->sets[runner->grammar->elements[node.place].value];
            if ((set->bits[byte / 64u] >> byte % 64u & 1u) != 0) {
                visit_place(runner, node.place + 1u, node.below);
            }
        }
    }
    close_set(runner, to);
}
