/* The one expression language: compute:, body:, reference:, functions:, grid expressions,
 * dimensions, requirements.
 *
 *   text -> lang_parse_*() -> AST with names as text -> lang_check_*() -> the same AST with types
 *     and symbols
 *
 * The lexer reads the YAML file's own bytes (a span of the source), so every token's position is
 * the file's. Layers above: spec (YAML) calls this; lower (PTX) and ref (the oracle) walk the
 * checked AST.
 */
#ifndef KAIO_LANG_LANG_H
#define KAIO_LANG_LANG_H

#include "base/diag.h"
#include "data/dtype.h"

/* ---- symbols --------------------------------------------------------------------------------- */

enum lang_symbol_kind {
    SYM_DIM,    /* a dimension: u32 in body:, grid: and launch expressions, i64 in compute: */
    SYM_SCALAR, /* a scalar parameter */
    SYM_BUFFER, /* a buffer parameter (in, out, inout) */
    SYM_TENSOR, /* compute: an intermediate */
    SYM_INDEX,  /* compute: an index variable, i64 */
    /* body: a local variable or a function's parameter; with rank > 0 a local array, const ones
     * being tables */
    SYM_LOCAL,
    SYM_SHARED, /* body: a variable (rank 0) or an array in the block's shared memory */
    SYM_FUNC,   /* functions: a device function */
};
enum lang_mode { MODE_IN, MODE_OUT, MODE_INOUT };

struct lang_symbol {
    enum lang_symbol_kind kind;
    const char *name;
    struct span span; /* where it is declared */
    enum dtype type;  /* scalar or element type */
    uint8_t lanes;    /* of a vector (f32x4: 4); 0: not one. An array's elements may be vectors. */
    enum lang_mode mode; /* buffers */
    bool is_const;       /* locals declared const */
    uint32_t rank;       /* buffers, tensors and arrays */
    /* The extents, i64: rank of them for buffers, tensors and arrays; local arrays' and most shared
     * ones' are constant (those of a shared array may use dimensions and scalars, and are then
     * known at launch). A SYM_INDEX runs to dims[0], exclusive, from low, or from 0 where low is
     * NULL; a reduction's written range may mention outer indices and read tensors. */
    struct lang_expr **dims;
    struct lang_expr *low;
    bool written;              /* SYM_INDEX: its range was written, not taken from a subscript */
    struct lang_equation *def; /* SYM_TENSOR and outputs: the equation that defines it */
    struct lang_func *func;    /* SYM_FUNC */
    struct lang_stmt
        *table;     /* SYM_LOCAL at the top of functions:, an array of constants: its S_DECL */
    uint32_t id;    /* dense number within its kind: params, dims, locals ... for side tables */
    bool has_value; /* SYM_DIM fixed by -D at emission, or derived from such alone */
    uint64_t value;
    struct lang_expr *of; /* SYM_DIM: what it is derived from (dims:); NULL: it is given */
    bool used;
    bool made; /* SYM_TENSOR: stands for a part of a notation; no text defines it */
};

/* ---- expressions ----------------------------------------------------------------------------- */

enum lang_expr_kind {
    E_INT,     /* ival (two's complement in type) */
    E_FLOAT,   /* fval */
    E_BOOL,    /* ival 0 or 1 */
    E_NAME,    /* sym */
    E_SPECIAL, /* special: threadIdx.x ..., multiprocessors (u32) */
    /* sym[args]; of a vector or an array of them with one subscript more: a lane, whose number is
     * constant when loops are unrolled. With pad: pad(sym[args], pad). In a body one argument will
     * do for any rank (flat). No argument: a buffer or tensor of rank 0, which is written as its
     * bare name. */
    E_INDEX,
    E_UNARY,  /* op args[0] */
    E_BINARY, /* args[0] op args[1]; operands already converted to a common type by the checker */
    E_COND,   /* args[0] ? args[1] : args[2] */
    E_CAST, /* args[0] converted to type; implicit ones are inserted by the checker (is_implicit) */
    E_CALL, /* call: a builtin (fn) or func */
    E_REDUCE, /* reduce over indices of args[0] */
    /* body: only */
    /* f32x4(a, b, c, d), or of one argument for all: lanes of type (is_implicit: that was not
     * written). Before checking also a list in braces, without lanes. */
    E_VECTOR,
    E_MEMBER,  /* args[0].x: lane ival of a vector; also an assignment's left side */
    E_ADDRESS, /* &args[0], an E_INDEX or a shared variable's E_NAME: only as an argument of what
                  takes one */
    E_STRING,  /* text: only the format of print() and the message of assert() */
};

