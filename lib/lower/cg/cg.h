/* The code generator's working state, shared by the strategies. Private to lib/lower.
 *
 * A value is an operand (a register or an immediate) with the language's type. How a type sits in
 * registers:
 *   f64 %fd, f32 %f; f16 bf16 %h (their bits), e4m3 e5m2 %rs (their bits)
 *   i64 u64 %rd; every narrower integer in %r, sign- or zero-extended to 32 bits
 *   bool: a predicate; in memory a byte 0 or 1
 * An i64 index is mostly known to fit 32 bits: it then stays in a %r with `narrow` saying how it
 * extends, and only what needs 64 bits (addresses) widens it, so that arithmetic stays exact and
 * cheap.
 *
 * Pure instructions are value-numbered: the same operation on the same operands gives the same
 * register, within the region that the first one dominates (cg_scope_open/close). Registers that
 * are assigned more than once (locals, loop counters, accumulators) carry a version that every
 * assignment advances.
 */
#ifndef KAIO_LOWER_CG_H
#define KAIO_LOWER_CG_H

#include "lang/launch.h"
#include "lower/cg/inspect.h"
#include "lower/lower.h"
#include "spec/contract.h"

enum cg_narrow { CG_FULL, CG_U32, CG_S32 };

struct cg_val { /* it is passed by value: kept small */
    enum dtype type : 8;
    enum cg_narrow narrow : 8; /* 64-bit integer types only: held in 32 bits */
    /* A vector: its lanes, of the type; op means nothing. Only what says so takes one. */
    uint8_t lanes;
    struct ptx_operand op;
    const struct cg_val *lane;
};

enum { CG_KEY_MAX = 10 }; /* operands of a numbered instruction */
struct cg_number {
    uint32_t hash;
    uint32_t first; /* its key in key_words */
    uint32_t nword;
    int32_t next; /* index + 1 of the next in the bucket */
    int32_t reg;
};
/* Memory that entries are generated in, one after the other: what grows side by side would be
 * moved, and leave twice its size behind. Most have less: memory that is not used costs nothing. */
struct cg_spare {
    struct ptx_func *func;      /* the latest, whose items are there, too; NULL: there is none */
    VEC(struct ptx_item) items; /* of those before */
    VEC(struct ptx_reg) regs;
    VEC(struct cg_number) numbers;
    VEC(uint32_t) key_words;
};
enum { CG_ITEMS = 1 << 14, CG_NUMBERS = CG_ITEMS, CG_KEY_WORDS = 8 * CG_ITEMS };
enum { CG_INTERNED = 1 << 10 };
/* Texts are compared by 8 bytes from each end, 8 from the middle, and their number. Texts of 8 to
 * 24 bytes that agree in these are the same. */
struct cg_brief {
    uint64_t first, middle, last;
    size_t n;
};
/* A mnemonic, or what else values are known by. */
struct cg_text {
    const char *text; /* NULL: there is none */
    struct cg_brief brief;
    struct ptx_inst form; /* what it is with .noperand operands; 0: not asked for yet */
};
enum { CG_BUCKETS = 1 << 14 };

/* One lane of a vector or element of an array that is kept in registers. */
struct cg_cell {
    struct cg_val val;
    bool is_set;     /* has a value */
    bool is_mutable; /* val.op is a register that assignments write */
};

/* A register that is another one plus a constant. */
struct cg_sum {
    int32_t base;
    uint32_t version; /* of base, when it was added */
    int64_t add;
};

/* A register that is `bits` bits of a word from bit `at` on, zero- or sign-extended. */
struct cg_part {
    uint32_t bits; /* 0: it is none */
    uint32_t at;
    int32_t word;
};

/* The value that a symbol stands for just now. The symbol is an index, a local or a function's
 * parameter. */
struct cg_binding {
    const struct lang_symbol *sym;
    struct cg_val val;
    bool is_mutable; /* val.op is a register that assignments write */
    /* Vectors and arrays in registers have a cell for each lane of each element. An array that a
     * function was given shares its caller's. */
    struct cg_cell *cell;
    uint32_t ncell;
    const struct lang_symbol
        *array;                /* an array: the one declared, where sym is a function's parameter */
    const struct ptx_var *var; /* an array in local memory */
    const struct lang_stmt *table; /* an array of constants: its declaration */
};

/* Arrays in memory: where they are (place.c). */
enum cg_space { CG_GLOBAL, CG_SHARED, CG_LOCAL, CG_CONST };
struct cg_variable {
    const struct lang_symbol *sym;
    enum cg_space space;
    struct ptx_var *var;  /* NULL until needed */
    bool is_dynamic;      /* in the dynamic part of shared memory, at: */
    int64_t offset;       /* bytes, if not < 0 */
    struct lang_expr *at; /* else as the launch computes it */
};

/* A parameter of the entry, made when first used. */
struct cg_param {
    const struct lang_symbol *sym; /* NULL: computed at launch, or hidden */
    struct lang_expr *expr;        /* a u64 computed at launch; or NULL */
    const char *name;              /* of a hidden one in the contract */
    bool hidden;
    struct contract_map *map; /* it is a tensor map */
    uint32_t order;           /* as declared; computed ones last */
    struct ptx_var *var;
    struct cg_val val;
};

