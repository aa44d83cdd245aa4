// Frames into a growing buffer, through the writers of the generated header.
#ifndef COLIBRI_NATIVE_FRAMES_H
#define COLIBRI_NATIVE_FRAMES_H

#include "base.h"
#include "colibri_wire.h"

void put_ready(buffer *to, const colibri_stat *facts);
void put_accept(buffer *to, const colibri_accept *frame);
void put_data(buffer *to, const colibri_data *frame);
void put_echo(buffer *to, const colibri_echo *frame);
void put_prof(buffer *to, const colibri_prof *frame);
void put_done(buffer *to, const colibri_done *frame);

// ERROR with a code or other words.
void put_error_words(buffer *to, uint64_t id, const char *words);

// HWINFO and TIERS: a dense model has no experts to place, so every tier is empty.
void put_machine(buffer *to);

#endif