/* order = ..., scope = ... of an atomic operation, an ordered load, a store or a fence. */
enum lang_order { ORDER_RELAXED, ORDER_ACQUIRE, ORDER_RELEASE, ORDER_ACQ_REL, ORDER_SEQ_CST };
enum lang_memory_scope { SCOPE_BLOCK, SCOPE_CLUSTER, SCOPE_GPU, SCOPE_SYSTEM };

enum lang_op {
    OP_NEG,
    OP_NOT /* ! */,
    OP_BITNOT,
    OP_PLUS,
    OP_MUL,
    OP_DIV,
    OP_MOD,
    OP_ADD,
    OP_SUB,
    OP_SHL,
    OP_SHR,
    OP_LT,
    OP_GT,
    OP_LE,
    OP_GE,
    OP_EQ,
    OP_NE,
    OP_AND /* & */,
    OP_XOR,
    OP_OR,
    OP_LAND,
    OP_LOR,
};

enum lang_reduce { RED_SUM, RED_PROD, RED_MAX, RED_MIN, RED_ANY, RED_ALL, RED_ARGMAX, RED_ARGMIN };

enum lang_special {
    SP_TID_X,
    SP_TID_Y,
    SP_TID_Z,
    SP_CTAID_X,
    SP_CTAID_Y,
    SP_CTAID_Z,
    SP_NTID_X,
    SP_NTID_Y,
    SP_NTID_Z,
    SP_NCTAID_X,
    SP_NCTAID_Y,
    SP_NCTAID_Z,
    SP_LANEID,
    SP_WARPID,
    SP_CLUSTERID_X,
    SP_CLUSTERID_Y,
    SP_CLUSTERID_Z,
    SP_CLUSTER_NCTAID_X,
    SP_CLUSTER_NCTAID_Y,
    SP_CLUSTER_NCTAID_Z,
    SP_MULTIPROCESSORS, /* the device's: no register, but a number that is known at launch */
    SP_COUNT,
};

/* Builtin functions: rows of lang/builtin.def: BUILTIN(NAME, "name", nargs min, nargs max, kind,
 * accuracy note). */
enum lang_builtin {
#define BUILTIN(NAME, text, lo, hi, kind) FN_##NAME,
#include "lang/builtin.def"
#undef BUILTIN
    FN_COUNT
};

