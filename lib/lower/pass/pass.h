/* Passes over the PTX of a finished function: they know nothing of the language or of the code
 * generator. Private to lib/lower. */
#ifndef KAIO_LOWER_PASS_H
#define KAIO_LOWER_PASS_H

#include "ptx/ptx.h"

/* ---- dce.c ---- */

/* Takes out pure instructions whose results nothing reads, labels that nothing jumps to, and unread
 * ld.param. */
void pass_dce(struct arena *a, struct ptx_func *f);
/* Does the instruction write its operand k? */
bool dce_writes(const struct ptx_inst *in, unsigned k);
/* Does it something beside writing its results? */
bool dce_acts(const struct ptx_inst *in);

/* ---- ahead.c: loads that are begun a round of a loop before what they are for ---- */

/* Code in two parts that hold each other's registers: what loads from memory with all that it
 * takes, and what is made of that. */
struct pass_ahead {
    struct ptx_item *load, *rest, *move;
    size_t nload, nrest, nmove;
    int32_t *moved; /* by register: the copy that the rest reads instead; -1: none */
    size_t nreg;
};
/* Takes the function's items from number `first` on out of it, where they are straight code; else
 * they stay, and it is false. Either part is appended as often as it is wanted, the first one
 * before the other. With `moves` the rest reads copies, which .move makes: once that has run the
 * next loads may. varies: another register, that says where they load from; -1: none. */
bool pass_take_apart(struct arena *arena, struct ptx_builder *b, size_t first, bool moves,
                     int32_t varies, struct pass_ahead *a);
void pass_append(struct ptx_builder *b, const struct ptx_item *v, size_t n);

/* ---- hoist.c ---- */

/* Computes once what several ways through the code compute alike, as far as it is cheap. */
void pass_hoist(struct arena *a, struct ptx_func *f);

#endif
