#include "checkpoint.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"

#define SINGLE_FILE "model.safetensors"
#define INDEX_FILE "model.safetensors.index.json"
#define INDEX_DEPTH 16u

static safetensors *shard_of(checkpoint *weights, const json_value *file) {
    char *name = allocate(file->size + 1u, 1);
    char *path;
    safetensors *found = NULL;
    memcpy(name, file->text, file->size);
    path = join_path(weights->directory, name);
    free(name);
    for (size_t index = 0; index < weights->count && found == NULL; index++) {
        if (strcmp(weights->shards[index].path, path) == 0) {
            found = &weights->shards[index];
        }
    }
    if (found == NULL) {
        found = &weights->shards[weights->count++];
        safetensors_open(found, path);
    }
    free(path);
    return found;
}

static void check_file_name(const char *path, const json_value *file) {
    if (file->kind != JSON_STRING) {
        refuse_launch("%s: weight_map must map tensor names to file names", path);
    }
    if (file->size == 0 || memchr(file->text, '/', file->size) != NULL || memchr(file->text, '\0', file->size) != NULL ||
        text_is(file->text, file->size, ".") || text_is(file->text, file->size, "..")) {
        refuse_launch("%s: weight_map must name files of the same directory", path);
    }
}

static void open_shards(checkpoint *weights, const char *path) {
    buffer text = read_file(path);
    json_document index;
    const json_value *map;
    if (!json_read(&index, text.data, text.size, INDEX_DEPTH)) {
        refuse_launch("%s is not valid JSON: %s at byte %zu", path, index.fault, index.fault_at);
    }
    map = json_member(index.root, "weight_map");
    if (map == NULL || map->kind != JSON_OBJECT) {
        refuse_launch("%s: weight_map must map tensor names to file names", path);
    }
    for (const json_value *item = map->first; item != NULL; item = item->next) {
        check_file_name(path, item);
    }
    weights->shards = allocate(map->count, sizeof(safetensors));
    for (const json_value *item = map->first; item != NULL; item = item->next) {
        const safetensors *shard = shard_of(weights, item);
        char *name = allocate(item->name_size + 1u, 1);
        memcpy(name, item->name, item->name_size);
        if (safetensors_find(shard, name) == NULL) {
            refuse_launch("%s lacks tensor %s which %s promises", shard->path, name, INDEX_FILE);
        }
        free(name);
    }
    json_free(&index);
    buffer_free(&text);
}

void checkpoint_open(checkpoint *weights, const char *directory) {
    char *single = join_path(directory, SINGLE_FILE);
    char *index = join_path(directory, INDEX_FILE);
    memset(weights, 0, sizeof *weights);
    weights->directory = directory;
    if (!file_exists(single) && file_exists(index)) {
        open_shards(weights, index);
    } else {
        weights->shards = allocate(1, sizeof(safetensors));
        safetensors_open(&weights->shards[weights->count++], single);
    }
    free(single);
    free(index);
}

void checkpoint_close(checkpoint *weights) {
    for (size_t index = 0; index < weights->count; index++) {
        safetensors_close(&weights->shards[index]);
    }
    free(weights->shards);
    memset(weights, 0, sizeof *weights);
}

static void refuse_shape(const safetensors *shard, const tensor *found, const char *name, size_t rows, size_t columns) {
    char shape[256] = "";
    size_t used = 0;
    for (size_t axis = 0; axis < found->rank; axis++) {
        used += (size_t)snprintf(shape + used, sizeof shape - used, "%s%llu", axis == 0 ? "" : ", ",
                                 (unsigned long long)found->shape[axis]);
    }
    if (rows == 0) {
        refuse_launch("%s: tensor %s has shape [%s], expected [%zu]", shard->path, name, shape, columns);
    }
    refuse_launch("%s: tensor %s has shape [%s], expected [%zu, %zu]", shard->path, name, shape, rows, columns);
}

static void check_finite(const safetensors *shard, const tensor *found, const char *name, size_t elements) {
    float part[1024];
    for (size_t first = 0; first < elements; first += sizeof part / sizeof part[0]) {
        const size_t count = least(elements - first, sizeof part / sizeof part[0]);
        tensor_floats(found, first, count, part);
        for (size_t index = 0; index < count; index++) {
            if (!isfinite(part[index])) {
                refuse_launch("%s: tensor %s holds values that are not finite", shard->path, name);
            }
        }
    }
}

const tensor *checkpoint_find(const checkpoint *weights, const char *name, size_t rows, size_t columns) {
    const size_t rank = rows == 0 ? 1u : 2u;
    const tensor *found = NULL;
    const safetensors *shard = NULL;
    for (size_t index = 0; index < weights->count && found == NULL; index++) {
        shard = &weights->shards[index];
        found = safetensors_find(shard, name);
    }
    if (found == NULL) {
        refuse_launch("%s: the checkpoint lacks tensor %s", weights->directory, name);
    }
    if (found->type == TENSOR_OTHER) {
        refuse_launch("%s: tensor %s has dtype %.*s (supported: F32, F16, BF16)", shard->path, name,
                      (int)found->type_name_size, found->type_name);
    }
    if (found->rank != rank || (rank == 2 && found->shape[0] != rows) || found->shape[rank - 1u] != columns) {
        refuse_shape(shard, found, name, rows, columns);
    }
    check_finite(shard, found, name, (rows == 0 ? 1u : rows) * columns);
    return found;
}
