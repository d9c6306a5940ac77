/* Private to lib/ref: equations compiled to a tree of nodes that are evaluated for LANES elements
 * at a time.
 *
 * Every node has a slot of its own in the frame, so a node's result stays valid until the node is
 * evaluated again. Index variables are slots too, written by the loops. A mask says which lanes
 * count: LANE_OFF lanes hold garbage, and an error in a LANE_MAYBE lane (the side of an undecided
 * condition) only makes its value unknown.
 */
#ifndef KAIO_REF_PROGRAM_H
#define KAIO_REF_PROGRAM_H

#include "ref/ref.h"

#include <math.h>

enum { LANES = 64, MAX_RANK = 16 };
enum { LANE_OFF = 0, LANE_ON = 1, LANE_MAYBE = 2 };

struct vec {
    union {
        double v[LANES];
        int64_t i[LANES];
    };
    double e[LANES];
} __attribute__((aligned(64)));

struct node;
struct frame;
typedef void node_eval(struct frame *f, const struct node *n, const uint8_t *mask);

/* What one rounding of a type may do. */
struct rounding {
    double unit;  /* relative */
    double tiny;  /* absolute: half the smallest subnormal */
    double limit; /* the largest finite value */
    bool f32;     /* results must fit 24 bits to be exact */
};

struct node {
    node_eval *eval;
    const struct lang_expr *src;
    enum dtype type; /* DT_VOID for a value kept unrounded */
    uint32_t slot;
    uint32_t nargs;
    struct node **args;
    struct rounding round;
    bool reciprocal; /* a quotient that may be a product with the divisor's reciprocal */
    bool rounded;    /* the operation stands in an explicit conversion to its own type */
    /* a product that may become part of an fma, so that its overflow may not happen */
    bool contracts;
    enum lang_op op;       /* integer and comparison nodes */
    enum dtype from;       /* conversions: the operand's type */
    struct tensor *tensor; /* loads */
    struct node *pad;
    const struct func *func;
    double ulp; /* functions: the documented error */
    bool half;  /* may be the variant for 16-bit results, which is exact of no argument */
    struct reduce *reduce;
    unsigned lane; /* of philox() */
    /* ref_note_loops(): does a loop of that sum vary it? NULL: not noted */
    const struct reduce *noted;
    bool varies;
};

/* Anything that can be subscripted. */
struct tensor {
    const struct lang_symbol *sym;
    enum dtype type;
    uint32_t rank;
    uint64_t *shape, count;
    /* What is evaluated of it at a time: n elements, those from lo on, len of them in each
     * dimension; and where the elements lie in v, i, e: the sum of index times stride, less base.
     * These hold all of it, or (is_part) just what is evaluated. */
    uint64_t *lo, *len, *stride, base, n;
    bool is_part;
    bool is_before;      /* a parameter's contents before the launch */
    const void *data;    /* its elements, where they are given; else: */
    struct equation *eq; /* defines it */
    double *v, *e;       /* dense */
    int64_t *i;
    bool store_rounds;  /* an output: other equations may see the stored or the unstored value */
    struct table *memo; /* on demand: per thread, indexed by id */
    uint32_t id;
};

struct equation {
    const struct lang_equation *src;
    struct tensor *tensor;
    uint32_t *index_slot; /* one per left-hand index */
    struct node *rhs;
    uint32_t first_index, nindex; /* slots of all its index variables, reductions' too */
    bool wanted;
    uint32_t component; /* equations with the same number are a recurrence */
    /* on demand it is evaluated where it is read, and not kept: it reduces nothing, and reads no
     * other of the kind */
    bool direct;
    bool recurrence, pointwise; /* pointwise: reads itself at its own leading indices only */
};

struct loop {
    uint32_t slot;
    struct node *lo, *hi; /* lo NULL: 0 */
};
struct acc;
struct product;
struct reduce {
    enum lang_reduce kind;
    bool is_int; /* of the body */
    uint32_t nloop;
    struct loop *loop;
    struct node *body;
    struct rounding round;
    struct spec_sums sums;
    uint32_t acc; /* index of its accumulator in the frame */
    bool scaled; /* its terms have factors that may be taken out of the sum: those that its loops do
                    not vary */
    bool rescaled; /* its terms have exponentials of differences from a maximum as factors */
    /* the kernel, which multiplies by tensor cores, may round that maximum, and lose exponentials
     * below 2^-126 */
    bool rough;
    struct product *product; /* its values, while those of its equation are computed; or NULL */
    uint32_t first_index,
        nindex; /* slots of the equation it is in: copied when lanes run along the last loop */
    /* its values are kept: of the indices around it, it depends on those in these slots alone */
    bool keeps;
    uint32_t nkey, key[REF_KEYS];
    /* Its terms, and where its range begins (REF_GROWS) or ends, depend on the indices in these
     * slots alone; where it ends, or begins, on others, too. */
    enum { REF_ANY_RANGE, REF_GROWS, REF_SHRINKS } so_far;
    uint32_t nterm_key, term_key[REF_KEYS];
};

