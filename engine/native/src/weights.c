#include "weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"

#define STEM_BYTES 64u
#define NAME_BYTES 128u

// The checkpoint and the layer whose tensors are being read.
typedef struct source {
    const checkpoint *tensors;
    const model_config *config;
    arena *memory;
    size_t layer;
} source;

static const tensor *find(const source *from, const char *name, size_t rows, size_t columns) {
    char full[NAME_BYTES];
    snprintf(full, sizeof full, "model.layers.%zu.%s", from->layer, name);
    return checkpoint_find(from->tensors, full, rows, columns);
}

static float *floats_of(const tensor *values, size_t count) {
    float *to = allocate(round_up(count, LANES), sizeof(float));
    tensor_floats(values, 0, count, to);
    return to;
}

static float *scale(const source *from, const char *name, size_t size) {
    return floats_of(find(from, name, 0, size), size);
}

/* `stem`.weight of shape (width, depth) and, if `biased`, `stem`.bias. */
static matrix_part part(const source *from, const char *stem, size_t width, size_t depth, bool biased) {
    char name[STEM_BYTES];
    matrix_part found = {NULL, NULL, 0, width};
    snprintf(name, sizeof name, "%s.weight", stem);
    found.weights = find(from, name, width, depth);
    if (biased) {
        snprintf(name, sizeof name, "%s.bias", stem);
        found.bias = find(from, name, 0, width);
    }
    return found;
}

static void load_mlp(layer_weights *to, const source *from) {
    const model_config *const config = from->config;
    const size_t hidden = config->hidden;
    const size_t inner = config->intermediate;
    matrix_part gate;
    matrix_part up;
    matrix_part down;
    if (config->family->fused_gate_up) {
        gate = part(from, "mlp.gate_up_proj", 2u * inner, hidden, false);
        gate.width = inner;
        up = gate;
        up.first = inner;
    } else {
        gate = part(from, "mlp.gate_proj", inner, hidden, config->mlp_bias);
        up = part(from, "mlp.up_proj", inner, hidden, config->mlp_bias);
    }
    down = part(from, "mlp.down_proj", hidden, inner, config->mlp_bias);
    matrix_load(&to->gate, from->memory, hidden, &gate, 1);
    matrix_load(&to->up, from->memory, hidden, &up, 1);
    matrix_load(&to->down, from->memory, inner, &down, 1);
}

static void load_layer(layer_weights *to, const source *from) {
    const model_config *const config = from->config;
    const size_t hidden = config->hidden;
    const size_t dim = config->head_dim;
    const size_t query = config->heads * dim;
    const size_t shared = config->key_value_heads * dim;
    matrix_part parts[3];
    to->before_attention = scale(from, "input_layernorm.weight", hidden);
    parts[0] = part(from, "self_attn.q_proj", query, hidden, config->attention_bias);
    parts[1] = part(from, "self_attn.k_proj", shared, hidden, config->attention_bias);
    parts[2] = part(from, "self_attn.v_proj", shared, hidden, config->attention_bias);
    matrix_load(&to->query_key_value, from->memory, hidden, parts, 3);
    if (config->family->query_key_norm) {
        to->query_norm = scale(from, "self_attn.q_norm.weight", dim);
        to->key_norm = scale(from, "self_attn.k_norm.weight", dim);
    }
    parts[0] = part(from, "self_attn.o_proj", hidden, query, config->output_bias);
    matrix_load(&to->output, from->memory, query, parts, 1);
    load_mlp(to, from);
    to->before_mlp = scale(from, "post_attention_layernorm.weight", hidden);
    if (config->family->post_norms) {
        to->after_attention = scale(from, "post_self_attn_layernorm.weight", hidden);
        to->after_mlp = scale(from, "post_mlp_layernorm.weight", hidden);
    }
}

void weights_load(model_weights *weights, const checkpoint *tensors, const model_config *config) {
    source from = {tensors, config, &weights->memory, 0};
    matrix_part embedding = {checkpoint_find(tensors, "model.embed_tokens.weight", config->vocabulary, config->hidden),
                             NULL, 0, config->vocabulary};
    memset(weights, 0, sizeof *weights);
    matrix_load(&weights->embedding, &weights->memory, config->hidden, &embedding, 1);
    weights->layers = allocate(config->layers, sizeof(layer_weights));
    for (from.layer = 0; from.layer < config->layers; from.layer++) {
        load_layer(&weights->layers[from.layer], &from);
        weights->layer_count++;
    }
    weights->final_norm = floats_of(checkpoint_find(tensors, "model.norm.weight", 0, config->hidden), config->hidden);
    if (!config->tied_embeddings) {
        matrix_part head = {checkpoint_find(tensors, "lm_head.weight", config->vocabulary, config->hidden), NULL, 0,
                            config->vocabulary};
        matrix_load(&weights->head, &weights->memory, config->hidden, &head, 1);
    }
}

void weights_free(model_weights *weights) {
    for (size_t index = 0; index < weights->layer_count; index++) {
        layer_weights *const layer = &weights->layers[index];
        float *const scales[] = {layer->before_attention, layer->before_mlp, layer->after_attention,
                                 layer->after_mlp,        layer->query_norm, layer->key_norm};
        for (size_t which = 0; which < sizeof scales / sizeof scales[0]; which++) {
            free(scales[which]);
        }
    }
    free(weights->layers);
    free(weights->final_norm);
    arena_free(&weights->memory);
    memset(weights, 0, sizeof *weights);
}

const matrix *weights_head(const model_weights *weights) {
    return weights->head.weights == NULL ? &weights->embedding : &weights->head;
}
