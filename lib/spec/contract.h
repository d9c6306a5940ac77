/* The launch contract: what kaio-emit writes in front of the PTX and kaio-run reads, a YAML
 * document behind "//@ ".
 *
 *     //@ kaio: 1
 *     //@ kernel: saxpy
 *     //@ source: specs/elementwise/saxpy.yaml
 *     //@ target: sm_80
 *     //@ params:
 *     //@   x: in f32[n]
 *     //@   y: inout f32[n]
 *     //@   alpha: f32 = 2.0
 *     //@ derived:                    optional: dimensions that others say
 *     //@   m: cols / 2
 *     //@ dims: {cols: 4096}          dimensions fixed at emission
 *     //@ require:
 *     //@   - n % 4 == 0
 *     //@ where:                      optional: names for what is said more than once
 *                                     (contract_where.c)
 *     //@   fits: n % 4 == 0 && n < 65536
 *     //@ depth: 18                 optional: the most roundings between a term of a sum and the
 *                                   sum
 *     //@ truncation: 6 * ceil_div(k, 4)  optional: what sums by tensor cores lose, struct
 *                                         spec_sums
 *     //@ products: 12              optional: what their products lose
 *     //@ weights: 36               optional: which weights among their factors are lost
 *     //@ temps:                      buffers that the runner makes, for the launches among
 *                                     themselves
 *     //@   $mean: f32[n / 4]
 *     //@   $count: u32[1] = 0          zero before the first launch; every run of the launches
 *                                       leaves it so
 *     //@   $next: u32[1] = 0 each run   zero before the first launch of every run
 *     //@ launches:
 *     //@   - entry: saxpy
 *     //@     step: 1                 optional, 0: of adjacent launches with a condition and the
 *                                     same step
 *     //@     when: n % 4 == 0        the first that holds is taken; optional
 *     //@     grid: [ceil_div(n, 1024)]
 *     //@     block: [256]
 *     //@     shared: 0
 *     //@     args: [x, y, alpha, n, u64 n * 4, $messages]
 *     //@ messages:                 of print() and assert(), numbered from 1
 *     //@   - {print: "x is %g\n", types: [f32], line: 12}
 *     //@   - {assert: "i < n", message: "too many", line: 13}
 *
 * An argument is a parameter's or dimension's name, "TYPE expression", a temp's name, a tensor map
 * (struct contract_map), or $messages, a buffer that the runner makes. Several kernels are several
 * documents (//@ ---). The grid, block, shared, when and argument expressions are lang expressions
 * over dimensions and integer scalars, evaluated exactly at launch; that of a grid may take the
 * device's number of multiprocessors. Also made from options when PTX has no contract.
 */
#ifndef KAIO_SPEC_CONTRACT_H
#define KAIO_SPEC_CONTRACT_H

#include "spec/spec.h"

enum { CONTRACT_VERSION = 1 };
#define CONTRACT_MESSAGES "$messages" /* as an argument; no temp is called so */

/* A tensor map, which is a 128-byte parameter:
 *
 *     {map: a, type: f16, at: 0, dims: [k, m], strides: [2 * k], box: [64, 128], steps: [1, 1],
 *       swizzle: 128,
 *      interleave: 0, promote: 256, fill: zero}
 *
 *     {map: x, box: [64, 128], lower: [-1, -1], upper: [-1, -1], swizzle: 128}
 *
 * Corners make it one of windows of pixels (.im2col), whose box is channels and pixels. Innermost
 * dimension first; struct device_tensor_map (run/device.h) says what may be. All but map
 * and box have defaults: the buffer's type and shape, dense strides (in bytes, of all dimensions
 * but the innermost), steps of 1, 0 and zero. An empty tensor (a dimension of 0) has a map, too,
 * which nothing may be copied through. */
enum { CONTRACT_MAP_RANK = 5, CONTRACT_MAP_SPACE = 3 };
struct contract_map {
    struct lang_symbol *sym; /* a buffer or a temp */
    enum dtype type;
    bool tf32; /* "type: tf32": f32 that are rounded on their way */
    uint32_t rank;
    struct lang_expr *at; /* bytes from the buffer's start; NULL: 0 */
    struct lang_expr *dim[CONTRACT_MAP_RANK];
    struct lang_expr *stride[CONTRACT_MAP_RANK]; /* all NULL: dense; stride[0] is not used */
    struct lang_expr *box[CONTRACT_MAP_RANK];
    struct lang_expr *step[CONTRACT_MAP_RANK]; /* all NULL: 1 */
    bool im2col; /* box has two members then, and these as many as there are dimensions of pixels */
    struct lang_expr *lower[CONTRACT_MAP_RANK], *upper[CONTRACT_MAP_RANK];
    unsigned swizzle, interleave, promote; /* bytes */
    bool nan_fill;                         /* the type is a float's */
    struct span span;
};

struct contract_arg {
    struct contract_struct *fields; /* a struct by value; or NULL: */
    struct contract_map *map;       /* or NULL: */
    struct lang_symbol *sym;        /* a buffer, scalar, dimension or temp; or NULL: */
    struct lang_expr *expr;         /* computed, of .type */
    /* what is passed: scalar's type, u32 for a dimension; u64 address for a buffer */
    enum dtype type;
    bool is_messages; /* $messages: the address of the buffer for print() and assert() */
    struct span span;
};

/* Members in their order, which lie as in C. */
struct contract_struct {
    VEC(struct contract_arg) args;
};

/* An array in the dynamic part of shared memory, for reports. */
struct contract_array {
    const char *name;
    enum dtype type;
    struct lang_expr *at; /* bytes from the start of that part */
    /* a vector's lanes are the last; none: it reaches to the end */
    VEC(struct lang_expr *) extents;
};