/* Do parts lack nothing of factors whose product is short? */
static inline bool ref_has_whole_parts(const struct spec_sums *s)
{
    return s->products % 2 == 0;
}

struct reduction {
    struct equation *eq;
    struct reduce *r;
};

struct program {
    struct arena *arena;
    const struct ref_input *in;
    struct spec_sums sums;
    VEC(struct tensor *) tensors;
    VEC(struct equation *) equations;
    VEC(struct reduction) reductions;
    VEC(struct node *) constants; /* filled once per frame */
    VEC(double) constant_v;
    VEC(int64_t) constant_i;
    uint32_t nslot, nacc;
    struct diags *d;
};

/* One thread's working state. */
struct frame {
    struct program *p;
    struct vec *slot;
    struct acc *acc;
    struct keeps *kept;    /* by accumulator; those of a reduction that keeps none stay empty */
    struct so_far *so_far; /* the same */
    struct table **memo;   /* on demand: one table per tensor; NULL in dense mode */
    struct equation *eq;   /* being evaluated */
    uint64_t operations;
    bool failed;
    struct span fail_span;
    char fail[400];
    const volatile int *interrupted;
};

static inline struct vec *node_out(struct frame *f, const struct node *n)
{
    return &f->slot[n->slot];
}
static inline const struct vec *node_arg(struct frame *f, const struct node *n, uint32_t k,
                                         const uint8_t *mask)
{
    const struct node *a = n->args[k];
    if (a->eval)
        a->eval(f, a, mask);
    return &f->slot[a->slot];
}
static inline bool mask_any(const uint8_t *m)
{
    uint64_t w, any = 0;
    for (int k = 0; k < LANES; k += 8) {
        memcpy(&w, m + k, 8);
        any |= w;
    }
    return any != 0;
}

/* compile.c: adds the equations of the oracle to p. */
bool ref_compile(struct program *p, struct diags *d);
struct rounding ref_rounding(enum dtype t);

/* needed.c: by equation of the oracle, whether it is needed for those that are wanted. */
const bool *ref_needed(const struct program *p);

