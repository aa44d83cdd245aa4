#include "host.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define GIGABYTE 1e9
#define LINE_BYTES 512

size_t host_cores(void) {
#ifdef __linux__
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) {
        return (size_t)CPU_COUNT(&set);
    }
#endif
    {
        const long count = sysconf(_SC_NPROCESSORS_ONLN);
        return count > 0 ? (size_t)count : 1u;
    }
}

void host_memory(double *total, double *available) {
    char line[LINE_BYTES];
    FILE *file = fopen("/proc/meminfo", "r");
    *total = *available = 0.0;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        unsigned long long kilobytes;
        if (sscanf(line, "MemTotal: %llu kB", &kilobytes) == 1) {
            *total = (double)kilobytes * 1024.0 / GIGABYTE;
        } else if (sscanf(line, "MemAvailable: %llu kB", &kilobytes) == 1) {
            *available = (double)kilobytes * 1024.0 / GIGABYTE;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

double host_resident(void) {
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file != NULL) {
        if (fscanf(file, "%*u %llu", &pages) != 1) {
            pages = 0;
        }
        fclose(file);
    }
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / GIGABYTE;
}

/* Printable ASCII words of `text`, single spaces between them. */
static void tidy(char *text) {
    char *to = text;
    for (const char *at = text; *at != '\0'; at++) {
        const char character = *at > ' ' && *at < 0x7f && *at != '|' ? *at : ' ';
        if (character != ' ' || (to > text && to[-1] != ' ')) {
            *to++ = character;
        }
    }
    while (to > text && to[-1] == ' ') {
        to--;
    }
    *to = '\0';
}

const char *host_processor(void) {
    static char name[LINE_BYTES];
    char line[LINE_BYTES];
    FILE *file;
    if (name[0] != '\0') {
        return name;
    }
    file = fopen("/proc/cpuinfo", "r");
    while (file != NULL && name[0] == '\0' && fgets(line, sizeof line, file) != NULL) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon != NULL) {
            strcpy(name, colon + 1);
            tidy(name);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    if (name[0] == '\0') {
        strcpy(name, "unknown");
    }
    return name;
}