/* A loop that is being generated: which registers vary in it (address.c). */
struct cg_nest {
    struct cg_nest *up;
    unsigned depth; /* the outermost: 1 */
    int32_t first;  /* the first register made in it */
    VEC(int32_t) assigned;
};

/* Where an element lies: at a register's or a variable's address, and offset bytes on. */
struct cg_place_of {
    enum cg_space space;
    int32_t
        base; /* address register, of 32 bits for shared and local memory, else of 64; -1: var */
    const struct ptx_var *var;
    int64_t offset;
    struct cg_val nibble; /* 4-bit types: 0 or 1 */
    const char *order;    /* of an ordered load or store: ".acquire.gpu"; else NULL */
    const char *cache;    /* of words that are loaded: cg_read_once(), cg_read_again(); else NULL */
    bool has_policy;
    int32_t policy; /* with .L2::cache_hint, a register */
};

/* Where an assignment goes. */
struct cg_target {
    enum dtype type;
    uint8_t lanes;
    struct cg_cell *cell; /* NULL: memory */
    struct cg_place_of at;
};

/* Where break, continue and return go. */
struct cg_loop {
    struct cg_loop *up;
    uint32_t exit, next;
    bool exit_used, next_used;
    bool is_switch; /* continue is for the loop around it */
};
struct cg_return {
    const struct lang_func *func;
    uint32_t label;
    bool label_used;
    bool has_value;
    struct cg_val value; /* the result; of mutable registers once label_used */
    struct cg_target into;
    const struct lang_stmt *last; /* a return here needs no jump */
};

/* A call of a function of the spec's. */
struct cg_site {
    struct cg_site *up;
    const char *func;
    uint32_t line, column;
};
struct cg_inlined {
    VEC(const char *) v;
};

/* An intermediate that has a place in memory, for later launches. */
struct cg_home {
    const struct lang_symbol *sym;  /* the intermediate; or an output that later stages read */
    const struct lang_symbol *temp; /* where it is; the output itself */
    bool is_stored;                 /* an earlier stage has */
};

/* A reduction that has been made an intermediate of its own, and the read of that which stands for
 * it. */
struct cg_outlined {
    const struct lang_expr *reduce, *read;
};

/* Which equations reduce, looking through intermediates: as long as no other is stored or
 * outlined. */
struct cg_reduces {
    const struct lang_equation *eq;
    bool reduces;
};
struct cg_reducing {
    VEC(struct cg_reduces) v;
};

/* What the largest is asked of: different ones, as the launch computes them. */
struct cg_largest {
    VEC(struct lang_expr *) v;
};

struct cg {
    struct arena *a;
    struct diags *d;
    const struct ptx_target *target;
    const struct lower_options *opt;
    struct lower_kernel *report; /* NULL: not wanted */
    const struct spec *spec;
    struct spec *const *specs; /* all of the module */
    size_t nspecs;
    uint32_t file;     /* the spec's number among the .file directives */
    bool lines, calls; /* .loc is wanted; it also names where functions are called */
    struct contract *contract;
    struct ptx_module *module;
    struct ptx_func *func;
    struct ptx_builder b;
    struct cg_spare *spare;
    bool failed;
    uint32_t step;               /* of the launches that are made now */
    struct cg_largest sum_depth; /* lower_depth() */
    bool depth_unknown;
    struct cg_largest sum_truncation, sum_products; /* of none: 0 */
    bool depth_told; /* lower_depth() was called since this was cleared */
    VEC(struct cg_home) homes;
    VEC(struct cg_outlined) outlined;
    const struct lang_expr
        *guarded;              /* inspect_guarded_reduction() of the first equation that has one */
    VEC(const char *) entries; /* names that stages have */
    /* The sizes for which the launches so far are all; NULL: all sizes. For the others there are
     * more, while is_rest. */
    struct lang_expr *covered;
    bool is_rest;
    struct cg_reducing *reducing;

    VEC(struct cg_param) params;
    /* parameter loads and special registers, put in front by cg_end */
    VEC(struct ptx_item) prologue;
    VEC(uint32_t) prologue_order;
    int32_t sreg[SP_COUNT]; /* register of each special, -1 = not read yet */
    /* block.c: shared memory for reductions over the block (NULL until needed), the area whose turn
     * it is, and the sum of the addresses of both */
    struct ptx_var *area_var;
    int32_t area_turn, area_sum;
    uint32_t reserved; /* the static shared memory that they take, once that is known */

    VEC(struct cg_number) numbers;
    VEC(uint32_t) key_words;
    struct cg_text *interned; /* CG_INTERNED of them, hashed */
    uint32_t nfull;           /* texts that found no room among them */
    int32_t *bucket;          /* CG_BUCKETS: index + 1 of the latest entry, 0 = none */
    VEC(struct cg_sum) sums;
    VEC(uint32_t) sum_of; /* by register: 1 + which of these it is; 0: none */
    VEC(struct cg_part) parts;
    VEC(uint32_t) version; /* by register; 0 = assigned once */
    uint32_t clock;        /* the last version given */

