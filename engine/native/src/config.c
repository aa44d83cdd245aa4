#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base.h"
#include "json.h"

#define CONFIG_FILE "config.json"
#define GENERATION_FILE "generation_config.json"
#define CONFIG_DEPTH 64u
#define LARGEST_COUNT 0x7fffffffu
#define PI 3.14159265358979323846

static const family families[] = {
    {"glm", true, 0.5, 128, false, false, true, false, false, false},
    {"glm4", true, 0.5, 128, false, true, true, false, false, false},
    {"llama", false, 1.0, 0, false, false, false, false, true, true},
    {"qwen2", false, 1.0, 0, false, false, false, true, false, false},
    {"qwen3", false, 1.0, 128, true, false, false, false, true, false},
};

// A JSON file and, for rotary settings, the object inside it that is looked at first.
typedef struct keys {
    const char *path;
    const json_value *values;
    const json_value *nested;
} keys;

static const json_value *lookup(const keys *from, const char *key) {
    const json_value *found = json_member(from->nested, key);
    if (found == NULL) {
        found = json_member(from->values, key);
    }
    return found != NULL && found->kind == JSON_NULL ? NULL : found;
}

static _Noreturn void refuse_value(const keys *from, const char *key, const char *rule, const json_value *value) {
    char text[128];
    refuse_launch("%s: %s must be %s, not %s", from->path, key, rule, json_describe(value, text, sizeof text));
}

/* A positive integer; `fallback` 0: it must be there. */
static size_t count(const keys *from, const char *key, size_t fallback) {
    const json_value *value = lookup(from, key);
    uint64_t number;
    if (value == NULL && fallback != 0) {
        return fallback;
    }
    if (value == NULL) {
        refuse_launch("%s: %s is missing", from->path, key);
    }
    if (!json_count(value, LARGEST_COUNT, &number) || number == 0) {
        refuse_value(from, key, "a positive integer", value);
    }
    return (size_t)number;
}

/* A positive number; `fallback` 0: it must be there. */
static double real(const keys *from, const char *key, double fallback) {
    const json_value *value = lookup(from, key);
    if (value == NULL && fallback != 0.0) {
        return fallback;
    }
    if (value == NULL) {
        refuse_launch("%s: %s is missing", from->path, key);
    }
    if (value->kind != JSON_NUMBER || !isfinite(value->number) || value->number <= 0.0) {
        refuse_value(from, key, "a positive number", value);
    }
    return value->number;
}

static bool on(const keys *from, const char *key) {
    const json_value *value = lookup(from, key);
    if (value != NULL && value->kind != JSON_BOOLEAN) {
        refuse_value(from, key, "true or false", value);
    }
    return value != NULL && value->truth;
}

static keys open_keys(json_document *document, char *path) {
    buffer text = read_file(path);
    if (!json_read(document, text.data, text.size, CONFIG_DEPTH)) {
        refuse_launch("%s is not valid JSON: %s at byte %zu", path, document->fault, document->fault_at);
    }
    if (document->root->kind != JSON_OBJECT) {
        refuse_launch("%s must hold a JSON object", path);
    }
    buffer_free(&text);
    return (keys){path, document->root, NULL};
}

static const family *find_family(const keys *from) {
    const json_value *type = json_member(from->values, "model_type");
    char text[128];
    char names[128] = "";
    size_t used = 0;
    for (size_t index = 0; index < sizeof families / sizeof families[0]; index++) {
        if (json_is(type, families[index].name)) {
            return &families[index];
        }
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", index == 0 ? "" : ", ", families[index].name);
    }
    refuse_launch("%s: model_type %s is not supported (supported: %s)", from->path,
                  json_describe(type, text, sizeof text), names);
}

/* Long waves slowed by `factor`, short ones kept, a linear blend between: the published llama 3.1 rule. */
static void slow_long_waves(const keys *rope, double *frequencies, size_t pairs) {
    const double factor = real(rope, "factor", 0.0);
    const double low = real(rope, "low_freq_factor", 0.0);
    const double high = real(rope, "high_freq_factor", 0.0);
    const double original = (double)count(rope, "original_max_position_embeddings", 0);
    if (high <= low) {
        refuse_launch("%s: high_freq_factor (%g) must be above low_freq_factor (%g)", rope->path, high, low);
    }
    for (size_t pair = 0; pair < pairs; pair++) {
        const double turns = original * frequencies[pair] / (2.0 * PI);
        const double blend = fmin(fmax((turns - low) / (high - low), 0.0), 1.0);
        frequencies[pair] = blend * frequencies[pair] + (1.0 - blend) * frequencies[pair] / factor;
    }
}

