#include "machine.h"

#include <stdlib.h>
#include <string.h>

#include "base.h"

#define FREE UINT32_MAX
#define NO_MOVE UINT32_MAX

// The work of one mask, which holds up every other request. It is counted in about 8 ns: 1 for a stack that is asked for
// a byte, more for one that is followed or looked up. It does not grow with the number of words, only with the states
// they lead to. With a vocabulary of 150,000 tokens a mask of any JSON object takes less than 100,000, of a string with a
// maxLength 1 to 3 million (every place in it is a state), of an enum of 20,000 values some 10 million. So 20 million
// (MOST_WORK) leave ordinary grammars seven to two hundred times what they need, and are about 0.2 s.
#define FOLLOWED 4u
#define LOOKED_UP 8u
#define ADDED 16u // a stack that was not there: besides, tables grow

// Memory: stacks are kept as long as the request, states and moves from one mask to the next while they are few.
#define MOST_NODES 2000000u
#define KEPT_STACKS 500000u
#define KEPT_MOVES 500000u

static size_t mixed(uint64_t value) {
    value *= UINT64_C(0x9e3779b97f4a7c15);
    value ^= value >> 29u;
    return (size_t)value;
}

static size_t hash(uint32_t place, uint32_t below) { return mixed((uint64_t)place << 32u | below); }

static void spend(machine *runner, size_t work) {
    runner->exhausted = runner->exhausted || runner->work_left < work;
    runner->work_left -= least(runner->work_left, work);
}

static void append(stack_list *list, uint32_t value) {
    if (list->count == list->room) {
        list->room = most(64, 2u * list->room);
        list->stacks = reallocate(list->stacks, list->room, sizeof(uint32_t));
    }
    list->stacks[list->count++] = value;
}

// ---------------------------------------------------------------- stacks

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
    spend(runner, LOOKED_UP);
    while (runner->table[at] != FREE) {
        const stack_node *const node = &runner->nodes[runner->table[at]];
        if (node->place == place && node->below == below) {
            return runner->table[at];
        }
        at = (at + 1u) & runner->table_mask;
        spend(runner, LOOKED_UP);
    }
    spend(runner, ADDED);
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

/* Has a stack looked at in the present closure, once. */
static void visit(machine *runner, uint32_t node) {
    if (runner->nodes[node].seen != runner->closure) {
        runner->nodes[node].seen = runner->closure;
        append(&runner->work, node);
    }
}

static void visit_place(machine *runner, uint32_t place, uint32_t below) {
    visit(runner, node_of(runner, place, below));
}

// ---------------------------------------------------------------- states

static bool same_stacks(const machine *runner, state_stacks one, const uint32_t *stacks, size_t count) {
    return one.count == count &&
           (count == 0 || memcmp(runner->all.stacks + one.first, stacks, count * sizeof *stacks) == 0);
}

static size_t state_place(const machine *runner, const uint32_t *stacks, size_t count) {
    uint64_t value = count;
    size_t at;
    for (size_t index = 0; index < count; index++) {
        value = mixed(value ^ stacks[index]);
    }
    at = mixed(value) & runner->state_mask;
    while (runner->state_table[at] != FREE &&
           !same_stacks(runner, runner->states[runner->state_table[at]], stacks, count)) {
        at = (at + 1u) & runner->state_mask;
    }
    return at;
}

static void grow_states(machine *runner) {
    runner->state_room = most(256, 2u * runner->state_room);
    runner->states = reallocate(runner->states, runner->state_room, sizeof(state_stacks));
    runner->state_mask = 2u * runner->state_room - 1u;
    runner->state_table = reallocate(runner->state_table, 2u * runner->state_room, sizeof(uint32_t));
    memset(runner->state_table, 0xff, 2u * runner->state_room * sizeof(uint32_t));
    for (size_t state = 0; state < runner->state_count; state++) {
        const state_stacks *const its = &runner->states[state];
        runner->state_table[state_place(runner, runner->all.stacks + its->first, its->count)] = (uint32_t)state;
    }
}

/* The state whose stacks are those from `first` on in the list of all, which loses them when the state is known. */
static uint32_t state_of(machine *runner, size_t first) {
    const size_t count = runner->all.count - first;
    size_t at;
    if (runner->state_count == runner->state_room) {
        grow_states(runner);
    }
    at = state_place(runner, runner->all.stacks + first, count);
    if (runner->state_table[at] != FREE) {
        runner->all.count = first;
        return runner->state_table[at];
    }
    runner->states[runner->state_count] = (state_stacks){first, count};
    runner->state_table[at] = (uint32_t)runner->state_count;
    return (uint32_t)runner->state_count++;
}

