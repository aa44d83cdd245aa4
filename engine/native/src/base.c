#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES 4096u

static void write_line(const char *prefix, const char *format, va_list arguments) {
    char line[LINE_BYTES];
    const int length = vsnprintf(line, sizeof line, format, arguments);
    if (length < 0) {
        return;
    }
    for (char *at = line; *at != '\0'; at++) {
        if ((unsigned char)*at < 0x20u || *at == 0x7f) {
            *at = ' ';
        }
    }
    fprintf(stderr, "%s%s\n", prefix, line);
    fflush(stderr);
}

void refuse_launch(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    write_line(PROGRAM_NAME ": ", format, arguments);
    va_end(arguments);
    exit(2);
}

void log_line(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    write_line("", format, arguments);
    va_end(arguments);
}

void *allocate(size_t count, size_t size) {
    void *memory = calloc(count == 0 ? 1 : count, size);
    if (memory == NULL) {
        refuse_launch("not enough memory for %zu elements of %zu bytes", count, size);
    }
    return memory;
}

void *reallocate(void *old, size_t count, size_t size) {
    void *memory = count != 0 && size > SIZE_MAX / count ? NULL : realloc(old, count == 0 ? 1 : count * size);
    if (memory == NULL) {
        refuse_launch("not enough memory for %zu elements of %zu bytes", count, size);
    }
    return memory;
}

char *buffer_reserve(buffer *bytes, size_t more) {
    if (bytes->capacity - bytes->size < more) {
        const size_t wanted = most(bytes->size + more, bytes->capacity * 2u);
        bytes->data = reallocate(bytes->data, wanted, 1);
        bytes->capacity = wanted;
    }
    return bytes->data + bytes->size;
}

void buffer_append(buffer *bytes, const void *data, size_t size) {
    if (size != 0) {
        memcpy(buffer_reserve(bytes, size), data, size);
        bytes->size += size;
    }
}

void buffer_free(buffer *bytes) {
    free(bytes->data);
    *bytes = (buffer){NULL, 0, 0};
}

char *join_path(const char *directory, const char *name) {
    const size_t size = strlen(directory) + strlen(name) + 2u;
    char *path = allocate(size, 1);
    snprintf(path, size, "%s/%s", directory, name);
    return path;
}

bool file_exists(const char *path) {
    struct stat facts;
    return stat(path, &facts) == 0;
}

int open_file(const char *path) {
    struct stat facts;
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a pipe must not hold the launch up
    if (descriptor < 0) {
        if (errno == ENOENT) {
            refuse_launch("%s is missing", path);
        }
        refuse_launch("%s cannot be read: %s", path, strerror(errno));
    }
    if (fstat(descriptor, &facts) != 0 || !S_ISREG(facts.st_mode)) {
        refuse_launch("%s is not a regular file", path);
    }
    return descriptor;
}

buffer read_file(const char *path) {
    buffer bytes = {NULL, 0, 0};
    FILE *file = fdopen(open_file(path), "rb");
    if (file == NULL) {
        refuse_launch("%s cannot be read: %s", path, strerror(errno));
    }
    for (;;) {
        const size_t room = 1u << 16u;
        const size_t got = fread(buffer_reserve(&bytes, room), 1, room, file);
        bytes.size += got;
        if (got < room) {
            break;
        }
    }
    if (ferror(file)) {
        refuse_launch("%s cannot be read: %s", path, strerror(errno));
    }
    fclose(file);
    return bytes;
}

double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

bool text_is(const char *data, size_t size, const char *text) {
    return size == strlen(text) && memcmp(data, text, size) == 0;
}
