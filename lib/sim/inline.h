/* Calls: how the functions that an entry calls become part of it. Private to inline.c and
 * routine.c.
 *
 * A function that is called by name and does not come to itself again stands in the place of each
 * call (inline.c). Any other is a routine (routine.c): one body behind the entry's own, that calls
 * jump to and that jumps back.
 *
 *     a call                          the routine
 *       st.local [sp + ...], arguments  start: registers to [sp + ...], if it may come to itself
 *       next = which call this is              fp = sp; sp += frame; back = next
 *       bra start                       its body: variables are at [fp + ...]
 *     behind it:                        end:   sp = fp, registers from [sp + ...]
 *       ld.local results, [sp + ...]           brx.idx back, { all its calls }
 *
 * So lanes at any depth are at the same place when they are at the same instruction: all that tells
 * them apart is in registers and local memory. A frame has the parameters first, then the results,
 * then variables as they are met, then the registers.
 *
 * The address of a function is that of a window of its own (SIM_CODE_BASE), 16 for each item of the
 * module: a call through a register is a brx.idx over them.
 */
#ifndef KAIO_SIM_INLINE_H
#define KAIO_SIM_INLINE_H

#include "sim/decode.h"

/* A variable of the text and the one that stands for it in this body. */
struct renamed {
    const struct ptx_var *from, *to;
};

struct framed {
    const struct ptx_var *var; /* NULL: what is passed in a register */
    uint32_t at;               /* bytes from the frame's start */
};

struct routine {
    const struct ptx_func *func;
    bool recursive;
    uint32_t start, end;         /* labels: where calls jump to, where returns do */
    uint32_t frame;              /* bytes, so far */
    VEC(struct framed) slot;     /* the first: parameters, then results */
    VEC(uint32_t) site;          /* labels behind its calls */
    int32_t fp, back;            /* registers: 64 and 32 bits */
    int32_t first_reg, last_reg; /* its bodies' registers: [first, last) */
    uint32_t first_item, last_item;
    uint32_t save; /* where they are saved in the frame */
};

/* One body being copied. */
struct body {
    const struct body *caller; /* NULL: the entry, a routine */
    const struct ptx_func *func;
    struct routine *routine;   /* that it is part of; NULL: the entry */
    int32_t first_reg;         /* its registers come from there on in the copy */
    uint32_t first_label, end; /* its labels; where it returns to */
    uint32_t *item;            /* by its item: the copy's */
    VEC(struct renamed) vars;
};

typedef VEC(const struct ptx_func *) func_list;

/* A function in the graph of calls. */
struct node {
    const struct ptx_func *func;
    VEC(uint32_t) callee; /* nodes */
    bool recursive;       /* it may come to itself */
};

struct copy {
    struct arena *arena;
    const struct ptx_module *module;
    struct ptx_module scratch; /* the builder's */
    struct ptx_builder b;      /* of func */
    struct ptx_func *func;
    struct diags *diags;
    VEC(struct node) graph; /* the first: the entry */
    func_list addressed;    /* that calls through registers may go to, if */
    bool knows_addressed;
    VEC(struct routine *) routines;
    /* of kernels with routines; sp -1: there are none yet */
    const struct ptx_var *stack;
    int32_t sp, next;
    uint32_t begin, body; /* labels: where sp is set, and the entry's own code */
};

/* ---- inline.c ---- */

struct ptx_var *inline_local(struct copy *c, const struct ptx_var *like);
void inline_rename(struct copy *c, struct body *b, const struct ptx_var *from,
                   const struct ptx_var *to);
/* The variable that stands for v in a body. */
const struct ptx_var *inline_var(struct copy *c, struct body *b, const struct ptx_var *v);
/* The operand in the body's names: variables in frames still are variables, unless `placed`. */
struct ptx_operand inline_operand(struct copy *c, struct body *b, const struct ptx_operand *o,
                                  bool placed);
/* [variable + offset], wherever it is. */
struct ptx_operand inline_memory(struct copy *c, const struct body *b, const struct ptx_var *v,
                                 uint64_t offset);
bool inline_body(struct copy *c, struct body *b);
/* A parameter in a register: its number among the function's registers. */
int32_t inline_param_reg(const struct ptx_func *f, const struct ptx_var *v);
/* Gives the body its registers and labels in the copy. */
void inline_room(struct copy *c, struct body *b);

/* ---- routine.c ---- */

/* May it come to itself, by name or through a register? */
bool routine_recurses(const struct copy *c, const struct ptx_func *f);
/* Calls, by name or (f NULL) through a register, a routine from a body; the guard is seen to. */
bool routine_call(struct copy *c, struct body *b, const struct ptx_item *item,
                  const struct ptx_func *f);
/* The offset of the variable in the routine's frame. */
uint32_t routine_slot(struct copy *c, struct routine *r, const struct ptx_var *v);
/* In front of the entry's body: makes a stack, if it will need one. */
bool routine_begin(struct copy *c, const struct body *entry);
/* Behind it: the bodies of all routines. */
bool routine_bodies(struct copy *c);

#endif