/* Follows ends and calls until only stacks are left that wait for a byte, or for nothing: the state they make. */
static uint32_t close_state(machine *runner) {
    const size_t first = runner->all.count;
    while (runner->work.count != 0 && !runner->exhausted) {
        const uint32_t number = runner->work.stacks[--runner->work.count];
        const stack_node node = runner->nodes[number];
        const element now = number == STACK_EMPTY ? (element){ELEMENT_SET, 0} : runner->grammar->elements[node.place];
        spend(runner, FOLLOWED);
        if (now.kind == ELEMENT_SET) {
            append(&runner->all, number);
        } else if (now.kind == ELEMENT_END) {
            visit(runner, node.below);
        } else {
            const rule *const called = &runner->grammar->rules[now.value];
            const bool last = runner->grammar->elements[node.place + 1u].kind == ELEMENT_END;
            const uint32_t below = last ? node.below : node_of(runner, node.place + 1u, node.below);
            for (uint32_t index = 0; index < called->count && !runner->exhausted; index++) {
                visit_place(runner, called->starts[index], below);
            }
        }
        runner->exhausted = runner->exhausted || runner->count > MOST_NODES;
    }
    runner->work.count = 0;
    if (runner->exhausted) {
        runner->all.count = first;
        return STATE_NONE;
    }
    return state_of(runner, first);
}

// ---------------------------------------------------------------- moves

static size_t move_place(const machine *runner, uint32_t from) {
    size_t at = mixed(from) & runner->move_mask;
    while (runner->moves[at].from != NO_MOVE && runner->moves[at].from != from) {
        at = (at + 1u) & runner->move_mask;
    }
    return at;
}

static void open_moves(machine *runner, size_t size) {
    runner->moves = reallocate(NULL, size, sizeof(state_move));
    memset(runner->moves, 0xff, size * sizeof(state_move));
    runner->move_mask = size - 1u;
}

static void keep_move(machine *runner, uint32_t from, uint32_t to) {
    if (2u * ++runner->move_count > runner->move_mask) {
        state_move *const old = runner->moves;
        const size_t size = runner->move_mask + 1u;
        open_moves(runner, 2u * size);
        for (size_t at = 0; at < size; at++) {
            if (old[at].from != NO_MOVE) {
                runner->moves[move_place(runner, old[at].from)] = old[at];
            }
        }
        free(old);
    }
    runner->moves[move_place(runner, from)] = (state_move){from, to};
}

static uint32_t find_move(machine *runner, uint32_t state, unsigned char byte) {
    const state_stacks from = runner->states[state];
    runner->closure++;
    spend(runner, LOOKED_UP + from.count);
    for (size_t index = 0; index < from.count && !runner->exhausted; index++) {
        const uint32_t number = runner->all.stacks[from.first + index];
        const stack_node node = runner->nodes[number];
        if (number != STACK_EMPTY && rules_in_set(runner->grammar->elements[node.place].value, byte)) {
            visit_place(runner, node.place + 1u, node.below);
        }
    }
    return close_state(runner);
}

uint32_t machine_step(machine *runner, uint32_t state, unsigned char byte) {
    const uint32_t from = state << 8u | byte;
    const state_move known = runner->moves[move_place(runner, from)];
    uint32_t to;
    if (known.from == from || state == STATE_NONE) {
        return known.from == from ? known.to : STATE_NONE;
    }
    to = find_move(runner, state, byte);
    if (!runner->exhausted) {
        keep_move(runner, from, to);
    }
    return to;
}

// ---------------------------------------------------------------- the whole

static void open_states(machine *runner) {
    runner->all.count = 0;
    runner->state_count = 0;
    runner->state_room = 0;
    grow_states(runner);
    (void)state_of(runner, 0); // STATE_NONE
    runner->move_count = 0;
    open_moves(runner, 1024);
}

void machine_open(machine *runner, const rules *grammar) {
    memset(runner, 0, sizeof *runner);
    runner->grammar = grammar;
    runner->room = 1024;
    runner->nodes = allocate(runner->room, sizeof(stack_node));
    runner->count = 1; // STACK_EMPTY
    grow_table(runner);
    open_states(runner);
    runner->work_left = MOST_WORK;
}

void machine_close(machine *runner) {
    free(runner->nodes);
    free(runner->table);
    free(runner->work.stacks);
    free(runner->all.stacks);
    free(runner->states);
    free(runner->state_table);
    free(runner->moves);
    memset(runner, 0, sizeof *runner);
}

uint32_t machine_begin(machine *runner, uint32_t state) {
    runner->work_left = MOST_WORK;
    if (runner->all.count > KEPT_STACKS || runner->move_count > KEPT_MOVES) {
        const state_stacks kept = runner->states[state];
        memmove(runner->all.stacks, runner->all.stacks + kept.first, kept.count * sizeof(uint32_t));
        runner->state_count = 0;
        free(runner->moves);
        open_states(runner);
        runner->all.count = kept.count;
        state = state_of(runner, 0);
    }
    return state;
}

uint32_t machine_start(machine *runner, uint32_t number) {
    const rule *const called = &runner->grammar->rules[number];
    runner->closure++;
    for (uint32_t index = 0; index < called->count && !runner->exhausted; index++) {
        visit_place(runner, called->starts[index], STACK_EMPTY);
    }
    return close_state(runner);
}

bool machine_may_end(const machine *runner, uint32_t state) {
    const state_stacks its = runner->states[state];
    for (size_t index = 0; index < its.count; index++) {
        if (runner->all.stacks[its.first + index] == STACK_EMPTY) {
            return true;
        }
    }
    return false;
}

bool machine_must_end(const machine *runner, uint32_t state) {
    return runner->states[state].count == 1 && machine_may_end(runner, state);
}