/* A buffer that no user sees. */
struct contract_temp {
    struct lang_symbol *sym; /* SYM_BUFFER, inout; its name begins with $ */
    bool is_zero;            /* zeroed once; else undefined */
    bool each_run;           /* is_zero, and zeroed again before every other run of the launches */
    struct span span;
};

struct contract_launch {
    const char *entry;
    uint32_t step;
    struct lang_expr *when;                            /* NULL: always */
    struct lang_expr *grid[3], *block[3], *cluster[3]; /* NULL: 1 (cluster[0] NULL: no cluster) */
    struct lang_expr *shared;                          /* bytes, NULL: 0 */
    VEC(struct contract_array) arrays;                 /* in it, in the order of .at */
    VEC(struct contract_arg) args;
    struct span span;
};

/* What a print() or an assert() of the kernel says; kernels know it by its number in the list, from
 * 1. */
struct contract_message {
    bool is_assert;
    const char *format; /* print()'s; the condition of an assert() as text */
    const char *text;   /* assert()'s message; NULL: none */
    size_t ntype;       /* print()'s arguments, as they travel (data/message.h) */
    enum dtype *type;
    uint32_t line; /* in the spec */
    struct span span;
};

/* ---- programs
 *
 *     //@ kaio: 1
 *     //@ program: heat
 *     //@ params:
 *     //@   u: inout f32[h, w]
 *     //@   rounds: u32 = 100
 *     //@ temps:
 *     //@   $v: f32[h, w]
 *     //@ steps: |
 *     //@   repeat rounds {
 *     //@     heat_step(x: u, y: v) line 9
 *     //@     heat_step(x: v, y: u) line 10
 *     //@   }
 *
 * A document beside those of its kernels: what kaio-emit makes of a program (kaio-program(5)), and
 * what lib/run executes. Each step is a call of a kernel of the same module, with a value for each
 * of its parameters but those that have a default; a temp is named without its $. Loops are as they
 * were written, but what a while or an if asks is the call of a kernel whose one output is a u32[]
 * (not 0: go on).
 */

/* A dense part of a buffer: elements of the first dimensions, at most one range behind them, the
 * rest whole; or all of that in another shape. */
struct contract_view {
    struct lang_symbol *sym;      /* a parameter or temp of the program */
    const struct lang_view *part; /* the expressions in it are checked, integers */
    struct span span;
};
struct contract_actual {            /* an argument of a call */
    const struct spec_param *param; /* of the kernel that is called */
    struct contract_view view;      /* of a buffer */
    struct lang_expr *value;        /* of a scalar, converted to its type */
    struct span span;
};
struct contract_step {
    enum lang_step_kind kind; /* no STEP_EQUATION */
    struct span span;
    uint32_t line;                    /* of the program's source; 0: unknown */
    const struct contract *kernel;    /* STEP_CALL, STEP_WHILE, STEP_IF */
    VEC(struct contract_actual) args; /* in the order of the kernel's parameters */
    struct lang_symbol *asked;        /* STEP_WHILE, STEP_IF: the temp that holds the answer */
    /* STEP_FOR: an i64 that is a SYM_SCALAR of no parameter; id: how many loops with an index are
     * around this one */
    struct lang_symbol *index;
    struct lang_expr *low, *high; /* STEP_FOR; STEP_REPEAT: high */
    VEC(struct contract_step *) body, other;
};

struct contract {
    const char *kernel; /* the name, also of a program */
    const char *source, *target;
    bool is_program; /* it has steps and no launches: */
    VEC(struct contract_step *) steps;
    struct lang_steps written; /* the same as they are written, for contract_write() */
    VEC(struct spec_param) params;
    VEC(struct lang_symbol *) dims;    /* has_value for those fixed at emission */
    VEC(struct lang_symbol *) derived; /* from those */
    VEC(struct lang_expr *) require;
    /* No term of a sum goes through more roundings on its way into it (f32: of 2^-24 each): what
     * the bound of lib/ref may count on. NULL: the sums are added up in some order, term after
     * term. */
    struct lang_expr *depth;
    struct lang_expr *truncation, *products, *weights; /* struct spec_sums; NULL: 0 */
    VEC(struct contract_temp) temps;
    VEC(struct contract_launch) launches;
    VEC(struct contract_message) messages;
    struct lang_scope scope;
};

struct contract_file {
    VEC(struct contract *) v; /* a program stands behind the kernels that it calls */
};

/* text: the header without the "//@ " (ptx_module.header) as a source of its own whose name says
 * where it came from. NULL with errors in d. */
struct contract_file *contract_read(struct arena *a, const struct source *text, struct diags *d);
/* What the parts of a program's file are for: the program, or one kernel. NULL: there are several,
 * or none. */
struct contract *contract_main(const struct contract_file *f);
/* Appends one document, without "//@ "; a "---" before it when out holds one already. What is read
 * back is the same contract. */
void contract_write(const struct contract *c, struct buf *out);
/* A contract with the spec's parameters, dimensions and requirements and no launches. */
struct contract *contract_of_spec(struct arena *a, const struct spec *s, const char *target);
/* The temp of this name, with its $; NULL: there is none. */
struct lang_symbol *contract_find_temp(const struct contract *c, const char *name);
/* Adds a temp of rank extents. name: with its $, and no other temp's. */
struct lang_symbol *contract_add_temp(struct arena *a, struct contract *c, const char *name,
                                      enum dtype type, uint32_t rank,
                                      struct lang_expr *const *extent, bool is_zero);

#endif
