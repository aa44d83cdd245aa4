#include "safetensors.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base.h"
#include "half.h"

#define LENGTH_BYTES 8u
#define HEADER_DEPTH 8u

static _Noreturn void refuse(const safetensors *file, const char *why) {
    refuse_launch("%s is not a valid safetensors file: %s", file->path, why);
}

static void map_file(safetensors *file) {
    struct stat facts;
    const int descriptor = open_file(file->path);
    if (fstat(descriptor, &facts) != 0) {
        refuse_launch("%s cannot be read: %s", file->path, strerror(errno));
    }
    file->map_size = (size_t)facts.st_size;
    if (file->map_size < LENGTH_BYTES) {
        refuse(file, "too short for a header");
    }
    file->map = mmap(NULL, file->map_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (file->map == MAP_FAILED) {
        refuse_launch("%s cannot be mapped: %s", file->path, strerror(errno));
    }
    close(descriptor);
}

static uint64_t header_size(const safetensors *file) {
    uint64_t size = 0;
    for (size_t byte = 0; byte < LENGTH_BYTES; byte++) {
        size |= (uint64_t)file->map[byte] << (8u * byte);
    }
    if (size > file->map_size - LENGTH_BYTES) {
        refuse(file, "the header ends behind the file");
    }
    return size;
}

/* Bytes of one element; 0 for a type this reader does not know. */
static uint64_t element_size(const tensor *values) {
    static const struct {
        const char *name;
        uint64_t size;
    } types[] = {{"F64", 8}, {"I64", 8}, {"U64", 8}, {"F32", 4}, {"I32", 4}, {"U32", 4},     {"F16", 2},
                 {"BF16", 2}, {"I16", 2}, {"U16", 2}, {"I8", 1},  {"U8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1},
                 {"BOOL", 1}};
    for (size_t index = 0; index < sizeof types / sizeof types[0]; index++) {
        if (text_is(values->type_name, values->type_name_size, types[index].name)) {
            return types[index].size;
        }
    }
    return 0;
}

static tensor_type type_of(const tensor *values) {
    if (text_is(values->type_name, values->type_name_size, "F32")) {
        return TENSOR_F32;
    }
    if (text_is(values->type_name, values->type_name_size, "F16")) {
        return TENSOR_F16;
    }
    return text_is(values->type_name, values->type_name_size, "BF16") ? TENSOR_BF16 : TENSOR_OTHER;
}

static void read_shape(const safetensors *file, const json_value *entry, tensor *values) {
    const json_value *shape = json_member(entry, "shape");
    uint64_t elements = 1;
    uint64_t width;
    if (shape == NULL || shape->kind != JSON_ARRAY || shape->count > TENSOR_RANK) {
        refuse(file, "a tensor without a shape");
    }
    for (const json_value *item = shape->first; item != NULL; item = item->next) {
        uint64_t *size = &values->shape[values->rank++];
        if (!json_count(item, INT64_MAX, size) || (*size != 0 && elements > (uint64_t)INT64_MAX / *size)) {
            refuse(file, "a shape out of range");
        }
        elements *= *size;
    }
    width = element_size(values);
    if (width != 0 && (elements > (uint64_t)INT64_MAX / width || elements * width != values->size)) {
        refuse(file, "a byte range that does not fit its shape");
    }
}

static void read_entry(const safetensors *file, const json_value *entry, const unsigned char *data, uint64_t data_size,
                       tensor *values) {
    const json_value *type = json_member(entry, "dtype");
    const json_value *offsets = json_member(entry, "data_offsets");
    uint64_t first;
    uint64_t end;
    if (type == NULL || type->kind != JSON_STRING) {
        refuse(file, "a tensor without a dtype");
    }
    if (offsets == NULL || offsets->kind != JSON_ARRAY || offsets->count != 2 ||
        !json_count(offsets->first, INT64_MAX, &first) || !json_count(offsets->first->next, INT64_MAX, &end) ||
        first > end || end > data_size) {
        refuse(file, "a byte range outside of the file");
    }
    values->name = entry->name;
    values->name_size = entry->name_size;
    values->type_name = type->text;
    values->type_name_size = type->size;
    values->type = type_of(values);
    values->data = data + first;
    values->size = end - first;
    read_shape(file, entry, values);
}

static int by_place(const void *left, const void *right) {
    const tensor *const one = left;
    const tensor *const other = right;
    if (one->data != other->data) {
        return one->data < other->data ? -1 : 1;
    }
    return one->size < other->size ? -1 : one->size > other->size;
}

void safetensors_open(safetensors *file, const char *path) {
    const unsigned char *data;
    uint64_t size;
    memset(file, 0, sizeof *file);
    file->path = allocate(strlen(path) + 1u, 1);
    memcpy(file->path, path, strlen(path));
    map_file(file);
    size = header_size(file);
    if (!json_read(&file->header, (const char *)file->map + LENGTH_BYTES, (size_t)size, HEADER_DEPTH) ||
        file->header.root->kind != JSON_OBJECT) {
        refuse(file, file->header.fault == NULL ? "the header is no JSON object" : file->header.fault);
    }
    data = file->map + LENGTH_BYTES + size;
    file->tensors = allocate(file->header.root->count, sizeof(tensor));
    for (const json_value *entry = file->header.root->first; entry != NULL; entry = entry->next) {
        if (!text_is(entry->name, entry->name_size, "__metadata__")) {
            read_entry(file, entry, data, file->map_size - LENGTH_BYTES - size, &file->tensors[file->count++]);
        }
    }
    qsort(file->tensors, file->count, sizeof(tensor), by_place);
    for (size_t index = 0; index < file->count; index++) {
        if (file->tensors[index].data != data) {
            refuse(file, "byte ranges with a gap or an overlap");
        }
        data += file->tensors[index].size;
    }
    if (data != file->map + file->map_size) {
        refuse(file, "data behind the last tensor");
    }
}

void safetensors_close(safetensors *file) {
    munmap(file->map, file->map_size);
    json_free(&file->header);
    free(file->tensors);
    free(file->path);
    memset(file, 0, sizeof *file);
}

const tensor *safetensors_find(const safetensors *file, const char *name) {
    for (size_t index = 0; index < file->count; index++) {
        if (text_is(file->tensors[index].name, file->tensors[index].name_size, name)) {
            return &file->tensors[index];
        }
    }
    return NULL;
}

void tensor_floats(const tensor *values, uint64_t first, size_t count, float *to) {
    const unsigned char *from = values->data + first * (values->type == TENSOR_F32 ? 4u : 2u);
    if (values->type == TENSOR_F32) {
        memcpy(to, from, count * sizeof(float));
        return;
    }
    for (size_t index = 0; index < count; index++) {
        const uint16_t bits = (uint16_t)(from[2 * index] | (unsigned)from[2 * index + 1u] << 8u);
        to[index] = values->type == TENSOR_F16 ? half_to_float(bits) : brain_to_float(bits);
    }
}
