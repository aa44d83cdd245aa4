// Generated from spec/protocol.yaml (target c, template c/agree.c.j2). Do not edit.
// Regenerate with: python -m codegen generate
//
// A program for the tests: reads messages, one line "frame HEX" or "command HEX" each, and prints what the header makes
// of the first message in those bytes, one line each:
//
//   frame KIND name=value …  HEX       the values, and the message written again
//   refused ID CODE field rule         a command that is refused, its payload skipped
//   fault field rule                   nothing after this can be trusted
//   more                               the message is not complete
//
// Numbers are decimal, reals hexadecimal floats, bytes hexadecimal digits.

#define COLIBRI_GATEWAY_SIDE
#include <stdio.h>

#include "colibri_wire.h"

static char line_text[1u << 22u];
static char message_bytes[1u << 21u];
static char written[1u << 21u];

static void print_bytes(colibri_bytes bytes) {
    size_t at;
    for (at = 0u; at < bytes.size; at++) {
        printf("%02x", (unsigned)(unsigned char)bytes.data[at]);
    }
}

static void print_written(size_t size) {
    colibri_bytes bytes;
    bytes.data = written;
    bytes.size = size;
    putchar(' ');
    print_bytes(bytes);
    putchar('\n');
}

static void print_fault(const colibri_fault *fault) {
    printf("fault %s", fault->field);
    fwrite(fault->key.data, 1u, fault->key.size, stdout);
    printf(" %s\n", colibri_rule_name(fault->rule));
}