struct lang_expr {
    enum lang_expr_kind kind;
    enum dtype type; /* after checking; DT_BOOL for conditions */
    uint8_t lanes;   /* of a vector; 0: not one. type is then its lanes' */
    struct span span;
    const char *text;      /* E_STRING, escapes resolved */
    enum lang_order order; /* E_CALL, where it has them */
    enum lang_memory_scope scope;
    struct span order_span, scope_span; /* as written; no src: the default */
    const char *name;                   /* E_NAME, E_INDEX, E_CALL before checking */
    size_t name_at; /* E_NAME, E_INDEX, E_CALL: where in the source the name begins */
    struct lang_symbol *sym;
    enum lang_op op;
    enum lang_special special;
    enum lang_builtin fn;   /* FN_COUNT when func is set */
    struct lang_func *func; /* E_CALL of a function of functions: */
    enum lang_reduce reduce;
    uint32_t nindex; /* E_REDUCE: the indices reduced over; before checking also E_CALL: those of a
                        notation, as in softmax[j](...) */
    bool anywhere;   /* E_REDUCE: lower found that its reads are in range whatever the conditions
                        around it say */
    struct lang_symbol **index;
    uint64_t ival;
    double fval;      /* after checking: a value of type */
    bool suffixed;    /* a literal that fixed its own type (1u, 2.0f, 1.0h ...) */
    bool is_implicit; /* E_CAST inserted by the checker */
    bool fast;        /* E_CALL: the hardware approximation (fast_exp, or math: fast) */
    /* E_CALL of f32: its result is rounded to 16 bits or fewer at once (lang/rounded.c has the
     * rule), so the variant made for that may be taken */
    bool rounded;
    bool to_f16; /* and to f16, with at most negation, abs() and ?: in between */
    uint32_t nargs;
    struct lang_expr **args;
    struct lang_expr *pad; /* E_INDEX; of type */
    uint32_t height;       /* 1 for a leaf; at most LANG_MAX_HEIGHT, so walkers may recurse */
};
enum { LANG_MAX_HEIGHT = 1000, LANG_MAX_NESTING = 200 };

/* ?:, && or ||: does the first argument decide whether the others are evaluated? */
bool lang_guards(const struct lang_expr *e);
/* Do both make the same of their operands and pads, of which there are as many? Integers are exact:
 * their types do not count, nor those of the operands. */
bool lang_same_node(const struct lang_expr *x, const struct lang_expr *y);

/* ---- compute: -------------------------------------------------------------------------------- */

/* sym[index...] = rhs. Index symbols have their extents in dims[0]. */
struct lang_equation {
    struct span span;
    struct lang_symbol *sym; /* an output or inout buffer, or an intermediate */
    uint32_t nindex;
    struct lang_symbol **index;
    struct lang_expr *rhs; /* of type sym->type (an implicit cast where the store converts) */
    /* reference: only: equations that define each other by recurrence share a component and come
     * one after the other; within a step (one value of the last index) they are evaluated in this
     * order. */
    uint32_t component;
    bool is_recurrence;
};

/* Equations in an order in which each comes after all that it reads. */
struct lang_equations {
    struct lang_equation **v;
    size_t n;
};

/* ---- body: ----------------------------------------------------------------------------------- */

enum lang_stmt_kind {
    S_BLOCK, /* body[] */
    S_DECL,  /* sym = rhs (NULL: no initialiser); arrays: sym = list, row by row, then zeros */
    /* lhs op= rhs: has_op and op; ++ and -- are += 1. rhs is already of the lhs's type unless
     * has_op: then lhs op rhs is computed in rhs->type and converted back to the lhs's. */
    S_ASSIGN,
    S_EXPR,  /* rhs, for its effect */
    S_IF,    /* cond, body[0], body[1] or NULL */
    S_FOR,   /* init_stmt, cond (NULL: forever), step, body[0] */
    S_WHILE, /* cond, body[0] */
    S_DO,    /* body[0], cond */
    S_BREAK,
    S_CONTINUE,
    S_RETURN, /* rhs of a function's return */
    S_SWITCH, /* cond, body[0]: an S_BLOCK with S_CASEs in it; falls through as in C */
    S_CASE,   /* rhs: the constant, or NULL for default */
};

struct lang_stmt {
    enum lang_stmt_kind kind;
    struct span span;
    struct lang_symbol *sym;
    struct lang_expr *lhs, *rhs, *cond;
    /* S_DECL of an array: its initialiser, flattened, NULL for zero; has_list for "= {}" */
    struct lang_expr **list;
    uint32_t nlist;
    bool has_list;
    bool has_op;
    enum lang_op op;
    struct lang_stmt *init, *step;
    struct lang_stmt **body;
    uint32_t nbody;
    uint32_t nlocal; /* the root of a checked body: its locals' ids are 0 .. nlocal-1 */
    uint32_t unroll; /* S_FOR, S_WHILE, S_DO: #pragma unroll N; UNROLL_FULL without N; 0: none */
};
#define LANG_UNROLL_FULL UINT32_MAX

