/* Private to the generator. Expressions and statements are made as text; what the generator knows
 * of a piece of text is its type, how strongly it binds and whether the checker would fold it. */
#ifndef KAIO_TESTS_KERNELS_GENERATE_INT_H
#define KAIO_TESTS_KERNELS_GENERATE_INT_H

#include "base/buf.h"
#include "data/dtype.h"
#include "kernels/generate.h"
#include "kernels/random.h"

/* Binding strength of a text, as in C. */
enum {
    BIND_COND,
    BIND_LOR,
    BIND_LAND,
    BIND_OR,
    BIND_XOR,
    BIND_AND,
    BIND_EQUAL,
    BIND_LESS,
    BIND_SHIFT,
    BIND_ADD,
    BIND_MUL,
    BIND_UNARY,
    BIND_PRIMARY
};

struct text {
    const char *s;
    int level;
    bool constant; /* made of literals */
};

/* An expression that was made, and how many variables there were. */
struct said {
    enum dtype type;
    size_t vars;
    struct text text;
};

struct var {
    const char *name;
    enum dtype type;
    bool fixed;    /* const, or a loop's counter: not to be assigned */
    uint8_t lanes; /* of a vector */
    uint32_t rank; /* of an array */
    uint32_t dim[2];
    bool moving; /* an array with indices that are no constants */
};

enum buffer_use {
    USE_READ, /* anywhere, by every thread */
    USE_OWN,  /* each thread has slots of its own */
    USE_WIDE, /* so too, 16 of them: [n, 16] */
    USE_SUM,  /* updated by all with one atomic operation */
    USE_DUMP  /* a slot for each variable, written in the end */
};
enum memory_act { ACT_UPDATE, ACT_LOAD, ACT_STORE };

struct gen_buffer {
    const char *name;
    enum dtype type;
    enum buffer_use use;
    const char *mode; /* "in", "out", "inout" */
    uint32_t rank;
    uint32_t dim[3];  /* USE_READ: extents; USE_OWN: dim[0] slots of each thread */
    unsigned op;      /* USE_SUM: which */
    int named;        /* USE_READ: the dimension that the first extent is, or -1 */
    bool slots_first; /* USE_OWN: [slots, n], not [n, slots] */
};

struct gen_func {
    const char *name;
    enum dtype result; /* DT_VOID: none */
    uint32_t nparam;
    enum dtype param[4];
    uint8_t lanes, param_lanes[4]; /* of vectors; lanes: the result's */
    uint32_t array; /* the first parameter is an array of so many elements, which it may change */
    bool meets;     /* threads meet in it */
    bool stores;    /* to the element of the thread whose number is the last argument */
};

struct gen {
    struct arena *a;
    struct random r;
    struct buf *out; /* what is being written: the body or the functions */
    unsigned indent, sm;
    size_t scope; /* the first variable of this block */
    VEC(struct var) vars;
    VEC(struct said) said;
    VEC(struct gen_buffer) buffers;
    VEC(struct gen_func) funcs;
    VEC(struct var) scalars;
    VEC(struct var) tables; /* at the top of functions: */
    VEC(const char *) scalar_values;
    VEC(uint32_t) dims; /* d0, d1 ... */
    uint32_t block[3], grid[3], cluster[3], threads, n;
    unsigned names;    /* given so far */
    unsigned nodes;    /* of expressions, in all */
    unsigned heavy;    /* calls of library functions that may still be made */
    unsigned trips;    /* product of the trip counts of the loops around */
    unsigned loops;    /* around, inside of this function */
    bool in_func;      /* no threadIdx, no own elements */
    enum dtype result; /* of the function */
    enum dtype
        dynamic;   /* the elements of the shared array without a size; DT_VOID: there is none */
    bool together; /* threads meet: all of them are there, and none returns early */
    bool agreed;   /* all threads of the block come by here */
};