static void read_rotary(model_config *config, const keys *from) {
    keys rope = *from;
    const json_value *kind;
    double *frequencies;
    double theta;
    double rotated;
    rope.nested = lookup(from, "rope_parameters");
    if (rope.nested == NULL || (rope.nested->kind == JSON_OBJECT && rope.nested->count == 0)) {
        rope.nested = lookup(from, "rope_scaling");
    }
    if (rope.nested != NULL && rope.nested->kind != JSON_OBJECT) {
        refuse_launch("%s: rope_parameters must be an object", from->path);
    }
    rotated = (double)config->head_dim * real(&rope, "partial_rotary_factor", config->family->rotary_fraction);
    config->rotary_dim = rotated <= (double)config->head_dim ? (size_t)rotated : config->head_dim + 1u;
    if (config->rotary_dim < 2 || config->rotary_dim % 2 != 0 || config->rotary_dim > config->head_dim) {
        refuse_launch("%s: partial_rotary_factor gives %.0f rotated elements of %zu; must be even and within", from->path,
                      rotated, config->head_dim);
    }
    theta = real(&rope, "rope_theta", 10000.0);
    frequencies = allocate(config->rotary_dim / 2u, sizeof *frequencies);
    for (size_t pair = 0; pair < config->rotary_dim / 2u; pair++) {
        frequencies[pair] = 1.0 / pow(theta, 2.0 * (double)pair / (double)config->rotary_dim);
    }
    kind = json_member(rope.nested, "rope_type");
    kind = kind == NULL ? json_member(rope.nested, "type") : kind;
    if (json_is(kind, "linear")) {
        const double factor = real(&rope, "factor", 0.0);
        for (size_t pair = 0; pair < config->rotary_dim / 2u; pair++) {
            frequencies[pair] /= factor;
        }
    } else if (json_is(kind, "llama3")) {
        slow_long_waves(&rope, frequencies, config->rotary_dim / 2u);
    } else if (kind != NULL && !json_is(kind, "default")) {
        char text[128];
        refuse_launch("%s: rope_type %s is not supported (supported: default, linear, llama3)", from->path,
                      json_describe(kind, text, sizeof text));
    }
    config->frequencies = frequencies;
}

static void read_end_tokens(model_config *config, const keys *from) {
    const json_value *value = lookup(from, "eos_token_id");
    const json_value *item = value != NULL && value->kind == JSON_ARRAY ? value->first : value;
    if (value == NULL) {
        return;
    }
    config->end_tokens = allocate(value->kind == JSON_ARRAY ? value->count : 1u, sizeof(uint32_t));
    for (; item != NULL; item = value->kind == JSON_ARRAY ? item->next : NULL) {
        uint64_t token;
        if (!json_count(item, LARGEST_COUNT, &token)) {
            refuse_value(from, "eos_token_id", "a token id or a list of them", value);
        }
        config->end_tokens[config->end_token_count++] = (uint32_t)token;
    }
}

static void read_sizes(model_config *config, const keys *from) {
    config->hidden = count(from, "hidden_size", 0);
    config->heads = count(from, "num_attention_heads", 0);
    config->key_value_heads = count(from, "num_key_value_heads", config->heads);
    if (config->heads % config->key_value_heads != 0) {
        refuse_launch("%s: num_attention_heads (%zu) must be a multiple of num_key_value_heads (%zu)", from->path,
                      config->heads, config->key_value_heads);
    }
    if (config->family->head_dim == 0 && lookup(from, "head_dim") == NULL && config->hidden % config->heads != 0) {
        refuse_launch("%s: hidden_size (%zu) must be a multiple of num_attention_heads (%zu)", from->path, config->hidden,
                      config->heads);
    }
    config->head_dim = config->family->head_dim != 0 ? config->family->head_dim : most(config->hidden / config->heads, 1);
    config->head_dim = count(from, "head_dim", config->head_dim);
    config->vocabulary = count(from, "vocab_size", 0);
    config->intermediate = count(from, "intermediate_size", 0);
    config->layers = count(from, "num_hidden_layers", 0);
    config->max_positions = count(from, "max_position_embeddings", 0);
    config->norm_epsilon = (float)real(from, "rms_norm_eps", 0.0);
}

void config_read(model_config *config, const char *directory) {
    char *path = join_path(directory, CONFIG_FILE);
    char *generation = join_path(directory, GENERATION_FILE);
    struct stat facts;
    json_document document;
    keys from;
    const json_value *activation;
    memset(config, 0, sizeof *config);
    if (stat(directory, &facts) != 0 || !S_ISDIR(facts.st_mode)) {
        refuse_launch("model directory %s does not exist", directory);
    }
    from = open_keys(&document, path);
    config->family = find_family(&from);
    activation = json_member(from.values, "hidden_act");
    if (activation != NULL && !json_is(activation, "silu") && !json_is(activation, "swish")) {
        refuse_value(&from, "hidden_act", "'silu'", activation);
    }
    if (on(&from, "use_sliding_window")) {
        refuse_launch("%s: use_sliding_window is not supported", path);
    }
    read_sizes(config, &from);
    config->attention_bias = config->family->always_biased || on(&from, "attention_bias");
    config->output_bias = config->attention_bias && config->family->output_bias;
    config->mlp_bias = config->family->mlp_bias && on(&from, "mlp_bias");
    config->tied_embeddings = on(&from, "tie_word_embeddings");
    read_rotary(config, &from);
    if (file_exists(generation)) {
        json_document ends;
        const keys first = open_keys(&ends, generation);
        read_end_tokens(config, &first);
        json_free(&ends);
    }
    if (config->end_tokens == NULL) {
        read_end_tokens(config, &from);
    }
    json_free(&document);
    free(path);
    free(generation);
}

void config_free(model_config *config) {
    free(config->frequencies);
    free(config->end_tokens);
    memset(config, 0, sizeof *config);
}

bool config_is_end(const model_config *config, uint32_t token) {
    for (size_t index = 0; index < config->end_token_count; index++) {
        if (config->end_tokens[index] == token) {
            return true;
        }
    }
    return false;
}
