// One safetensors file, mapped: names, types, shapes and bytes of its tensors.
//
// Guarantees: before a tensor is handed out, the header length, the header's JSON and every byte range have been checked
// against the file: ranges lie inside it, fit shape and type, and cover the data without gap or overlap. Whatever is
// wrong refuses the launch with the file's name.
#ifndef COLIBRI_NATIVE_SAFETENSORS_H
#define COLIBRI_NATIVE_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "json.h"

typedef enum tensor_type { TENSOR_F32, TENSOR_F16, TENSOR_BF16, TENSOR_OTHER } tensor_type;

#define TENSOR_RANK 8u

typedef struct tensor {
    const char *name; // not terminated
    size_t name_size;
    const char *type_name; // not terminated
    size_t type_name_size;
    tensor_type type;
    size_t rank;
    uint64_t shape[TENSOR_RANK];
    const unsigned char *data; // little endian, perhaps not aligned
    uint64_t size;             // bytes
} tensor;

typedef struct safetensors {
    char *path;
    unsigned char *map;
    size_t map_size;
    json_document header;
    tensor *tensors;
    size_t count;
} safetensors;

void safetensors_open(safetensors *file, const char *path);
void safetensors_close(safetensors *file);

// The tensor of that name, or NULL.
const tensor *safetensors_find(const safetensors *file, const char *name);

// Elements first .. first + count - 1 of an F32, F16 or BF16 tensor as floats.
void tensor_floats(const tensor *values, uint64_t first, size_t count, float *to);

#endif
