/* Fuzz target for the C parsers (libFuzzer, AddressSanitizer, UndefinedBehaviorSanitizer). Run by `invoke fuzz`.
 *
 * First byte: which direction. The rest is a stream: read message after message, skip what is refused, write again what
 * was read and read that again; the kind must be the same and the bytes written must read back. */
#define COLIBRI_GATEWAY_SIDE
#include "colibri_wire.h"

static char written[1u << 20u];

static void require(int holds) {
    if (!holds) {
        abort();
    }
}

/* 0 when a value cannot be written (an infinite number read from too many digits, say) or the room is too small. */
#define AGAIN(name, value) size = colibri_write_##name(written, sizeof written, &(value), NULL)

static size_t rewrite_frame(const colibri_frame *frame) {
    size_t size = 0u;
    switch (frame->kind) {
    case COLIBRI_FRAME_ACCEPT: AGAIN(accept, frame->as.accept); break;
    case COLIBRI_FRAME_DATA: AGAIN(data, frame->as.data); break;
    case COLIBRI_FRAME_ECHO: AGAIN(echo, frame->as.echo); break;
    case COLIBRI_FRAME_TOOL: AGAIN(tool, frame->as.tool); break;
    case COLIBRI_FRAME_DONE: AGAIN(done, frame->as.done); break;
    case COLIBRI_FRAME_ERROR: AGAIN(error, frame->as.error); break;
    case COLIBRI_FRAME_PROF: AGAIN(prof, frame->as.prof); break;
    case COLIBRI_FRAME_HWINFO: AGAIN(hwinfo, frame->as.hwinfo); break;
    case COLIBRI_FRAME_EMAP: AGAIN(emap, frame->as.emap); break;
    default: break;
    }
    return size;
}

static void frames(const char *data, size_t size) {
    static colibri_frame frame;
    static colibri_frame again;
    while (size != 0u) {
        colibri_fault fault = {"", COLIBRI_RULE_NONE, {"", 0u}};
        const char *const end = (const char *)memchr(data, '\n', size);
        size_t header;
        size_t length;
        if (end == NULL) {
            return;
        }
        header = (size_t)(end - data);
        if (!colibri_is_blank(data, header)) {
            if (!colibri_read_frame(data, header, &frame, &fault)) {
                require(fault.rule != COLIBRI_RULE_NONE);
                return;
            }
            if (frame.payload_bytes > size - header - 1u) {
                return;
            }
            if (!colibri_take_frame_payload(&frame, end + 1, &fault)) {
                return;
            }
            length = rewrite_frame(&frame);
            if (length != 0u) {
                const char *const line = (const char *)memchr(written, '\n', length);
                require(line != NULL);
                require(colibri_read_frame(written, (size_t)(line - written), &again, &fault));
                require(again.kind == frame.kind && again.payload_bytes == frame.payload_bytes);
                require((size_t)(line - written) + 1u + again.payload_bytes == length);
            }
            header += frame.payload_bytes;
        }
        data += header + 1u;
        size -= header + 1u;
    }
}

static void commands(const char *data, size_t size) {
    static colibri_command command;
    while (size != 0u) {
        colibri_fault fault = {"", COLIBRI_RULE_NONE, {"", 0u}};
        const char *const end = (const char *)memchr(data, '\n', size);
        uint64_t skip;
        bool good;
        if (end == NULL) {
            return;
        }
        skip = (uint64_t)(end - data) + 1u;
        if (!colibri_is_blank(data, (size_t)(end - data))) {
            good = colibri_read_command(data, (size_t)(end - data), &command, &fault);
            require(good == (fault.rule == COLIBRI_RULE_NONE));
            if (command.payload_bytes > size - skip || (good && !colibri_take_payload(&command, end + 1, &fault))) {
                return;
            }
            skip += command.payload_bytes;
        }
        data += skip;
        size -= (size_t)skip;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size != 0u) {
        /* a copy, so that a read past its end is seen */
        char *const copy = (char *)malloc(size);
        require(copy != NULL);
        memcpy(copy, data, size);
        (data[0] % 2u == 0u ? frames : commands)(copy + 1, size - 1u);
        free(copy);
    }
    return 0;
}