struct lang_func {
    const char *name;
    struct span span;
    enum dtype result; /* DT_VOID: none */
    uint8_t result_lanes;
    uint32_t nparam;
    struct lang_symbol **param;
    struct lang_stmt *body; /* NULL before lang_check_func if it is lazy */
    bool checked;
    uint32_t nlocal;        /* the locals' ids, parameters first, are 0 .. nlocal-1 */
    struct span impure;     /* what makes it unfit for equations (a write, threadIdx); or no src */
    uint32_t weight, depth; /* calls in it when all is inlined, and how deep; both bounded */
    struct lang_func_private *priv;
};

/* ---- steps: ---------------------------------------------------------------------------------- */

/* What a program does, as it is written: names are text, and mean something only where the program
 * is known (program/program.h). Expressions are not checked yet. */

/* w[l, 0 .. n] as [m, k]: a buffer, or a part of one. Subscripts are elements or ranges from the
 * first dimension on; those that are missing are whole. */
struct lang_subscript {
    struct lang_expr *at;  /* the element, or where the range begins; NULL: at 0 */
    struct lang_expr *end; /* where the range ends, which it does not include; NULL: at the end */
    bool is_range;
};
struct lang_view {
    struct span span;
    const char *name;
    struct lang_subscript *sub;
    uint32_t nsub;
    bool is_shaped;
    struct lang_expr **extent; /* is_shaped: behind 'as' */
    uint32_t nextent;
};

/* NAME: value. A bare name is a view without subscripts, be it a buffer's or a number's. */
struct lang_argument {
    const char *name;
    struct span name_span;
    struct lang_view *view;  /* or NULL: */
    struct lang_expr *value; /* a number */
};

/* target, ... = kernel(NAME: value, ...) */
struct lang_call_step {
    const char *kernel;
    struct span kernel_span;
    struct lang_view **target;
    uint32_t ntarget;
    struct lang_argument *arg;
    uint32_t narg;
};

/* name[subscript, ...] = rhs. A subscript is an index, with a range or without, or what chooses an
 * element: a name may turn out to be either. */
struct lang_left {
    struct lang_symbol *index; /* or NULL: */
    struct lang_expr *at;
};
struct lang_equation_step {
    const char *name;
    struct span name_span;
    struct lang_left *left;
    uint32_t nleft;
    struct lang_expr *rhs;
    struct span rhs_span; /* all its text, brackets included */
};

enum lang_step_kind { STEP_CALL, STEP_EQUATION, STEP_FOR, STEP_REPEAT, STEP_WHILE, STEP_IF };

struct lang_step {
    enum lang_step_kind kind;
    struct span span;                   /* of its first line */
    struct lang_call_step call;         /* STEP_CALL; STEP_WHILE and STEP_IF without cond */
    struct lang_equation_step equation; /* STEP_EQUATION */
    struct lang_symbol *index;          /* STEP_FOR: runs from low to high, exclusive */
    struct lang_expr *low, *high;       /* STEP_REPEAT: high times */
    struct lang_expr *cond;             /* STEP_WHILE, STEP_IF; NULL: what the call gives */
    struct span cond_span;              /* all its text */
    uint32_t line;                      /* where it was written, in a launch contract; 0: here */
    struct lang_step **body, **other;   /* other: STEP_IF's else */
    uint32_t nbody, nother;
};

struct lang_steps {
    struct lang_step **v;
    uint32_t n;
};

/* ---- parsing --------------------------------------------------------------------------------- */