static void show_frame(const colibri_frame *frame, colibri_fault *fault) {
    if (frame->kind == COLIBRI_FRAME_ACCEPT) {
        const colibri_accept *const message = &frame->as.accept;
        printf("frame ACCEPT");
        printf(" id="); printf("%llu", (unsigned long long)message->id);
        printf(" prompt_tokens="); printf("%llu", (unsigned long long)message->prompt_tokens);
        print_written(colibri_write_accept(written, sizeof written, message, fault));
    }
    if (frame->kind == COLIBRI_FRAME_DATA) {
        const colibri_data *const message = &frame->as.data;
        printf("frame DATA");
        printf(" id="); printf("%llu", (unsigned long long)message->id);
        printf(" payload="); print_bytes(message->payload);
        if (message->has_logprob) {
            printf(" logprob="); printf("%a", message->logprob);
            printf(" k="); printf("%llu", (unsigned long long)message->k);
            printf(" tokens=");
            for (size_t entry = 0u; entry < message->k; entry++) { putchar(','); printf("%llu", (unsigned long long)message->tokens[entry]); }
            printf(" token_logprobs=");
            for (size_t entry = 0u; entry < message->k; entry++) { putchar(','); printf("%a", message->token_logprobs[entry]); }
        }
        print_written(colibri_write_data(written, sizeof written, message, fault));
    }
    if (frame->kind == COLIBRI_FRAME_ECHO) {
        const colibri_echo *const message = &frame->as.echo;
        printf("frame ECHO");
        printf(" id="); printf("%llu", (unsigned long long)message->id);
        printf(" payload="); print_bytes(message->payload);
        printf(" position="); printf("%llu", (unsigned long long)message->position);
        printf(" logprob="); printf("%a", message->logprob);
        printf(" k="); printf("%llu", (unsigned long long)message->k);
        printf(" tokens=");
        for (size_t entry = 0u; entry < message->k; entry++) { putchar(','); printf("%llu", (unsigned long long)message->tokens[entry]); }
        printf(" token_logprobs=");
        for (size_t entry = 0u; entry < message->k; entry++) { putchar(','); printf("%a", message->token_logprobs[entry]); }
        print_written(colibri_write_echo(written, sizeof written, message, fault));
    }
    if (frame->kind == COLIBRI_FRAME_TOOL) {
        const colibri_tool *const message = &frame->as.tool;
        printf("frame TOOL");
        printf(" id="); printf("%llu", (unsigned long long)message->id);
        printf(" payload="); print_bytes(message->payload);
        print_written(colibri_write_tool(written, sizeof written, message, fault));
    }
    if (frame->kind == COLIBRI_FRAME_DONE) {
        const colibri_done *const message = &frame->as.done;
        printf("frame DONE");
        printf(" id="); printf("%llu", (unsigned long long)message->id);
        printf(" completion_tokens="); printf("%llu", (unsigned long long)message->completion_tokens);
        printf(" tokens_per_second="); printf("%a", message->tokens_per_second);
        printf(" cache_hit_percent="); printf("%a", message->cache_hit_percent);
        printf(" rss_gb="); printf("%a", message->rss_gb);
        if (message->has_prompt_tokens) {
            printf(" prompt_tokens="); printf("%llu", (unsigned long long)message->prompt_tokens);
            if (message->has_length_limited) {
                printf(" length_limited="); printf("%llu", (unsigned long long)message->length_limited);
            }
        }
        print_written(colibri_write_done(written, sizeof written, message, fault));
    }
    if (frame->kind == COLIBRI_FRAME_ERROR) {
        const colibri_error *const message = &frame->as.error;
        printf("frame ERROR");
        printf(" id="); printf("%llu", (unsigned long long)message->id);
        printf(" words="); print_bytes(message->words);
        print_written(colibri_write_error(written, sizeof written, message, fault));
    }
    if (frame->kind == COLIBRI_FRAME_PROF) {
        const colibri_prof *const message = &frame->as.prof;
        printf("frame PROF");
        printf(" wall_s="); printf("%a", message->wall_s);
        printf(" prompt_tokens="); printf("%a", message->prompt_tokens);
        printf(" completion_tokens="); printf("%a", message->completion_tokens);
        printf(" disk_s="); printf("%a", message->disk_s);
        printf(" wait_s="); printf("%a", message->wait_s);
        printf(" matmul_s="); printf("%a", message->matmul_s);
        printf(" attention_s="); printf("%a", message->attention_s);
        printf(" head_s="); printf("%a", message->head_s);
        printf(" forwards="); printf("%a", message->forwards);
        print_written(colibri_write_prof(written, sizeof written, message, fault));
    }
    if (frame->kind == COLIBRI_FRAME_TIERS) {
        const colibri_tiers *const message = &frame->as.tiers;
        printf("frame TIERS");
        printf(" vram="); printf("%a", message->vram);
        printf(" ram="); printf("%a", message->ram);
        printf(" disk="); printf("%a", message->disk);
        printf(" vram_gb="); printf("%a", message->vram_gb);
        printf(" ram_gb="); printf("%a", message->ram_gb);
        print_written(colibri_write_tiers(written, sizeof written, message, fault));
    }
    if (frame->kind == COLIBRI_FRAME_HWINFO) {
        const colibri_hwinfo *const message = &frame->as.hwinfo;
        printf("frame HWINFO");
        printf(" cores="); printf("%a", message->cores);
        printf(" ram_total_gb="); printf("%a", message->ram_total_gb);
        printf(" ram_available_gb="); printf("%a", message->ram_available_gb);
        printf(" gpus="); printf("%a", message->gpus);
        printf(" vram_total_gb="); printf("%a", message->vram_total_gb);
        printf(" names="); print_bytes(message->names);
        print_written(colibri_write_hwinfo(written, sizeof written, message, fault));
    }
    if (frame->kind == COLIBRI_FRAME_EMAP) {
        const colibri_emap *const message = &frame->as.emap;
        printf("frame EMAP");
        printf(" rows="); printf("%llu", (unsigned long long)message->rows);
        printf(" cols="); printf("%llu", (unsigned long long)message->cols);
        printf(" cells="); print_bytes(message->cells);
        print_written(colibri_write_emap(written, sizeof written, message, fault));
    }
    if (frame->kind == COLIBRI_FRAME_HITS) {
        const colibri_hits *const message = &frame->as.hits;
        printf("frame HITS");
        printf(" rows="); printf("%llu", (unsigned long long)message->rows);
        printf(" cols="); printf("%llu", (unsigned long long)message->cols);
        printf(" cells="); print_bytes(message->cells);
        print_written(colibri_write_hits(written, sizeof written, message, fault));
    }
    if (frame->kind == COLIBRI_FRAME_PERF) {
        const colibri_perf *const message = &frame->as.perf;
        printf("frame PERF");
        printf(" words="); print_bytes(message->words);
        print_written(colibri_write_perf(written, sizeof written, message, fault));
    }
    if (frame->kind == COLIBRI_FRAME_ENTROPY) {
        const colibri_entropy *const message = &frame->as.entropy;
        printf("frame ENTROPY");
        printf(" words="); print_bytes(message->words);
        print_written(colibri_write_entropy(written, sizeof written, message, fault));
    }
    if (frame->kind == COLIBRI_FRAME_GPUS) {
        const colibri_gpus *const message = &frame->as.gpus;
        printf("frame GPUS");
        printf(" words="); print_bytes(message->words);
        print_written(colibri_write_gpus(written, sizeof written, message, fault));
    }
    if (frame->kind == COLIBRI_FRAME_TOPK) {
        const colibri_topk *const message = &frame->as.topk;
        printf("frame TOPK");
        printf(" words="); print_bytes(message->words);
        print_written(colibri_write_topk(written, sizeof written, message, fault));
    }
    if (frame->kind == COLIBRI_FRAME_REPIN) {
        const colibri_repin *const message = &frame->as.repin;
        printf("frame REPIN");
        printf(" words="); print_bytes(message->words);
        print_written(colibri_write_repin(written, sizeof written, message, fault));
    }
    if (frame->kind == COLIBRI_FRAME_GRPP) {
        const colibri_grpp *const message = &frame->as.grpp;
        printf("frame GRPP");
        printf(" id="); printf("%llu", (unsigned long long)message->id);
        printf(" position="); printf("%llu", (unsigned long long)message->position);
        printf(" logprob="); printf("%a", message->logprob);
        printf(" k="); printf("%llu", (unsigned long long)message->k);
        print_written(colibri_write_grpp(written, sizeof written, message, fault));
    }
    if (frame->kind == COLIBRI_FRAME_GRPG) {
        const colibri_grpg *const message = &frame->as.grpg;
        printf("frame GRPG");
        printf(" id="); printf("%llu", (unsigned long long)message->id);
        printf(" member="); printf("%llu", (unsigned long long)message->member);
        printf(" position="); printf("%llu", (unsigned long long)message->position);
        printf(" logprob="); printf("%a", message->logprob);
        printf(" k="); printf("%llu", (unsigned long long)message->k);
        print_written(colibri_write_grpg(written, sizeof written, message, fault));
    }
    if (frame->kind == COLIBRI_FRAME_GRPS) {
        const colibri_grps *const message = &frame->as.grps;
        printf("frame GRPS");
        printf(" id="); printf("%llu", (unsigned long long)message->id);
        printf(" member="); printf("%llu", (unsigned long long)message->member);
        printf(" prompt_count="); printf("%llu", (unsigned long long)message->prompt_count);
        printf(" member_count="); printf("%llu", (unsigned long long)message->member_count);
        print_written(colibri_write_grps(written, sizeof written, message, fault));
    }
    if (frame->kind == COLIBRI_FRAME_GRPE) {
        const colibri_grpe *const message = &frame->as.grpe;
        printf("frame GRPE");
        printf(" id="); printf("%llu", (unsigned long long)message->id);
        printf(" member="); printf("%llu", (unsigned long long)message->member);
        printf(" sum="); printf("%a", message->sum);
        printf(" count="); printf("%llu", (unsigned long long)message->count);
        printf(" greedy="); printf("%llu", (unsigned long long)message->greedy);
        print_written(colibri_write_grpe(written, sizeof written, message, fault));
    }
}