/* The first error of an evaluation; later ones are dropped. */
void ref_fail(struct frame *f, struct span s, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* arith.c: floats. */
node_eval eval_fadd, eval_fsub, eval_fmul, eval_fdiv, eval_fneg, eval_ffma, eval_fsqrt;
node_eval eval_fmin, eval_fmax, eval_fabs, eval_fclamp, eval_frelu, eval_ffloor, eval_tf32,
    eval_tf32_even, eval_tf32_cut;
node_eval eval_fcompare, eval_fcond, eval_isnan, eval_isinf;

/* c ? a : b, the sides evaluated in the lanes that may take them: for eval_fcond and eval_icond. */
struct sides {
    const struct vec *cond, *yes, *no;
};
struct sides eval_sides(struct frame *f, const struct node *n, const uint8_t *mask);
/* Brings v, e into the range of the type: infinite when certainly too large, unknown when
 * perhaps. */
void ref_range(const struct rounding *r, double *v, double *e);
/* (v, e) widened to cover (w, f). */
void ref_hull(double *v, double *e, double w, double f);
void ref_hull_int(int64_t *v, double *e, int64_t w, double f);

/* func.c: transcendental functions. NULL when fn is none. */
const struct func *ref_func_find(enum lang_builtin fn);
/* accuracy.c: the error of fn in ulp of the exact result, for type t. */
double ref_func_ulp(enum lang_builtin fn, enum dtype t);
/* The error in ulp of f32 of fn's variant for results that are rounded to 16 bits at once; 0: there
 * is none. */
double ref_half_ulp(enum lang_builtin fn);
double ref_between_ulp(enum lang_builtin fn); /* 0: the same as elsewhere */
/* The error of the hardware's approximation, rel |y| + abs + absx |x|, after the argument's own of
 * arg |x|; NULL when there is none, and the accurate function is taken. */
struct fast_error {
    double rel, abs, absx, arg;
};
const struct fast_error *ref_fast_error(enum lang_builtin fn);
node_eval eval_func1, eval_func2, eval_random;

/* integer.c: integers, bools and conversions. */
node_eval eval_ibinary, eval_iunary, eval_icompare, eval_icond, eval_logic, eval_not;
node_eval eval_ifunc, eval_bitcast;
node_eval eval_int_to_float, eval_float_to_int, eval_int_to_int, eval_float_to_float;
node_eval eval_int_to_bool, eval_float_to_bool;
int64_t ref_wrap(enum dtype t, int64_t v);

/* load.c: subscripts. */
node_eval eval_load;
void ref_tensor_store(struct tensor *t, struct frame *f, uint64_t flat, const struct vec *v,
                      int lane);
/* Sets what is evaluated: all of t. */
void ref_tensor_all(struct tensor *t);
/* Or a window of it, after lo and len were set; in: v, i and e hold just this. */
void ref_tensor_window(struct tensor *t, bool is_part);
/* The element of number `at` in the window, among all. */
uint64_t ref_tensor_flat(const struct tensor *t, uint64_t at);

/* eval.c: false when there is no memory. */
bool ref_frame_open(struct frame *f, struct program *p, bool on_demand);
void ref_frame_close(struct frame *f);

/* What is known of a sum's terms. */
struct ref_sum {
    double s, c;    /* their sum, and what that lacks */
    double m, up;   /* the sum of their magnitudes, errors included, and of the positive ones */
    double es;      /* the sum of their errors */
    double own;     /* the error of s + c itself, where it is not small beside the bound */
    double quantum; /* all are multiples of it; 0: not known to be exact */
    uint64_t n;     /* those that are not zero */
    double far; /* what the exponents of terms with a subnormal factor may stand for; 0: there is
                   none */
    uint64_t terms; /* all */
};

/* reach.c: what the terms of sum r are multiplied with by factors of n that no loop of r varies, as
 * a magnitude, in a lane in which n was evaluated. */
double ref_scale(const struct frame *f, const struct reduce *r, const struct node *n, int lane);
/* Does a loop of r vary n? */
bool ref_loop_varies(const struct reduce *r, const struct node *n);
/* Notes the answer for all nodes of r's term that ref_scale() asks about, once for each term. */
void ref_note_loops(const struct reduce *r, struct node *n);
/* The magnitude of n, a factor of a sum's term, as large as the exponents with which tensor cores
 * align it may stand for: a subnormal factor has the exponent of its type's smallest normal number.
 * *raised: that is more than its own. Evaluated in this lane before. */
double ref_reach(const struct frame *f, const struct reduce *r, const struct node *n, int lane,
                 bool *raised);

/* rescale.c. Its second argument, if there is one: its first without the exponentials. */
node_eval eval_rescaled;

/* Integers up to this are exact. */
static inline double ref_precision(const struct reduce *r)
{
    return r->round.f32 ? 0x1p24 : 0x1p53;
}

/* sum.c */
void ref_sum_result(const struct reduce *r, const struct ref_sum *s, double *v, double *e);

/* reduce.c */
struct acc *ref_acc_new(uint32_t n); /* by calloc; NULL: no memory */
node_eval eval_reduce;
node_eval ref_reduce; /* without what is kept */
/* May the body at index got be the extreme over the reduction's range? The outer indices are in
 * lane 0. */
bool ref_reduce_accepts(struct frame *f, const struct node *n, int64_t got);

/* once.c: what n reductions have kept; NULL: no memory. */
struct keeps *ref_keeps_new(uint32_t n);
void ref_keeps_free(struct keeps *k, uint32_t n);
/* A reduction that keeps its values, where they are there already. */
node_eval ref_reduce_once;
/* Decides whether n, a reduction inside of so many indices, keeps its values, and by which
 * indices. */
void ref_reduce_keys(struct arena *a, const struct program *p, const struct equation *eq,
                     const struct node *n, uint32_t around);

/* so_far.c: what n reductions have gathered; NULL: no memory. */
struct so_far *ref_so_far_new(uint32_t n);
void ref_so_far_free(struct so_far *t, uint32_t n);

/* eval.c: evaluates eq for n <= LANES elements given by their numbers in what is evaluated of its
 * tensor, and stores them. */
void ref_equation_batch(struct frame *f, struct equation *eq, const uint64_t *flat, int n);
/* Computes them without storing them: the values are in lanes 0 .. n - 1 until eq is evaluated
 * again. */
const struct vec *ref_equation_value(struct frame *f, struct equation *eq, const uint64_t *flat,
                                     int n);
/* load.c calls this in on-demand mode: makes the elements present. */
void ref_demand(struct frame *f, struct tensor *t, const uint64_t *flat, int n);

/* table.c: a hash table from flat index to value, for on-demand evaluation. */
struct entry {
    uint64_t key;
    union {
        double v;
        int64_t i;
    };
    double e;
};
struct table;
struct table *ref_table_new(void);
void ref_table_free(struct table *t);
void ref_table_clear(struct table *t);
struct entry *ref_table_find(struct table *t, uint64_t key);
struct entry *ref_table_add(struct table *t, uint64_t key); /* NULL: no memory */
size_t ref_table_bytes(const struct table *t);

#endif