/* Names that stand for types (the spec's types:): everything after the lexer sees the type
 * itself. */
struct lang_types {
    struct lang_type {
        const char *name;
        enum dtype type;
        bool used; /* set by the lexer */
    } * v;
    size_t n;
};

/* Each parses the bytes of `text` (a span of its source) and reports errors in d; NULL on error. An
 * expression must end where the text ends. Nesting is bounded (200 levels): deeper is an error, not
 * a crash. types: NULL for none. */
struct lang_expr *lang_parse_expr(struct arena *a, struct span text, const struct lang_types *types,
                                  struct diags *d);
struct lang_stmt *lang_parse_body(struct arena *a, struct span text, const struct lang_types *types,
                                  struct diags *d);
bool lang_parse_steps(struct arena *a, struct span text, const struct lang_types *types,
                      struct lang_steps *out, struct diags *d);
/* "in f32[rows, cols / 2]" | "f32 = 1e-5": a parameter's declaration into sym (dims unresolved) and
 * the default (NULL: none). */
bool lang_parse_param(struct arena *a, struct span text, const struct lang_types *types,
                      struct lang_symbol *sym, struct lang_expr **value, struct diags *d);

/* ---- checking -------------------------------------------------------------------------------- */

/* A name is looked up here, and then in the scopes around this one (up). */
struct lang_scope {
    struct lang_scope *up;
    VEC(struct lang_symbol *) syms;
};
struct lang_symbol *lang_find(const struct lang_scope *s, const char *name);
/* Why a word can't be a name ("a type", "a word of the language"); NULL when it can. */
const char *lang_reserved(const char *name, const struct lang_types *types);
/* Is it what a notation is called, softmax and its like? Those are numbered: NULL past the last. */
bool lang_is_notation(const char *name);
const char *lang_notation_name(size_t i);
/* Is it one whose name nothing else has? mean and its like may be names of tensors, too. */
bool lang_is_notation_word(const char *name);
/* Is it what a builtin function, fast_ ones included, is called? */
bool lang_is_builtin(const char *name);

struct lang_options {
    const struct lang_types *types; /* for what is parsed here: equations and functions */
    /* compute: and reference: (true); body:, grid:, require: (false: dims are u32) */
    bool index_is_i64;
    bool allow_recurrence; /* reference: */
    bool fast_math;        /* math: fast */
    bool exact; /* what lang_eval_int() gets: what overflows its type stays an operation */
    bool grid;  /* grid:, which alone may be said by 'multiprocessors' */
    /* The checker marks each call whose result is rounded to 16 bits at once, since it may be less
     * exact. math: strict wants none marked. */
    bool mark_rounded;
    bool *rounded_calls; /* by builtin, FN_COUNT of them: was a call of it marked? NULL: unasked */
    /* Of a body: the block's extents, 0 where they are known only at launch. The analysis of what
     * differs between threads (uniform.c) knows warps by them. */
    uint32_t block[3];
    bool whole_rows; /* block[0] is a multiple of 32, be it known or not */
    /* lang_functions only parses; a function is checked when checked code first calls it, or by
     * lang_check_func (for a library of which little is used). */
    bool lazy_functions;
};

/* Resolves names, checks types, inserts conversions, folds constants. want = DT_VOID: any type. */
bool lang_check_expr(struct arena *a, struct lang_scope *scope, const struct lang_options *opt,
                     struct lang_expr *e, enum dtype want, struct diags *d);
/* A compute: or reference: text: parse and check, resolve index ranges, order by dependence; every
 * output (mode out or inout) of `params` must be defined exactly once. */
bool lang_equations(struct arena *a, struct span text, struct lang_scope *params,
                    const struct lang_options *opt, struct lang_equations *out, struct diags *d);
/* A body: kernel statements over params and functions. */
bool lang_check_body(struct arena *a, struct lang_scope *scope, const struct lang_options *opt,
                     struct lang_stmt *body, struct diags *d);