/* ---- generate.c ---- */
const char *gen_name(struct gen *g, const char *stem);
bool gen_one_in(struct gen *g, unsigned n);
unsigned gen_below(struct gen *g, unsigned n);
void gen_line(struct gen *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
struct var *gen_add_var(struct gen *g, const char *name, enum dtype t, bool fixed);
/* Only the first n variables are left. */
void gen_forget(struct gen *g, size_t n);
/* Can vars.v[i] be named here, or does another hide it? */
bool gen_is_visible(const struct gen *g, size_t i);
/* The name of a variable of an outer block, which a new one may hide; NULL: there is none. */
const char *gen_outer_name(struct gen *g);
/* A buffer of that use and type, made when there is none. */
struct gen_buffer gen_buffer(struct gen *g, enum buffer_use use, enum dtype t);

/* A buffer for atomic updates by all threads with that operation only. */
struct gen_buffer gen_sum(struct gen *g, enum dtype t, unsigned op);

/* ---- generate_expr.c ---- */
bool gen_is_arithmetic(enum dtype t);      /* 32 bits or more: what operators make */
enum dtype gen_scalar_type(struct gen *g); /* of variables */
enum dtype gen_int_type(struct gen *g);
enum dtype gen_promoted(enum dtype t);
/* A type that t and it together are t of: t itself, or a weaker one. */
enum dtype gen_weaker_type(struct gen *g, enum dtype t);
/* An expression whose type is t. */
struct text gen_expr(struct gen *g, enum dtype t, unsigned depth);
/* One that no literal alone makes up. */
struct text gen_variable(struct gen *g, enum dtype t);
/* One of a type that is converted to t silently. */
struct text gen_assignable(struct gen *g, enum dtype t, unsigned depth);
struct text gen_literal(struct gen *g, enum dtype t);
struct text gen_condition(struct gen *g, unsigned depth);
/* An integer expression from 0 to n - 1. */
const char *gen_index(struct gen *g, uint32_t n, unsigned depth);
const char *gen_own(struct gen *g, struct gen_buffer b); /* "y[tid, 3]" */
const char *gen_wrap(struct gen *g, struct text t, int lowest);
struct text gen_text(const char *s, int level);
struct text gen_leaf(struct gen *g, enum dtype t);
/* An integer that is not 0: of type t after the usual conversions with t. */
struct text gen_divisor(struct gen *g, enum dtype t, unsigned depth);

/* ---- generate_call.c ---- */
struct text gen_call_of(struct gen *g, const char *name, unsigned n, const struct text *x);
struct text gen_builtin(struct gen *g, enum dtype t, unsigned depth);  /* of an arithmetic type */
struct text gen_bits_of(struct gen *g, enum dtype t, unsigned depth);  /* as_u32() and its like */
struct text gen_function(struct gen *g, enum dtype t, unsigned depth); /* of the kernel's */
/* A call of a function of the math library, by its number (modulo how many there are). */
struct text gen_library(struct gen *g, unsigned number, enum dtype t, unsigned depth);
const char *gen_call(struct gen *g, const struct gen_func *f, unsigned depth);

/* ---- generate_data.c ---- */
bool gen_is_vector(enum dtype t, unsigned lanes);
enum dtype gen_vector_type(struct gen *g, uint8_t *lanes);
const char *gen_type_name(struct gen *g, enum dtype t, unsigned lanes);
struct text gen_vector(struct gen *g, enum dtype t, unsigned lanes, unsigned depth);
/* A lane or an element, a scalar of the variable's type. */
const char *gen_part(struct gen *g, const struct var *v);
/* A variable that has parts of type t, or of any (DT_VOID); NULL: there is none. */
const struct var *gen_find_part(struct gen *g, enum dtype t, bool to_change);
void gen_table(struct gen *g);
/* Calls a function that takes an array; false: there is none. */
bool gen_array_call(struct gen *g, unsigned depth);
void gen_data(struct gen *g, unsigned depth); /* a statement */

/* ---- generate_meet.c ---- */
void gen_meeting(struct gen *g);
void gen_meeting_function(struct gen *g);
const char *gen_agreed(struct gen *g); /* a condition */

/* ---- generate_shared.c ---- */
void gen_atomic(struct gen *g); /* a statement */
void gen_shared(struct gen *g); /* the same, where all threads of the block come by */

/* ---- generate_stmt.c ---- */
void gen_statements(struct gen *g, unsigned n, unsigned depth);

#endif