    VEC(struct cg_binding) bindings;
    uint32_t bound; /* how often something was bound: a node that is met again before the next time
                       stands for the same */
    VEC(const void *) kept; /* what is numbered beside registers: cg_remember() has the index */
    /* locals that branches or loops assign: they need a register */
    VEC(const struct lang_symbol *) assigned;
    VEC(const struct lang_func *) inspected;
    VEC(const struct lang_expr *) explained; /* calls */
    /* A call and a reduction of this spec that keep strategies away (schedule.c). */
    const struct spec *obstacles_of;
    const struct lang_expr *call; /* one that is not known by what it returns */
    const char **passed; /* why the last choice left each strategy, by its number (schedule.c) */
    VEC(struct cg_variable) variables;
    struct ptx_var *dynamic;        /* the module's dynamic shared memory */
    struct lang_expr *shared_bytes; /* the bytes of it that the launch needs, NULL: none */
    /* Local arrays whose index is not constant somewhere: found while generating, which then begins
     * again. */
    VEC(const struct lang_symbol *) indexed;
    bool again;
    uint32_t rounds; /* of unrolled loops, so far */
    struct library *library;
    uint64_t block[3];    /* threads, 0 where not constant */
    struct cg_nest *nest; /* the innermost loop */
    /* Loads stay before barriers that they are written before: ptxas takes ld.global.nc to where
     * its result is used. */
    bool keeps_loads;
    VEC(unsigned)
    depth_of; /* by register: 1 + the depth of the innermost loop that it varies in; 0: not known */
    struct cg_loop *loop;
    struct cg_return *ret;
    uint32_t exit; /* the entry's end */
    bool exit_used;
    bool dead;                      /* nothing reaches this point */
    const struct lang_expr *unused; /* a call whose value is not used */
    bool in_body;                   /* body: buffers may change between reads */
    bool contract_fma;
    bool fast; /* math: fast */
    /* sums are the tensor cores', so that no bits are promised: of what is rounded to 16 bits at
     * once the hardware's approximations may be a part */
    bool tensor;
    unsigned depth;             /* of inlining */
    uint32_t line;              /* of the last .loc or annotation */
    struct cg_site *site;       /* the calls that are being inlined, innermost first */
    struct cg_inlined *inlined; /* the functions that .loc names, of the whole module */

    /* A strategy that has elements in registers already answers reads of tensors here. False: not
     * its. */
    bool (*read)(struct cg *g, const struct lang_expr *e, struct cg_val *v);
    /* They answer reductions, and quotients with the operands x and y, in the same way. */
    bool (*reduced)(struct cg *g, const struct lang_expr *e, struct cg_val *v);
    bool (*quotient)(struct cg *g, struct cg_val x, struct cg_val y, struct cg_val *q);
    /* A call of exp whose argument is never positive; *rough: and a few units in the last place
     * matter little. */
    bool (*falling)(struct cg *g, const struct lang_expr *e, bool *rough);
    /* Answers calls of builtins whose arguments it has another use for; false: it does not. */
    bool (*called)(struct cg *g, const struct lang_expr *e, struct cg_val *v);
    void *read_ctx;
    /* every read is already in registers: nothing is gained by branching around it */
    bool preloaded;
    /* Conditions become selections: both arms are computed, and what they read is loaded under a
     * predicate. guard: the one under which memory may be read or written now, -1: always;
     * guard_varies: it differs between lanes of a vector. */
    bool converts;
    int32_t guard;
    bool guard_varies;
    bool (*is_uniform)(struct cg *g, const struct lang_expr *e); /* a condition: for all lanes? */
    /* Answers comparisons and divisions that it knows a shorter way for; false: none. */
    bool (*binary)(struct cg *g, const struct lang_expr *e, struct cg_val *v);
    bool (*cast)(struct cg *g, const struct lang_expr *e, struct cg_val *v); /* and conversions */
    uint64_t unroll; /* reductions of up to so many terms are written out */
};

/* ---- cg.c: entries, control flow, positions ---- */

void cg_begin(struct cg *g, const char *entry);
/* Ends the entry: dead code out, prologue in front, registers declared; adds the launch's
 * arguments. */
void cg_end(struct cg *g, struct contract_launch *launch);
/* grid, block: along x. */
struct contract_launch *cg_launch(struct cg *g, struct lang_expr *grid, struct lang_expr *block);

uint32_t cg_label(struct cg *g, const char *stem);
void cg_place(struct cg *g, uint32_t label);
void cg_jump(struct cg *g, uint32_t label);
void cg_jump_if(struct cg *g, int32_t pred, bool sense, uint32_t label);
/* The source that what follows comes from: positions, .loc and annotations. */
void cg_at(struct cg *g, struct span s);
/* What follows is f inlined, called at `call`, until cg_leave(). */
void cg_enter(struct cg *g, struct cg_site *site, const struct lang_func *f, struct span call);
void cg_leave(struct cg *g, struct cg_site *site, struct span call);

