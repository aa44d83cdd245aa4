#include "commands.h"

char *command_reader_room(command_reader *reader, size_t size) {
    const size_t rest = reader->held.size - reader->start;
    if (reader->start != 0) {
        memmove(reader->held.data, reader->held.data + reader->start, rest);
        reader->held.size = rest;
        reader->start = 0;
    }
    return buffer_reserve(&reader->held, size);
}

void command_reader_fed(command_reader *reader, size_t size) { reader->held.size += size; }

static command_event broken(command_reader *reader) {
    reader->broken = true;
    return COMMAND_BROKEN;
}

/* Drops what has come of a refused payload. */
static command_event drop_payload(command_reader *reader, colibri_command *command) {
    const size_t rest = reader->held.size - reader->start;
    command->id = reader->refused;
    if (rest < reader->skip) {
        reader->start += rest;
        reader->skip -= rest;
        return COMMAND_NONE;
    }
    reader->start += (size_t)reader->skip;
    if (reader->held.data[reader->start - 1u] != '\n') {
        return broken(reader);
    }
    reader->skipping = false;
    return COMMAND_REFUSED;
}

static command_event refuse(command_reader *reader, const colibri_command *command, const char *after) {
    reader->start = (size_t)(after - reader->held.data);
    if (command->payload_bytes == 0) {
        return COMMAND_REFUSED;
    }
    reader->skipping = true;
    reader->skip = command->payload_bytes;
    reader->refused = command->id;
    return COMMAND_NONE;
}

/* The command whose header line ends at `end`. */
static command_event read_command(command_reader *reader, const char *line, const char *end, colibri_command *command) {
    colibri_fault fault = {"", COLIBRI_RULE_NONE, {"", 0}};
    const char *const after = end + 1;
    const size_t rest = reader->held.size - (size_t)(after - reader->held.data);
    if (!colibri_read_command(line, (size_t)(end - line), command, &fault)) {
        return fault.rule == COLIBRI_RULE_LINE_LIMIT ? broken(reader) : refuse(reader, command, after);
    }
    if (rest < command->payload_bytes) {
        return COMMAND_NONE;
    }
    reader->start = (size_t)(after - reader->held.data) + (size_t)command->payload_bytes;
    return colibri_take_payload(command, after, &fault) ? COMMAND_READY : broken(reader);
}

command_event command_reader_next(command_reader *reader, colibri_command *command) {
    memset(command, 0, sizeof *command);
    while (!reader->broken && reader->start < reader->held.size) {
        const char *const line = reader->held.data + reader->start;
        const size_t rest = reader->held.size - reader->start;
        const size_t before = reader->start;
        const char *end;
        command_event event;
        if (reader->skipping) {
            return drop_payload(reader, command);
        }
        end = memchr(line, '\n', least(rest, COLIBRI_LIMIT_COMMAND_LINE_BYTES + 1u));
        if (end == NULL) {
            return rest > COLIBRI_LIMIT_COMMAND_LINE_BYTES ? broken(reader) : COMMAND_NONE;
        }
        if (colibri_is_blank(line, (size_t)(end - line))) {
            reader->start += (size_t)(end - line) + 1u;
            continue;
        }
        event = read_command(reader, line, end, command);
        if (event != COMMAND_NONE || reader->start == before) {
            return event;
        }
    }
    return COMMAND_NONE;
}

bool command_reader_inside(const command_reader *reader) {
    const size_t rest = reader->held.size - reader->start;
    return reader->skipping ||
           (!reader->broken && rest != 0 && !colibri_is_blank(reader->held.data + reader->start, rest));
}

void command_reader_free(command_reader *reader) {
    buffer_free(&reader->held);
    memset(reader, 0, sizeof *reader);
}
