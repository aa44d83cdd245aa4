// config.json (and the end tokens of generation_config.json) of a checkpoint directory, checked and reduced to what the
// transformer needs. Anything the engine would compute differently from the family's definition refuses the launch.
#ifndef COLIBRI_NATIVE_CONFIG_H
#define COLIBRI_NATIVE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What is fixed by the model type and not written in config.json.
typedef struct family {
    const char *name;
    bool interleaved_rotary; // rotary pairs are (2i, 2i + 1), otherwise (i, i + half)
    double rotary_fraction;  // default share of each head that is rotated
    size_t head_dim;         // default head size; 0: hidden size / heads
    bool query_key_norm;
    bool post_norms;     // RMS norms on the outputs of attention and MLP
    bool fused_gate_up;  // the checkpoint stores one gate_up_proj
    bool always_biased;  // query, key and value always have a bias
    bool output_bias;    // with attention_bias the output projection has one too
    bool mlp_bias;       // reads the switch mlp_bias
} family;

typedef struct model_config {
    const family *family;
    size_t vocabulary;
    size_t hidden;
    size_t intermediate;
    size_t layers;
    size_t heads;
    size_t key_value_heads;
    size_t head_dim;
    size_t rotary_dim; // leading elements of each head that are rotated
    float norm_epsilon;
    bool attention_bias;
    bool output_bias;
    bool mlp_bias;
    bool tied_embeddings;
    size_t max_positions;
    double *frequencies; // radians per position of each rotary pair
    uint32_t *end_tokens;
    size_t end_token_count;
} model_config;

void config_read(model_config *config, const char *directory);
void config_free(model_config *config);
bool config_is_end(const model_config *config, uint32_t token);

#endif
