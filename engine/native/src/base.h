// What every part needs: memory that is there or ends the process, growing byte buffers, files, and the two ways to
// speak to a person (a log line, or the one line that refuses to start).
#ifndef COLIBRI_NATIVE_BASE_H
#define COLIBRI_NATIVE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROGRAM_NAME "coli-engine-native"

// Bytes that grow. A buffer of zeros is empty and valid.
typedef struct buffer {
    char *data;
    size_t size;
    size_t capacity;
} buffer;

// A zeroed array; ends the process with one line when there is no memory.
void *allocate(size_t count, size_t size);

// The array with room for `count` elements; what is new is not zeroed.
void *reallocate(void *old, size_t count, size_t size);

// Room for `more` bytes behind what the buffer holds.
char *buffer_reserve(buffer *bytes, size_t more);
void buffer_append(buffer *bytes, const void *data, size_t size);
void buffer_free(buffer *bytes);

// One line "coli-engine-native: ..." on stderr and exit code 2: what is wrong before READY.
_Noreturn void refuse_launch(const char *format, ...) __attribute__((format(printf, 1, 2)));

// One line of the engine's log.
void log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

// "directory/name", to be freed.
char *join_path(const char *directory, const char *name);

// A descriptor of a regular file, to be closed; refuses the launch when it is missing, something else or cannot be read.
int open_file(const char *path);

// Everything in a file, with the same refusals. Free the buffer.
buffer read_file(const char *path);

bool file_exists(const char *path);

// Seconds of a clock that only goes forward.
double seconds_now(void);

// Whether bytes (not terminated) are those of a C string.
bool text_is(const char *data, size_t size, const char *text);

static inline size_t least(size_t left, size_t right) { return left < right ? left : right; }
static inline size_t most(size_t left, size_t right) { return left > right ? left : right; }

// `value` rounded up to a multiple of `unit`.
static inline size_t round_up(size_t value, size_t unit) { return (value + unit - 1u) / unit * unit; }

#endif
