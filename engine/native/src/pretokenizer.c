#include "pretokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "pattern.h"
#include "unicode.h"
#include "utf8.h"

#define MOST_STAGES 16u

static const char byte_level_pattern[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

typedef enum stage_kind { EACH_DIGIT, DIGIT_RUNS, SPLIT } stage_kind;

typedef struct stage {
    stage_kind kind;
    pattern *delimiter;
    bool keep_matches;
    bool keep_gaps;
} stage;

struct pretokenizer {
    stage stages[MOST_STAGES];
    size_t count;
    bool byte_level;
};

typedef struct loader {
    pretokenizer *to;
    const char *path;
} loader;

static stage *add_stage(const loader *from, stage_kind kind) {
    pretokenizer *const to = from->to;
    if (to->count == MOST_STAGES || to->byte_level) {
        refuse_launch("%s: a pre-tokenizer behind ByteLevel, or too many of them, is not supported", from->path);
    }
    to->stages[to->count].kind = kind;
    return &to->stages[to->count++];
}

static void add_split(const loader *from, const char *source, size_t size, bool keep_matches, bool keep_gaps) {
    const char *fault = NULL;
    stage *const added = add_stage(from, SPLIT);
    added->delimiter = pattern_compile(source, size, &fault);
    added->keep_matches = keep_matches;
    added->keep_gaps = keep_gaps;
    if (added->delimiter == NULL) {
        refuse_launch("%s: the pre-tokenizer's pattern has %s, which is not supported", from->path, fault);
    }
}

/* A string as the pattern that matches it. */
static buffer quoted(const char *text, size_t size) {
    buffer source = {NULL, 0, 0};
    for (size_t at = 0; at < size; at++) {
        if (strchr("\\.^$|?*+()[]{}", text[at]) != NULL && text[at] != '\0') {
            buffer_append(&source, "\\", 1);
        }
        buffer_append(&source, &text[at], 1);
    }
    return source;
}

static void load_split(const loader *from, const json_value *description) {
    const json_value *pattern = json_member(description, "pattern");
    const json_value *expression = json_member(pattern, "Regex");
    const json_value *string = json_member(pattern, "String");
    const json_value *invert = json_member(description, "invert");
    const json_value *behaviour = json_member(description, "behavior");
    const bool inverted = invert != NULL && invert->kind == JSON_BOOLEAN && invert->truth;
    const bool removed = json_is(behaviour, "Removed");
    buffer source = {NULL, 0, 0};
    if (!removed && !json_is(behaviour, "Isolated")) {
        char text[128];
        refuse_launch("%s: the Split behavior %s is not supported (supported: Isolated, Removed)", from->path,
                      json_describe(behaviour, text, sizeof text));
    }
    if (expression != NULL && expression->kind == JSON_STRING) {
        buffer_append(&source, expression->text, expression->size);
    } else if (string != NULL && string->kind == JSON_STRING) {
        source = quoted(string->text, string->size);
    } else {
        refuse_launch("%s is not a valid tokenizer: a Split without a pattern", from->path);
    }
    add_split(from, source.data == NULL ? "" : source.data, source.size, !removed || inverted, !removed || !inverted);
    buffer_free(&source);
}

static void load_byte_level(const loader *from, const json_value *description) {
    const json_value *prefix = json_member(description, "add_prefix_space");
    const json_value *expression = json_member(description, "use_regex");
    if (prefix != NULL && prefix->kind == JSON_BOOLEAN && prefix->truth) {
        refuse_launch("%s: a ByteLevel pre-tokenizer with add_prefix_space is not supported", from->path);
    }
    if (expression == NULL || expression->kind != JSON_BOOLEAN || expression->truth) {
        add_split(from, byte_level_pattern, sizeof byte_level_pattern - 1u, true, true);
    }
    from->to->byte_level = true;
}

static void load(const loader *from, const json_value *description, unsigned depth) {
    const json_value *type = json_member(description, "type");
    if (json_is(type, "Sequence") && depth > 0) {
        const json_value *parts = json_member(description, "pretokenizers");
        for (const json_value *part = parts == NULL ? NULL : parts->first; part != NULL; part = part->next) {
            load(from, part, depth - 1u);
        }
    } else if (json_is(type, "Digits")) {
        const json_value *individual = json_member(description, "individual_digits");
        const bool each = individual != NULL && individual->kind == JSON_BOOLEAN && individual->truth;
        (void)add_stage(from, each ? EACH_DIGIT : DIGIT_RUNS);
    } else if (json_is(type, "Split")) {
        load_split(from, description);
    } else if (json_is(type, "ByteLevel")) {
        load_byte_level(from, description);
    } else {
        char text[128];
        refuse_launch("%s: the pre-tokenizer %s is not supported (supported: Sequence, Digits, Split, ByteLevel)",
                      from->path, json_describe(type, text, sizeof text));
    }
}

pretokenizer *pretokenizer_load(const json_value *description, const char *path) {
    const loader from = {allocate(1, sizeof(pretokenizer)), path};
    if (description != NULL && description->kind != JSON_NULL) {
        load(&from, description, 4);
    }
    if (!from.to->byte_level) {
        refuse_launch("%s: a tokenizer without a ByteLevel pre-tokenizer is not supported", path);
    }
    return from.to;
}

void pretokenizer_free(pretokenizer *cutter) {
    for (size_t index = 0; index < cutter->count; index++) {
        pattern_free(cutter->stages[index].delimiter);
    }
    free(cutter);
}

bool pretokenizer_keeps_all(const pretokenizer *cutter) {
    bool keeps = true;
    for (size_t index = 0; index < cutter->count; index++) {
        const stage *const now = &cutter->stages[index];
        keeps = keeps && (now->kind != SPLIT || (now->keep_gaps && now->keep_matches));
    }
    return keeps;
}

// ---------------------------------------------------------------- cutting

typedef struct cut {
    const pretokenizer *cutter;
    word_taker take;
    void *context;
} cut;

static void run_stage(const cut *job, size_t index, const char *text, size_t size);

static void pass_on(const cut *job, size_t index, const char *text, size_t first, size_t end) {
    if (first < end) {
        run_stage(job, index + 1u, text + first, end - first);
    }
}

static void cut_digits(const cut *job, size_t index, const char *text, size_t size, bool each) {
    size_t first = 0;
    size_t at = 0;
    bool digits = false; // what is pending from `first` on
    while (at < size) {
        uint32_t character;
        const size_t length = utf8_read(text + at, size - at, &character);
        const bool digit = unicode_is_number(character);
        if (digit != digits || (digit && each)) {
            pass_on(job, index, text, first, at);
            first = at;
            digits = digit;
        }
        at += length;
    }
    pass_on(job, index, text, first, size);
}

static void run_stage(const cut *job, size_t index, const char *text, size_t size) {
    const stage *const now = &job->cutter->stages[index];
    size_t at = 0;
    size_t first;
    size_t end;
    if (index == job->cutter->count) {
        job->take(job->context, text, size);
        return;
    }
    if (now->kind != SPLIT) {
        cut_digits(job, index, text, size, now->kind == EACH_DIGIT);
        return;
    }
    while (pattern_find(now->delimiter, text, size, at, &first, &end)) {
        if (now->keep_gaps) {
            pass_on(job, index, text, at, first);
        }
        if (now->keep_matches) {
            pass_on(job, index, text, first, end);
        }
        at = end;
    }
    if (now->keep_gaps) {
        pass_on(job, index, text, at, size);
    }
}

void pretokenizer_run(const pretokenizer *cutter, const char *text, size_t size, word_taker take, void *context) {
    const cut job = {cutter, take, context};
    run_stage(&job, 0, text, size);
}
