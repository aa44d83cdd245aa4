// Facts about the machine and this process. A fact that cannot be learned is zero or "unknown", never guessed.
#ifndef COLIBRI_NATIVE_HOST_H
#define COLIBRI_NATIVE_HOST_H

#include <stddef.h>

// Processors this process may run on.
size_t host_cores(void);

// Main memory in units of 10^9 bytes.
void host_memory(double *total, double *available);

// Resident memory of this process, likewise.
double host_resident(void);

// Name of the processor on one line, without the separator of HWINFO.
const char *host_processor(void);

#endif