static void show_command(const colibri_command *command, colibri_fault *fault) {
    if (command->kind == COLIBRI_COMMAND_SUBMIT) {
        const colibri_submit *const message = &command->as.submit;
        printf("command SUBMIT");
        printf(" id="); printf("%llu", (unsigned long long)message->id);
        printf(" slot="); printf("%llu", (unsigned long long)message->slot);
        printf(" prompt="); print_bytes(message->prompt);
        printf(" max_tokens="); printf("%llu", (unsigned long long)message->max_tokens);
        printf(" temperature="); printf("%a", message->temperature);
        printf(" top_p="); printf("%a", message->top_p);
        printf(" extra="); print_bytes(message->extra);
        if (message->has_logprobs) { printf(" logprobs=%llu", (unsigned long long)message->logprobs); }
        if (message->has_ids) { printf(" ids=%llu", (unsigned long long)message->ids); }
        if (message->has_pin) { printf(" pin=%llu", (unsigned long long)message->pin); }
        print_written(colibri_write_submit(written, sizeof written, message, fault));
    }
    if (command->kind == COLIBRI_COMMAND_IMAGE) {
        const colibri_image *const message = &command->as.image;
        printf("command IMAGE");
        printf(" id="); printf("%llu", (unsigned long long)message->id);
        printf(" image="); print_bytes(message->image);
        printf(" grid_h="); printf("%llu", (unsigned long long)message->grid_h);
        printf(" grid_w="); printf("%llu", (unsigned long long)message->grid_w);
        print_written(colibri_write_image(written, sizeof written, message, fault));
    }
    if (command->kind == COLIBRI_COMMAND_STOP) {
        const colibri_stop *const message = &command->as.stop;
        printf("command STOP");
        printf(" id="); printf("%llu", (unsigned long long)message->id);
        print_written(colibri_write_stop(written, sizeof written, message, fault));
    }
    if (command->kind == COLIBRI_COMMAND_CANCEL) {
        const colibri_cancel *const message = &command->as.cancel;
        printf("command CANCEL");
        printf(" id="); printf("%llu", (unsigned long long)message->id);
        print_written(colibri_write_cancel(written, sizeof written, message, fault));
    }
}

