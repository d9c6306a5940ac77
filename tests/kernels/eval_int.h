/* Private to the evaluator. */
#ifndef KAIO_TESTS_KERNELS_EVAL_INT_H
#define KAIO_TESTS_KERNELS_EVAL_INT_H

#include "kernels/eval.h"

#include <ucontext.h>

enum { LANES_MOST = 16, ARGS_MOST = 16, STACK_CELLS = 16384 };

/* A variable's storage: cells of its thread's stack, or elements in memory. */
struct storage {
    union scalar *cell;    /* a local: one cell a lane */
    struct buffer *memory; /* a buffer or shared array: vectors count as their lanes */
    const struct lang_symbol *sym;
    uint64_t dim[BUFFER_RANK], count; /* elements; a vector is one */
};

struct frame {
    struct storage *local; /* by the symbols' ids; sym NULL: not declared yet */
    uint32_t nlocal;
    const struct lang_func *func; /* NULL: the body */
    union scalar result[LANES_MOST];
};

struct thread {
    struct block *block;
    uint32_t tid[3], linear;
    struct frame *frame;
    union scalar *stack; /* STACK_CELLS of them */
    size_t top;
    bool done;
    /* where it waits for others: the call, its operands, and then what came of it */
    const struct lang_expr *meets;
    union scalar operand[ARGS_MOST][LANES_MOST], outcome[LANES_MOST];
    ucontext_t context;
};

struct block {
    struct machine *machine;
    uint32_t at[3];
    struct thread *thread;
    uint32_t nthread, left;       /* left: that have not ended */
    uint32_t arrived[16];         /* at the barriers by number, without waiting */
    VEC(struct storage *) shared; /* and the tables of functions: */
    struct thread **group;        /* room for all of them */
    ucontext_t scheduler;
    char *host, *host_stacks;
    size_t host_bytes;
};

struct machine {
    struct arena *arena;
    const struct eval_input *in;
    uint32_t grid[3], block[3], cluster[3];
    int64_t shared_bytes; /* of the array without a size */
    bool contract;        /* a product and a sum may be one fma */
    bool meets;           /* threads wait for each other: they need coroutines */
    const char *fault;
    uint64_t steps;
};

enum flow { FLOW_ON, FLOW_BREAK, FLOW_CONTINUE, FLOW_RETURN };

/* eval_expr.c */
void eval_expr(struct thread *t, const struct lang_expr *e, union scalar *out);
union scalar eval_scalar(struct thread *t, const struct lang_expr *e);
bool eval_condition(struct thread *t, const struct lang_expr *e);
/* The element that an E_INDEX names, and of a vector maybe one lane (-1: all); UINT64_MAX after a
 * fault. *s points to room for a storage at first. */
uint64_t eval_place(struct thread *t, const struct lang_expr *e, struct storage **s, int *lane);
void eval_read(struct thread *t, const struct storage *s, uint64_t at, union scalar *out);
void eval_write(struct thread *t, struct storage *s, uint64_t at, const union scalar *v);
struct storage *eval_storage(struct thread *t, const struct lang_symbol *sym);
unsigned eval_lanes(const struct lang_expr *e);
/* Sets the machine's fault, once. */
void eval_fault(struct thread *t, struct span s, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* eval_call.c */
void eval_call(struct thread *t, const struct lang_expr *e, union scalar *out);

/* eval_atomic.c */
void eval_atomic(struct thread *t, const struct lang_expr *e, union scalar *out);

/* eval_stmt.c */
enum flow eval_stmt(struct thread *t, const struct lang_stmt *s);
void eval_function(struct thread *t, const struct lang_expr *e, union scalar *out);
union scalar *eval_cells(struct thread *t, size_t n);

/* eval_block.c: stops this thread until what it asks for is settled; then t->outcome holds it. */
void eval_meet(struct thread *t, const struct lang_expr *e);
/* Makes a shared variable, or a table of functions:, which nobody changes. */
struct storage *eval_variable(struct block *b, const struct lang_symbol *sym);

/* eval_meet.c */
bool meet_in_block(enum lang_builtin fn);
bool meet_in_warp(enum lang_builtin fn);
/* Answers every group that is complete; false when there is none. */
bool meet_settle(struct block *b);

#endif
