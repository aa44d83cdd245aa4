/* A whole engine in C on the generated header: it says the prompt again, a word at a time.
 *
 *   cc -std=c11 -O2 -Igenerated/c docs/examples/parrot.c -o parrot -lm
 *   coli serve --engine ./parrot */
#include <stdio.h>
#include <unistd.h>

#include "colibri_wire.h"

static char prompt[COLIBRI_LIMIT_PROMPT_BYTES + COLIBRI_LIMIT_EXTRA_BYTES + 1u];
static char out[COLIBRI_LIMIT_PAYLOAD_BYTES + 1024u];

static void send_bytes(size_t size) {
    if (size == 0u || fwrite(out, 1u, size, stdout) != size) {
        exit(1);
    }
}

static void send_error(uint64_t id, const char *words) {
    const colibri_error error = {id, colibri_text(words)};
    send_bytes(colibri_write_error(out, sizeof out, &error, NULL));
}

/* A variable of the launch, or what holds without it. */
static uint64_t setting(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

/* One request from ACCEPT to DONE. A real engine decodes here, and looks for STOP and CANCEL between two tokens. */
static void answer(const colibri_submit *submit) {
    colibri_line words = {submit->prompt.data, submit->prompt.data + submit->prompt.size};
    const size_t count = colibri_count_words(words);
    colibri_accept accept = {submit->id, count};
    colibri_done done = {submit->id, 0u, 100.0, 0.0, 0.0, true, count, true, 0u};
    colibri_data data;
    if (submit->slot >= setting(COLIBRI_ENV_KV_SLOTS, 1u)) {
        send_error(submit->id, COLIBRI_ERROR_BAD_REQUEST);
        return;
    }
    if (count == 0u) {
        send_error(submit->id, COLIBRI_ERROR_EMPTY_PROMPT);
        return;
    }
    if (count >= setting(COLIBRI_ENV_CTX, 2048u)) {
        send_error(submit->id, COLIBRI_ERROR_CONTEXT_EXCEEDED);
        return;
    }
    send_bytes(colibri_write_accept(out, sizeof out, &accept, NULL));
    memset(&data, 0, sizeof data);
    data.id = submit->id;
    while (done.completion_tokens < submit->max_tokens && colibri_next_word(&words, &data.payload)) {
        if (done.completion_tokens++ != 0u) {
            data.payload.data--; /* the separator before the word */
            data.payload.size++;
        }
        send_bytes(colibri_write_data(out, sizeof out, &data, NULL));
    }
    done.length_limited = count > submit->max_tokens ? 1u : 0u;
    send_bytes(colibri_write_done(out, sizeof out, &done, NULL));
}

int main(void) {
    static char line[COLIBRI_LIMIT_COMMAND_LINE_BYTES + 2u];
    printf("%sSTAT 0 0 0 0\n", COLIBRI_READY);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        const size_t size = strcspn(line, "\n");
        colibri_command command;
        colibri_fault fault;
        bool good;
        if (colibri_is_blank(line, size)) {
            continue;
        }
        good = colibri_read_command(line, size, &command, &fault);
        if (command.payload_bytes > sizeof prompt || fread(prompt, 1u, command.payload_bytes, stdin) != command.payload_bytes) {
            return 1;
        }
        if (!good) {
            send_error(command.id, COLIBRI_ERROR_BAD_REQUEST);
        } else if (!colibri_take_payload(&command, prompt, &fault)) {
            send_error(command.id, COLIBRI_ERROR_BAD_FRAME);
            return 1;
        } else if (command.kind == COLIBRI_COMMAND_SUBMIT) {
            answer(&command.as.submit);
        } else if (command.kind != COLIBRI_COMMAND_IMAGE) {
            send_error(command.id, COLIBRI_ERROR_NOT_FOUND); /* STOP and CANCEL: what they name has ended */
        }
        fflush(stdout);
    }
    return 0;
}
