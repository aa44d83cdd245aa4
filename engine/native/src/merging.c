#include "merging.h"

#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "utf8.h"

#define NO_SYMBOL SIZE_MAX
#define LETTER_BYTES 2u // of a character of the byte alphabet

static bool comes_first(const merge_candidate *one, const merge_candidate *other) {
    return one->rank != other->rank ? one->rank < other->rank : one->place < other->place;
}

static void push(merger *work, merge_candidate added) {
    size_t at = work->heap_count++;
    if (work->heap_count > work->heap_room) {
        work->heap_room = most(64, 2u * work->heap_room);
        work->heap = reallocate(work->heap, work->heap_room, sizeof(merge_candidate));
    }
    while (at > 0 && comes_first(&added, &work->heap[(at - 1u) / 2u])) {
        work->heap[at] = work->heap[(at - 1u) / 2u];
        at = (at - 1u) / 2u;
    }
    work->heap[at] = added;
}

static merge_candidate pop(merger *work) {
    const merge_candidate first = work->heap[0];
    const merge_candidate last = work->heap[--work->heap_count];
    size_t at = 0;
    for (;;) {
        size_t child = 2u * at + 1u;
        if (child + 1u < work->heap_count && comes_first(&work->heap[child + 1u], &work->heap[child])) {
            child++;
        }
        if (child >= work->heap_count || !comes_first(&work->heap[child], &last)) {
            break;
        }
        work->heap[at] = work->heap[child];
        at = child;
    }
    work->heap[at] = last;
    return first;
}

/* Puts what the symbol at `place` and its right neighbour may become on the heap. */
static void consider(merger *work, const vocabulary *words, size_t place) {
    const merge_entry *found;
    if (place == NO_SYMBOL || work->symbols[place].after == NO_SYMBOL) {
        return;
    }
    found = vocabulary_merge(words, work->symbols[place].token, work->symbols[work->symbols[place].after].token);
    if (found != NULL) {
        push(work, (merge_candidate){found->rank, found->token, place});
    }
}

static bool still_valid(const merger *work, const vocabulary *words, const merge_candidate *wanted) {
    const merge_symbol *const left = &work->symbols[wanted->place];
    const merge_entry *found;
    if (left->token == NO_TOKEN || left->after == NO_SYMBOL) {
        return false;
    }
    found = vocabulary_merge(words, left->token, work->symbols[left->after].token);
    return found != NULL && found->token == wanted->token;
}

/* The token of the whole word, where whole words come first. */
static uint32_t whole_word(merger *work, const vocabulary *words, const char *word, size_t size) {
    size_t used = 0;
    if (!words->whole_words_first) {
        return NO_TOKEN;
    }
    if (size > work->letter_room / LETTER_BYTES) {
        work->letter_room = size * LETTER_BYTES;
        work->letters = reallocate(work->letters, work->letter_room, 1);
    }
    for (size_t at = 0; at < size; at++) {
        used += utf8_write(work->letters + used, vocabulary_letter((unsigned char)word[at]));
    }
    return vocabulary_find(words, work->letters, used);
}

static size_t fill(merger *work, const vocabulary *words, const char *word, size_t size) {
    size_t count = 0;
    if (size > work->symbol_room) {
        work->symbol_room = most(size, 2u * work->symbol_room);
        work->symbols = reallocate(work->symbols, work->symbol_room, sizeof(merge_symbol));
    }
    for (size_t at = 0; at < size; at++) {
        uint32_t token = words->byte_tokens[(unsigned char)word[at]];
        token = token == NO_TOKEN ? words->unknown : token;
        if (token != NO_TOKEN) {
            work->symbols[count] = (merge_symbol){token, count == 0 ? NO_SYMBOL : count - 1u, count + 1u};
            count++;
        }
    }
    if (count != 0) {
        work->symbols[count - 1u].after = NO_SYMBOL;
    }
    return count;
}

void merger_run(merger *work, const vocabulary *words, const char *word, size_t size, token_list *to) {
    const uint32_t whole = whole_word(work, words, word, size);
    size_t count;
    if (whole != NO_TOKEN) {
        token_list_add(to, whole);
        return;
    }
    count = fill(work, words, word, size);
    work->heap_count = 0;
    for (size_t place = 0; place < count; place++) {
        consider(work, words, place);
    }
    while (work->heap_count != 0) {
        const merge_candidate best = pop(work);
        merge_symbol *const left = &work->symbols[best.place];
        size_t swallowed;
        if (!still_valid(work, words, &best)) {
            continue;
        }
        swallowed = left->after;
        left->token = best.token;
        left->after = work->symbols[swallowed].after;
        work->symbols[swallowed].token = NO_TOKEN;
        if (left->after != NO_SYMBOL) {
            work->symbols[left->after].before = best.place;
        }
        consider(work, words, left->before);
        consider(work, words, best.place);
    }
    for (size_t place = 0; count != 0 && place != NO_SYMBOL; place = work->symbols[place].after) {
        token_list_add(to, work->symbols[place].token);
    }
}

void merger_free(merger *work) {
    free(work->symbols);
    free(work->heap);
    free(work->letters);
    memset(work, 0, sizeof *work);
}
