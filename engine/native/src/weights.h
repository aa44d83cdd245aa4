// The weights of a checkpoint, arranged for the forward pass.
#ifndef COLIBRI_NATIVE_WEIGHTS_H
#define COLIBRI_NATIVE_WEIGHTS_H

#include "checkpoint.h"
#include "config.h"
#include "matrix.h"

typedef struct layer_weights {
    float *before_attention; // scale of the RMS norm, as all of these; NULL where the family has no such norm
    float *before_mlp;
    float *after_attention;
    float *after_mlp;
    float *query_norm;
    float *key_norm;
    matrix query_key_value; // queries, keys and values side by side
    matrix output;
    matrix gate; // as wide as up, group by group
    matrix up;
    matrix down;
} layer_weights;

typedef struct model_weights {
    arena memory; // of all matrices
    size_t layer_count;
    layer_weights *layers;
    float *final_norm;
    matrix embedding;
    matrix head; // empty with tied embeddings
} model_weights;

// Reads every tensor; refuses the launch when one is missing or has another shape than the configuration implies.
void weights_load(model_weights *weights, const checkpoint *source, const model_config *config);
void weights_free(model_weights *weights);

// The matrix from the last norm to the logits.
const matrix *weights_head(const model_weights *weights);

#endif
