// For the tests: tokenizes texts with the tokenizer of a model directory.
//
//   tokenize_texts DIRECTORY VOCABULARY
//
// stdin: for each text a line with its length in bytes, then the text and a line feed. stdout: for each text one line, its
// token ids, or "invalid" when it is not UTF-8.

#include <stdio.h>
#include <stdlib.h>

#include "base.h"
#include "tokenizer.h"
#include "utf8.h"

int main(int argument_count, char **arguments) {
    tokenizer *words;
    size_t size;
    token_list ids = {NULL, 0, 0};
    if (argument_count != 3) {
        return 2;
    }
    words = tokenizer_load(arguments[1], (size_t)strtoul(arguments[2], NULL, 10));
    while (scanf("%zu", &size) == 1) {
        char *text = allocate(size + 2u, 1);
        if (getchar() != '\n' || fread(text, 1, size + 1u, stdin) != size + 1u) {
            return 2;
        }
        ids.count = 0;
        if (!utf8_valid(text, size)) {
            puts("invalid");
        } else {
            tokenizer_encode(words, text, size, &ids);
            for (size_t index = 0; index < ids.count; index++) {
                printf("%s%u", index == 0 ? "" : " ", ids.tokens[index]);
            }
            putchar('\n');
        }
        free(text);
    }
    token_list_free(&ids);
    tokenizer_free(words);
    return 0;
}