/* How a checked body is launched. */
struct lang_launch {
    struct lang_expr *const *grid, *const *block; /* three of each, NULL: 1 */
    struct lang_expr *const *require;
    size_t nrequire;
};
/* Warns of x[i] without 'i < n' where the grid covers more than the n elements. */
void lang_warn_unguarded(struct arena *a, const struct lang_stmt *body,
                         const struct lang_launch *launch, struct diags *d);
/* functions: definitions are added to the scope. Recursion is an error. */
bool lang_functions(struct arena *a, struct span text, struct lang_scope *scope,
                    const struct lang_options *opt, struct diags *d);

/* Checks a function now; true at once when it is checked already. */
bool lang_check_func(struct lang_func *f, struct diags *d);

/* ---- evaluating dimension expressions -------------------------------------------------------- */

/* Integer expressions over dimensions and integer scalars, evaluated exactly (128-bit inside); an
 * overflow, a division by zero or an unbound name is an error at the expression's span (d may be
 * NULL). Comparisons and && || ! ?: give 0 or 1. lookup returns false when the symbol has no value;
 * 'multiprocessors' is looked up as lang_multiprocessors. Floating scalars compare as doubles. */
extern const struct lang_symbol lang_multiprocessors;
typedef bool lang_lookup(void *ctx, const struct lang_symbol *sym, double *f, int64_t *i);
bool lang_eval_int(const struct lang_expr *e, lang_lookup *lookup, void *ctx, int64_t *value,
                   struct diags *d);
/* The same of an expression that may have fractions, in double precision. */
bool lang_eval_real(const struct lang_expr *e, lang_lookup *lookup, void *ctx, double *value,
                    struct diags *d);

/* The value of a checked integer expression that needs no launch: literals, and dimensions fixed by
 * -D. */
bool lang_const_int(const struct lang_expr *e, int64_t *value);

/* The elements of an array whose extents are all constant; false for another. */
bool lang_array_count(const struct lang_symbol *sym, uint64_t *n);

/* Does a function get its caller's array or shared variable itself for this parameter? */
bool lang_given_itself(const struct lang_symbol *param);

/* Prints an expression as source text (for contracts and messages). Checked or not; printing,
 * parsing and checking give the same expression again. Implicit casts are not shown. */
void lang_print_expr(const struct lang_expr *e, struct buf *out);
/* "[n, 2 * m]": a tensor's dimensions; "[]" of none. */
void lang_print_shape(const struct lang_symbol *t, struct buf *out);
/* "hq is 2 and hk is 4": the dimensions of fixed sizes that are in it, the first 8; "" of none. */
const char *lang_fixed_text(struct arena *a, const struct lang_expr *e);
/* An expression as a string in the arena. */
const char *lang_expr_text(struct arena *a, const struct lang_expr *e);
/* w[l, 0..n] as [m, k] */
void lang_print_view(const struct lang_view *v, struct buf *out);
/* Steps that are calls and loops as source text, indented by 2 columns a level. */
void lang_print_steps(const struct lang_steps *s, unsigned indent, struct buf *out);
/* "body:" statements as source text, indented by 4 columns a level. */
void lang_print_stmt(const struct lang_stmt *s, unsigned indent, struct buf *out);
/* "f32", "f32x4" */
const char *lang_type_name(struct arena *a, enum dtype t, uint8_t lanes);
const char *lang_builtin_name(enum lang_builtin fn);
const char *lang_special_name(enum lang_special sp);
/* Does a call of it do more than compute a value from its arguments: synchronise, exchange with
 * other threads, read a clock, change memory? Then it happens exactly once, where it is written. */
bool lang_builtin_acts(enum lang_builtin fn);
const char *lang_order_name(enum lang_order o);
const char *lang_memory_scope_name(enum lang_memory_scope s);
const char *lang_reduce_name(enum lang_reduce r);

#endif
