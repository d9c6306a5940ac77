/* Instruction forms, one kernel for each, and operands for them: what sim_opcodes runs on a GPU and
 * on the simulator.
 *
 * Thread i of a form's kernel reads tuple i, nsrc words of 8 bytes, executes the instruction, and
 * writes nres words.
 */
#ifndef KAIO_TESTS_OPCODES_H
#define KAIO_TESTS_OPCODES_H

#include "ptx/ptx.h"

/* Of a form's tuples each block of threads has another kind. */
enum opc_kind {
    OPC_SPECIAL,  /* zeros, limits, Inf, NaN: each with each */
    OPC_ORDINARY, /* of about the same size */
    OPC_RAW,      /* any bits */
    OPC_EDGE,     /* made to cancel, to tie, to overflow, to vanish */
    OPC_KINDS
};
enum { OPC_BLOCK = 128, OPC_TUPLES = OPC_KINDS * OPC_BLOCK, OPC_SOURCES = 16, OPC_RESULTS = 32 };
enum { OPC_TABLE = 64 }; /* bytes of the parameter and of the constant that loads read from */

/* What a word of a tuple is for. */
enum opc_role {
    OPC_VALUE,   /* of the type */
    OPC_SHIFT,   /* a number of bits */
    OPC_PRED,    /* 0 or 1 */
    OPC_VOTE,    /* 0 or 1; in some warps all the same */
    OPC_LANE,    /* of a warp */
    OPC_SEGMENT, /* the last operand of shfl */
    OPC_FROM,    /* a bit's number (fns) */
    OPC_STEP,    /* a small number, perhaps negative (fns) */
    OPC_FEW,     /* one of few values; in some warps all the same */
    OPC_SAME,    /* often what cas finds: the first word, or, of two, the one of this place */
};

struct opc_source {
    enum opc_role role;
    enum ptx_mod type;
};

struct opc_form {
    const char *name; /* the mnemonic; behind an @ what else sets it apart */
    struct ptx_inst inst;
    unsigned version, sm; /* that it needs; 1090: sm_90a alone */
    struct opc_source src[OPC_SOURCES];
    unsigned nsrc, nres;
    const char *text; /* of its kernel: everything within the braces */
    bool param;       /* the kernel has a third parameter, OPC_TABLE bytes */
    bool warp;        /* the threads of a warp do it together */
    bool chosen;      /* its tuples are made for one question (values.c) */
    bool approx;      /* the result has an error, which only the manual bounds */
};

/* From one tuple or result to the next, in words: each begins at a multiple of 16 bytes. */
static inline unsigned opc_stride(unsigned n)
{
    return (n + 1) & ~1u;
}

/* Forms of isa.def that a simulator for sm_75 .. sm_90a has to execute and whose results can be
 * compared. */
struct opc_forms {
    struct arena *arena;
    VEC(struct opc_form) list;
    VEC(const char *) missing; /* rows of isa.def without a form that no other test is named for */
};
void opc_list_forms(struct arena *a, struct opc_forms *forms);

/* An instruction that has no forms here, and the test in tests/unit/ that has it. */
struct opc_elsewhere {
    const char *name, *test; /* NULL: nothing can be seen of it; "": the simulator refuses it */
};
const struct opc_elsewhere *opc_elsewhere(size_t i); /* NULL behind the last */

/* A module with the kernels of n forms, f0, f1, ...; target NULL: the least that has them all;
 * partial: with a last parameter, 0 or 1, threads whose number has that lowest bit do nothing. */
const char *opc_module(struct arena *a, const struct opc_form *const *f, size_t n,
                       const char *target, bool partial);

/* OPC_TUPLES tuples of opc_stride(nsrc) words; the same on every machine. */
void opc_tuples(const struct opc_form *f, uint64_t *words);
/* What is in the table of parameter and constant. */
unsigned char opc_table_byte(unsigned i);

/* ---- writing kernels (text.c, memory.c) ---- */

struct opc_writer {
    struct opc_form *form;
    struct arena *arena;
    struct buf decl, load, body, store;
};
/* A register with the next word of the tuple, of so many bits (0: a predicate); its name. */
const char *opc_source(struct opc_writer *w, enum opc_role role, enum ptx_mod type, unsigned bits);
/* A register that is stored as the next word of the result. */
const char *opc_result(struct opc_writer *w, unsigned bits);
/* Is the last operand the mask of a warp's threads? */
bool opc_takes_members(enum ptx_op op);
unsigned opc_reg_bits(enum ptx_mod type); /* of a register for it; 0: a predicate */
/* Writes the body of a form; variant counts from 0. False: there are no more. */
bool opc_write(struct opc_writer *w, const char *mnemonic, unsigned variant);
/* Declares what every kernel has and finds the thread's words of the input, %i, and of the result,
 * %o. */
void opc_prologue(struct opc_writer *w);
bool opc_write_memory(struct opc_writer *w, const char *mnemonic, unsigned variant);
bool opc_is_memory(enum ptx_op op);

#endif
