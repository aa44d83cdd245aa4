// Cuts the gateway's output into commands: bytes in, commands out, no input or output of its own.
//
// Guarantees: a refused command's payload is dropped before the refusal is said, so the stream stays in step and no byte of
// a payload is read as a command; memory is bounded by one command.
#ifndef COLIBRI_NATIVE_COMMANDS_H
#define COLIBRI_NATIVE_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base.h"
#include "colibri_wire.h"

// A reader of zeros is at the beginning of a stream.
typedef struct command_reader {
    buffer held;
    size_t start;     // of what is not consumed yet
    bool skipping;    // the payload of a refused command is being dropped
    uint64_t skip;    // bytes of it still to come, its line feed included
    uint64_t refused; // id to answer with
    bool broken;
} command_reader;

typedef enum command_event {
    COMMAND_NONE,    // nothing complete: feed more
    COMMAND_READY,   // a command; its payloads are valid until the next call
    COMMAND_REFUSED, // answer ERROR id BAD_REQUEST and go on
    COMMAND_BROKEN   // answer ERROR id BAD_FRAME and end
} command_event;

// Room for `size` bytes to read into, and how many were read.
char *command_reader_room(command_reader *reader, size_t size);
void command_reader_fed(command_reader *reader, size_t size);

// The next event; `command->id` is the one to answer with.
command_event command_reader_next(command_reader *reader, colibri_command *command);

// Whether the stream would end inside a command if it ended now.
bool command_reader_inside(const command_reader *reader);

void command_reader_free(command_reader *reader);

#endif
