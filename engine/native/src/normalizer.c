#include "normalizer.h"

void normalizer_load(normalizer *to, const json_value *description, const char *path) {
    const json_value *type = json_member(description, "type");
    to->composes = false;
    if (description == NULL || description->kind == JSON_NULL) {
        return;
    }
    {
        char text[128];
        refuse_launch("%s: the normalizer %s is not supported", path, json_describe(type, text, sizeof text));
    }
}

bool normalizer_run(const normalizer *from, const char *text, size_t size, buffer *to) {
    (void)from;
    (void)text;
    (void)size;
    (void)to;
    return false;
}