bool cg_error(struct cg *g, struct span s, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Moves the items made since `from` (of func->items) in front of everything; lower orders come
 * first. */
void cg_to_prologue(struct cg *g, size_t from, uint32_t order);

struct cg_binding *cg_find(struct cg *g, const struct lang_symbol *sym);
void cg_bind(struct cg *g, const struct lang_symbol *sym, struct cg_val v, bool is_mutable);

/* ---- number.c: registers, value numbering ---- */

int32_t cg_new(struct cg *g, enum dtype t); /* a register for a value of type t */
int32_t cg_new_mutable(struct cg *g, enum dtype t);
int32_t cg_mutable(struct cg *g, struct cg_val v); /* a mutable u32 that starts as v */
void cg_assigned(struct cg *g, int32_t reg);       /* reg was just written: advance its version */
/* Writes a mutable register: the instruction whose result it is and whose other operands these are,
 * under a predicate (-1: always). Its version advances. Instructions with several results are
 * emitted as they are, and cg_assigned() said of each. */
void cg_assign(struct cg *g, int32_t pred, int32_t reg, const char *mnemonic, size_t n,
               const struct ptx_operand *op);
#define CG_ASSIGN(g, reg, mnemonic, ...) \
    cg_assign((g), -1, (reg), (mnemonic), PTX_ARGS(__VA_ARGS__))
#define CG_ASSIGN_IF(g, pred, reg, mnemonic, ...) \
    cg_assign((g), (pred), (reg), (mnemonic), PTX_ARGS(__VA_ARGS__))
size_t cg_scope_open(struct cg *g);
void cg_scope_close(struct cg *g, size_t mark);
void cg_loop_head(struct cg *g); /* every mutable register may have changed here */

/* Is reg the sum of a register, that still has the value it had, and a constant? */
bool cg_is_sum(const struct cg *g, int32_t reg, int32_t *base, int64_t *add);
/* A pure instruction with one result of PTX type rt, numbered; the register. */
int32_t cg_pure(struct cg *g, enum ptx_mod rt, const char *mnemonic, size_t n,
                const struct ptx_operand *op);
#define CG(g, rt, mnemonic, ...) cg_pure((g), (rt), (mnemonic), PTX_ARGS_ONLY(__VA_ARGS__))
#define PTX_ARGS_ONLY(...)                                                    \
    sizeof((struct ptx_operand[]){__VA_ARGS__}) / sizeof(struct ptx_operand), \
        (struct ptx_operand[])                                                \
    {                                                                         \
        __VA_ARGS__                                                           \
    }
/* Anything else that is a function of its operands (an intermediate at given subscripts), numbered
 * by the caller. The register, or -1. */
int32_t cg_recall(struct cg *g, const char *what, size_t n, const struct ptx_operand *op);
void cg_remember(struct cg *g, const char *what, size_t n, const struct ptx_operand *op,
                 int32_t reg);
/* These do so for what is read from memory, n < CG_KEY_MAX. What was read in any case is known
 * under every guard; what was read under g->guard is good there only. */
int32_t cg_recall_read(struct cg *g, const char *what, size_t n, const struct ptx_operand *op);
void cg_remember_read(struct cg *g, const char *what, size_t n, const struct ptx_operand *op,
                      int32_t reg);

/* ---- param.c: parameters, special registers ---- */

/* Parameters, at their first use. */
struct cg_val cg_param_of(struct cg *g, const struct lang_symbol *sym);
struct cg_val cg_param_computed(struct cg *g, struct lang_expr *e); /* a u64 computed at launch */
/* A pointer to global memory that only the contract names ("$messages"); the register. */
int32_t cg_param_hidden(struct cg *g, const char *name);
/* A tensor map of t as it lies in memory, in boxes of so many elements (the innermost dimension
 * first, of 32, 64 or 128 bytes, over which they are swizzled); the register of its address, of 64
 * bits. tf32: its f32 are rounded on their way, as by tf32_rn(). */
int32_t cg_param_map(struct cg *g, const struct lang_symbol *t, const uint32_t *box, bool tf32);
/* The same of windows of pixels (.im2col): box is channels and pixels. Corners and steps are those
 * of dimensions 1 and up. */
struct cg_windows {
    const int32_t *lower, *upper;
    const uint32_t *step;
};
int32_t cg_param_windows(struct cg *g, const struct lang_symbol *t, const uint32_t *box,
                         const struct cg_windows *windows, bool tf32);
struct cg_val cg_special(struct cg *g, enum lang_special s);
/* The thread's flat number in its block, x first: a u32. */
struct cg_val cg_thread_number(struct cg *g);

/* A hidden buffer "$name" of the runner's, extents as the launch computes them. is_zero: zero at
 * the first launch; each finds what the one before left. cg_param_of() gives its address. Where an
 * intermediate of the spec has this name the buffer gets another, so that a temp with an
 * intermediate's name holds that intermediate. */
const struct lang_symbol *cg_temp(struct cg *g, const char *name, enum dtype type, uint32_t rank,
                                  struct lang_expr *const *extent, bool is_zero);
/* A temp that holds the intermediate t. It has its name if t is of the spec; t may also have been
 * made from an expression. */
const struct lang_symbol *cg_temp_for(struct cg *g, const struct lang_symbol *t);
/* Where an intermediate or an output is kept for other stages; NULL: nowhere. */
struct cg_home *cg_home_of(const struct cg *g, const struct lang_symbol *sym);
/* At the end of an entry: forgets the parameters that nothing reads; gives the launch those that
 * are left, in their order. */
void cg_drop_unread(struct cg *g);
void cg_add_args(struct cg *g, struct contract_launch *l);

/* ---- value.c: values and arithmetic with folding ---- */

const char *cg_suffix(enum dtype t); /* "f32", "s64", "u32" ...: of arithmetic on registers */
/* "name.suffix"; both are short. */
enum { CG_WORD = 32 };
const char *cg_dotted(char out[CG_WORD], const char *name, const char *suffix);
/* The texts one after the other, of which NULL is the last: snprintf() takes longer than all else
 * that is done for an instruction. */
const char *cg_joined(char *out, size_t size, ...) __attribute__((sentinel));
const char *cg_bits_suffix(enum dtype t); /* "f32", "b32" ...: of mov and selp */
enum ptx_mod cg_regtype(enum dtype t);
static inline struct cg_val cg_value(enum dtype t, int32_t reg)
{
    return (struct cg_val){.type = t, .op = ptx_r(reg)};
}
struct cg_val cg_int(enum dtype t, int64_t v);
struct cg_val cg_float(struct cg *g, enum dtype t, double v);
struct cg_val cg_bool(struct cg *g, bool v);
bool cg_is_const(struct cg_val v, int64_t *i); /* an integer or bool immediate */
/* Are both the same operand, extended in the same way? Of scalars of one type; equal values may be
 * in different registers. */
bool cg_same(struct cg_val x, struct cg_val y);
/* The operand for an instruction on the full type; narrow values are widened. */
struct ptx_operand cg_made_op(struct cg *g, struct cg_val v);
static inline struct ptx_operand cg_op(struct cg *g, struct cg_val v)
{
    return v.op.kind == PTX_O_REG && v.narrow == CG_FULL ? v.op : cg_made_op(g, v);
}
int32_t cg_reg(struct cg *g, struct cg_val v);            /* the same, in a register */
void cg_move(struct cg *g, int32_t reg, struct cg_val v); /* assigns a mutable register */
/* cg_move_new() moves a value that was computed since `since`: its last instruction then writes reg
 * itself. */
struct cg_since {
    size_t items, numbers;
};
struct cg_since cg_now(const struct cg *g);
void cg_move_new(struct cg *g, int32_t reg, struct cg_val v, struct cg_since since);
struct cg_val cg_binary(struct cg *g, enum lang_op op, struct cg_val x, struct cg_val y);
/* Unsigned arithmetic of 32 bits, for addresses. */
static inline struct cg_val cg_u32(uint32_t v)
{
    return cg_int(DT_U32, v);
}
static inline struct cg_val cg_add(struct cg *g, struct cg_val x, struct cg_val y)
{
    return cg_binary(g, OP_ADD, x, y);
}
static inline struct cg_val cg_mul(struct cg *g, struct cg_val x, uint32_t y)
{
    return cg_binary(g, OP_MUL, x, cg_u32(y));
}
/* x m + y n */
static inline struct cg_val cg_weighted(struct cg *g, struct cg_val x, uint32_t m, struct cg_val y,
                                        uint32_t n)
{
    const struct cg_val last = cg_mul(g, y, n);
    return cg_add(g, cg_mul(g, x, m), last);
}
struct cg_val cg_unary(struct cg *g, enum lang_op op, struct cg_val x);
struct cg_val cg_fma(struct cg *g, struct cg_val x, struct cg_val y, struct cg_val z);
struct cg_val cg_select(struct cg *g, int32_t pred, struct cg_val x, struct cg_val y);
struct cg_val cg_minmax(struct cg *g, bool is_max, struct cg_val x, struct cg_val y);
/* A value that a later assignment of x's register cannot change. */
struct cg_val cg_freeze(struct cg *g, struct cg_val x);
/* x as an i64 (a narrow one where it can be). */
struct cg_val cg_index(struct cg *g, struct cg_val x);
/* q = x / y, r = x % y for unsigned x and a divisor that fits 32 bits; 32-bit division where x
 * allows. */
void cg_divmod(struct cg *g, struct cg_val x, struct cg_val y, struct cg_val *q, struct cg_val *r);

/* ---- convert.c ---- */

struct cg_val cg_convert(struct cg *g, struct cg_val v, enum dtype to);
struct cg_val cg_bitcast(struct cg *g, struct cg_val v, enum dtype to);
/* Part i of a 32-bit register, 4, 8 or 16 bits each, sign-extended. Neither this nor the
 * conversions use bfe.s32: of bfe.s32 of a whole byte or half followed by cvt.rn.f32.u32, ptxas
 * (12.x, 13.0) makes I2F.S8 or I2F.S16, which takes the value as signed. */
int32_t cg_signed_part(struct cg *g, int32_t word, unsigned i, unsigned bits);

/* ---- mem.c ---- */

struct ptx_operand cg_mem(struct cg_place_of at); /* [base + offset] */
const char *cg_space_word(enum cg_space s);       /* "global" ... */
struct cg_val cg_load_at(struct cg *g, enum dtype t, bool is_constant, struct cg_place_of at);
void cg_store_at(struct cg *g, enum dtype t, struct cg_place_of at, struct cg_val v);
/* lanes of them, aligned as a whole; v is a vector. */
struct cg_val cg_load_lanes(struct cg *g, enum dtype t, unsigned lanes, bool is_constant,
                            struct cg_place_of at);
void cg_store_lanes(struct cg *g, enum dtype t, struct cg_place_of at, struct cg_val v);
struct cg_val cg_extent(struct cg *g, const struct lang_symbol *t, uint32_t axis); /* i64, narrow */
struct cg_val cg_flat_index(struct cg *g, const struct lang_symbol *t, uint32_t n,
                            const struct cg_val *subscript);
struct cg_place_of cg_address(struct cg *g, const struct lang_symbol *t, struct cg_val flat);
/* Does nothing write to it while the entry runs? */
bool cg_is_constant(const struct cg *g, const struct lang_symbol *t);
struct cg_val cg_load(struct cg *g, const struct lang_symbol *t, struct cg_place_of at);
/* In compute, and of what nothing has written yet: ptxas moves a load of constant memory (.nc) to
 * where its value is needed, behind barriers too, but leaves this one. */
struct cg_val cg_load_here(struct cg *g, const struct lang_symbol *t, struct cg_place_of at);
/* Loads into reg (of the element's type) where pred holds. */
struct cg_val cg_load_if(struct cg *g, const struct lang_symbol *t, struct cg_place_of at,
                         int32_t pred, struct cg_val otherwise);
void cg_store(struct cg *g, const struct lang_symbol *t, struct cg_place_of at, struct cg_val v);
/* n consecutive elements (n a power of two) at base + offset bytes, aligned to all of them or to 16
 * bytes. */
void cg_load_vector(struct cg *g, const struct lang_symbol *t, int32_t base, int64_t offset,
                    unsigned n, struct cg_val *v); /* zeros where g->guard does not hold */
void cg_store_vector(struct cg *g, const struct lang_symbol *t, int32_t base, int64_t offset,
                     unsigned n, const struct cg_val *v);
/* n elements that fill a word of 32 bits or less, the first lowest, and back. */
struct ptx_operand cg_pack(struct cg *g, enum dtype t, unsigned n, const struct cg_val *v);
void cg_unpack(struct cg *g, enum dtype t, int32_t word, unsigned n, struct cg_val *v);
/* Which bits of a word v is, an integer that cg_unpack() made. */
struct cg_part cg_part_of(const struct cg *g, struct cg_val v);
void cg_load_words(struct cg *g, enum dtype t, bool is_constant, struct cg_place_of at, unsigned n,
                   struct cg_val *v);
/* at.cache of words of t that a kernel reads once and that writes next to nothing: what is known
 * not to stay in the L2 cache is first to leave. On an H100 such kernels take 0.95 to 1 of the
 * time; those that write as much as they read, up to 1.04. NULL: no word for it. */
const char *cg_read_once(const struct cg *g, const struct lang_symbol *t);
/* at, of words of t that a kernel reads and that writes as much: what is read is last to leave the
 * L2 cache, so that what is written leaves first. On an H100 such kernels take 0.2 to 1.8 % less
 * time, also where three inputs of 256 MiB take turns. */
void cg_read_again(struct cg *g, const struct lang_symbol *t, struct cg_place_of *at);
/* at, of what cg_read_again() was said of, has been read, and with it all of the cache's line:
 * where one begins it is an ordinary one from now on. */
void cg_read_enough(struct cg *g, const struct lang_symbol *t, struct cg_place_of at);
void cg_store_words(struct cg *g, enum dtype t, struct cg_place_of at, unsigned n,
                    const struct cg_val *v);

/* ---- address.c ---- */

/* Around the code of a loop: s is the statement (NULL: none), whose assigned variables vary in it,
 * as does what cg_nest_varies() names. */
void cg_nest_open(struct cg *g, struct cg_nest *nest, const struct lang_stmt *s);
void cg_nest_close(struct cg *g, struct cg_nest *nest);
void cg_nest_varies(struct cg *g, struct cg_nest *nest, int32_t reg);
/* A loop by steps while its variable is below an end. */
struct cg_for {
    int32_t at;         /* the variable, mutable */
    uint32_t head, end; /* labels */
    bool has_end;
    size_t mark;
    struct cg_nest nest;
};
/* Begins it, from a value of the variable's type. end: the name of the label behind the loop, which
 * it may be left to; NULL: it is not left. below: no round is done where the first is not below it;
 * NULL: one is. */
void cg_for_open(struct cg *g, struct cg_for *f, const char *head, const char *end,
                 struct cg_val from, const struct cg_val *below);
/* Ends it. step: of the variable's type. below: NULL: there is no other round. */
void cg_for_close(struct cg *g, struct cg_for *f, struct cg_val step, const struct cg_val *below);
/* The depth of the innermost open loop in which the operand may vary; 0: in none. */
unsigned cg_depth(const struct cg *g, struct ptx_operand o);
void cg_set_depth(struct cg *g, int32_t reg, unsigned depth);
/* cg_address(cg_flat_index(...)), with what varies least added first. */
struct cg_place_of cg_element(struct cg *g, const struct lang_symbol *t, uint32_t n,
                              const struct cg_val *subscript);

/* ---- layout.c: the variables of an entry in memory ---- */

/* Decides where the body's shared variables lie. False when they don't fit. */
bool cg_layout(struct cg *g, const struct lang_stmt *body);
/* The dynamic part of shared memory, the module's. */
struct ptx_var *cg_dynamic(struct cg *g);
/* Names to the launch the arrays in the dynamic part of shared memory. */
void cg_tell_arrays(struct cg *g, struct contract_launch *l);
/* Puts a variable of the module in front of its functions. */
void cg_module_variable(struct cg *g, struct ptx_var *v);
unsigned cg_element_bytes(const struct lang_symbol *sym);
enum ptx_mod cg_memory_type(enum dtype t);
struct cg_variable *cg_variable_of(struct cg *g,
                                   const struct lang_symbol *sym); /* NULL: none yet */
/* The symbol's name, unlike every other variable's of the entry. */
const char *cg_variable_name(struct cg *g, const struct lang_symbol *sym);
/* Declares it in front of the entry's code. */
struct ptx_var *cg_declare_variable(struct cg *g, enum ptx_mod space,
                                    const struct lang_symbol *sym);
/* The shared symbol that the body declares, for a function's parameter that stands for it. */
const struct lang_symbol *cg_shared_symbol(struct cg *g, const struct lang_symbol *sym);
/* The variable that a shared one is, or lies in when it is dynamic. */
const struct ptx_var *cg_shared_variable(struct cg *g, const struct lang_symbol *sym);

/* ---- place.c: local arrays, tables, places in memory ---- */

/* The place of an element of anything in memory, or of a shared variable: e is an E_INDEX (of an
 * array of vectors without the lane's subscript) or an E_NAME, as E_ADDRESS has them. */
struct cg_place_of cg_place_expr(struct cg *g, const struct lang_expr *e);
/* Element i of a table of constants; false for any other array. */
bool cg_table_value(struct cg *g, const struct cg_binding *b, uint64_t i, struct cg_val *v);
/* Declares a local array or a table of constants. */
void cg_declare_array(struct cg *g, const struct lang_stmt *s);
/* The binding of a local array, which may be a table at the top of functions:. */
struct cg_binding *cg_array(struct cg *g, const struct lang_symbol *sym);

/* ---- cells.c: vectors and arrays in registers ---- */

struct cg_val cg_vector(struct cg *g, enum dtype t, unsigned n, const struct cg_val *lane);
/* f(lanes) for each lane of a vector, or once for a scalar; every x[i] has the lanes of the
 * first. */
typedef struct cg_val cg_lane_op(struct cg *g, const void *how, const struct cg_val *x);
struct cg_val cg_lanewise(struct cg *g, cg_lane_op *f, const void *how, size_t n,
                          const struct cg_val *x);
/* The value of an expression with lanes, of a lane, or of an element of a local or shared array. */
struct cg_val cg_vector_expr(struct cg *g, const struct lang_expr *e);
struct cg_val cg_memory_call(struct cg *g, const struct lang_expr *e);
struct cg_cell *cg_cells(struct cg *g, uint32_t n);
struct cg_target cg_target(struct cg *g, const struct lang_expr *e);
struct cg_val cg_get(struct cg *g, const struct cg_target *t);
void cg_set(struct cg *g, const struct cg_target *t, struct cg_val v, struct cg_since since);
/* Before code that may or may not run, or runs again: gives every local a register that the code
 * assigns and that is declared outside of it. */
void cg_promote(struct cg *g, const struct lang_stmt *s);
void cg_promote_expr(struct cg *g, const struct lang_expr *e);
/* inspect_reads(), but for elements that are in registers. */
bool cg_reads(struct cg *g, const struct lang_expr *e);
/* A temporary of a type and lanes that several ways assign. */
struct cg_target cg_temporary(struct cg *g, enum dtype t, uint8_t lanes);

/* ---- expr.c ---- */

struct cg_val cg_expr(struct cg *g, const struct lang_expr *e);
/* Jumps to label when e is `sense`, else falls through. */
void cg_branch(struct cg *g, const struct lang_expr *e, bool sense, uint32_t label);
/* e, or what stands for it: walkers of the syntax tree look at this. */
const struct lang_expr *cg_view(const struct cg *g, const struct lang_expr *e);
/* e; or, where it is an element of an intermediate, what that is made of there. */
const struct lang_expr *cg_written_out(struct cg *g, const struct lang_expr *e);
/* Does an equation define what the expression reads? False where it reads memory. */
bool cg_is_defined(const struct cg *g, const struct lang_symbol *sym);
/* The value of a reduction that is done before others meet it starts as this: of type t. */
struct cg_val cg_reduce_identity(struct cg *g, enum lang_reduce how, enum dtype t);
/* Two values of it make one; not of argmax and argmin, which have a place beside each. */
struct cg_val cg_reduce_meet(struct cg *g, enum lang_reduce how, struct cg_val x, struct cg_val y);
/* A reduction in steps: its registers, a term for what its indices are bound to now, and its value.
 */
struct cg_accumulator {
    int32_t value;
    int32_t where; /* argmax, argmin: the index of the best so far */
};
struct cg_accumulator cg_reduce_open(struct cg *g, const struct lang_expr *e);
void cg_reduce_term(struct cg *g, const struct lang_expr *e, struct cg_accumulator *acc);
struct cg_val cg_reduce_close(struct cg *g, const struct lang_expr *e, struct cg_accumulator acc);
/* The value that the equation gives its tensor at these subscripts. */
struct cg_val cg_define(struct cg *g, const struct lang_equation *eq,
                        const struct cg_val *subscript);
/* With g->converts: memory is read only where p holds too, until cg_unguard(); varies: p differs
 * between lanes. */
struct cg_guard {
    int32_t pred;
    bool varies;
};
struct cg_guard cg_guard(struct cg *g, struct cg_val p, bool varies);
void cg_unguard(struct cg *g, struct cg_guard before);
/* Is it inside the extent? A constant or a predicate. */
struct cg_val cg_inside(struct cg *g, struct cg_val subscript, struct cg_val extent);
/* Is the subscript an index that runs over just this dimension? */
bool cg_in_range(const struct lang_expr *sub, const struct lang_expr *dim);
/* Is it never outside, as that, or as quotients and rests of an index? */
bool cg_stays_inside(const struct lang_expr *sub, const struct lang_expr *dim);

/* ---- math.c ---- */

struct cg_val cg_call(struct cg *g, const struct lang_expr *e);
/* A builtin of values, of scalars. */
struct cg_val cg_builtin(struct cg *g, const struct lang_expr *e, const struct cg_val *x);
/* Is there a variant of the call of which the hardware's approximations are a part (math_tensor.c)?
 * It is taken in kernels whose sums are the tensor cores'; false: it is not. */
bool cg_has_tensor_call(const struct ptx_target *target, const struct lang_expr *e);
bool cg_tensor_call(struct cg *g, const struct lang_expr *e, struct cg_val x, struct cg_val *r);
/* 2^(x c) by the hardware, which has no subnormal numbers: as the square of a root, which is none.
 */
struct cg_val cg_exp2_root(struct cg *g, struct cg_val x, double c);
/* exp(x) = p s, for x <= 0 or NaN, and s is 2^-126 at least or, where exp(x) is less than about
 * that, 0. large: also for x so large that it overflows. */
void cg_falling_parts(struct cg *g, struct cg_val x, bool large, struct cg_val *p,
                      struct cg_val *s);
/* x / y in f32, y in a register being the same for many x: times its reciprocal, which is computed
 * once. Both are scaled by a power of two where the reciprocal would overflow or be subnormal. Two
 * roundings instead of one: 1.5 units in the last place, or one of the subnormal range. */
struct cg_val cg_times_reciprocal(struct cg *g, struct cg_val x, struct cg_val y);
/* A function of the math library by name, inlined. */
struct cg_val cg_library(struct cg *g, const char *name, size_t n, const struct cg_val *arg);

/* ---- sync.c ---- */

/* A call of a builtin that acts (lang_builtin_acts). */
struct cg_val cg_act(struct cg *g, const struct lang_expr *e);
/* An error unless the target is sm or later; what: "the scope cluster". */
bool cg_needs(struct cg *g, struct span s, unsigned sm, const char *what);
/* Counts the block at a counter that is 0 before the first and after the last of so many; jumps
 * unless it is the last one, which sees what the others have written. All of the block's threads
 * come, by their numbers (u32), when they have written. */
void cg_arrive(struct cg *g, struct cg_place_of counter, struct cg_val blocks, struct cg_val thread,
               uint32_t skip);

/* ---- random.c ---- */

/* The words of a call of philox(), uniform() or normal(). */
void cg_philox(struct cg *g, const struct lang_expr *e, struct cg_val out[4]);
struct cg_val cg_random(struct cg *g, const struct lang_expr *e); /* uniform(), normal() */

/* ---- message.c ---- */

void cg_print(struct cg *g, const struct lang_expr *e);
void cg_assert(struct cg *g, const struct lang_expr *e);

/* ---- stmt.c ---- */

void cg_stmt(struct cg *g, const struct lang_stmt *s);
/* call: the expression, for the arrays among its arguments; NULL: there are none. */
struct cg_val cg_inline(struct cg *g, const struct lang_func *f, size_t n, const struct cg_val *arg,
                        const struct lang_expr *call);
/* old op rhs of a compound assignment, as the type of its left side. */
struct cg_val cg_compound(struct cg *g, const struct lang_stmt *s, struct cg_val old);

/* ---- loop.c ---- */

void cg_loop_stmt(struct cg *g, const struct lang_stmt *s);
/* Is e a constant now, in the copy of an unrolled loop that is generated? Generates nothing. */
bool cg_constant(struct cg *g, const struct lang_expr *e, struct cg_val *v);
/* Is the loop to be unrolled whole, if its number of rounds turns out constant? */
bool cg_wants_unrolling(const struct lang_stmt *s);
/* A break or a continue that belongs to this loop. */
bool cg_jumps(const struct lang_stmt *s);

/* ---- magic.c: division by what is known at launch ---- */

/* q = n / d and r = n % d for n < 2^31 - 1; d: >= 0 and less than 2^32 (0: any result), as a value
 * and as the launch computes it. */
void magic_divmod(struct cg *g, struct cg_val n, struct lang_expr *at_launch, struct cg_val d,
                  struct cg_val *q, struct cg_val *r);

/* ---- explain.c ---- */

/* Appends to what --explain says; nothing without it. */
void lower_explain(struct cg *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