static void frame_of(const char *data, size_t size) {
    static colibri_frame frame;
    colibri_fault fault = {"", COLIBRI_RULE_NONE, {"", 0u}};
    const char *const end = (const char *)memchr(data, '\n', size);
    const size_t header = end == NULL ? size : (size_t)(end - data);
    if (end == NULL) {
        puts("more");
    } else if (!colibri_read_frame(data, header, &frame, &fault)) {
        print_fault(&fault);
    } else if (size - header - 1u < frame.payload_bytes) {
        puts("more");
    } else if (!colibri_take_frame_payload(&frame, end + 1, &fault)) {
        print_fault(&fault);
    } else {
        show_frame(&frame, &fault);
    }
}

static void command_of(const char *data, size_t size) {
    static colibri_command command;
    colibri_fault fault = {"", COLIBRI_RULE_NONE, {"", 0u}};
    const char *const end = (const char *)memchr(data, '\n', size);
    const size_t header = end == NULL ? size : (size_t)(end - data);
    bool good;
    if (end == NULL) {
        puts("more");
        return;
    }
    good = colibri_read_command(data, header, &command, &fault);
    if (size - header - 1u < command.payload_bytes) {
        puts("more");
    } else if (command.payload_bytes != 0u && data[header + command.payload_bytes] != '\n') {
        puts("fault  terminator");
    } else if (!good && fault.rule == COLIBRI_RULE_LINE_LIMIT) {
        print_fault(&fault);
    } else if (!good) {
        printf("refused %llu %s %s", (unsigned long long)command.id, COLIBRI_ERROR_BAD_REQUEST, fault.field);
        fwrite(fault.key.data, 1u, fault.key.size, stdout);
        printf(" %s\n", colibri_rule_name(fault.rule));
    } else if (!colibri_take_payload(&command, end + 1, &fault)) {
        print_fault(&fault);
    } else {
        show_command(&command, &fault);
    }
}

/* Skip blank lines, as every reader does between messages. */
static size_t blank_bytes(const char *data, size_t size) {
    size_t start = 0u;
    while (start < size) {
        const char *const end = (const char *)memchr(data + start, '\n', size - start);
        if (end == NULL || !colibri_is_blank(data + start, (size_t)(end - data) - start)) {
            break;
        }
        start = (size_t)(end - data) + 1u;
    }
    return start;
}

int main(void) {
    while (fgets(line_text, (int)sizeof line_text, stdin) != NULL) {
        const char *at = strchr(line_text, ' ');
        size_t size = 0u;
        size_t blank;
        if (at == NULL) {
            return 2;
        }
        for (at++; colibri_hex_digit(at[0]) >= 0 && colibri_hex_digit(at[1]) >= 0; at += 2) {
            message_bytes[size++] = (char)(colibri_hex_digit(at[0]) * 16 + colibri_hex_digit(at[1]));
        }
        blank = blank_bytes(message_bytes, size);
        if (line_text[0] == 'f') {
            frame_of(message_bytes + blank, size - blank);
        } else {
            command_of(message_bytes + blank, size - blank);
        }
        fflush(stdout);
    }
    return 0;
}
