/* One in-memory PTX module: what the emitter builds, the printer writes, the parser reads, the
 * validator checks and the simulator decodes. print and parse are inverses.
 *
 * Everything about an instruction comes from isa.def: one row per instruction form. The builder,
 * the parser, the printer, the validator and the simulator's dispatch all read that table. Source:
 * PTX ISA manual.
 *
 * Order is kept: a function's body and the module's top level are lists of items, so that
 * declarations, labels, nested scopes, comments and .loc lines print where they were parsed.
 */
#ifndef KAIO_PTX_PTX_H
#define KAIO_PTX_PTX_H

#include "base/diag.h"

/* ---- the table ------------------------------------------------------------------------------- */

/* Classes of modifiers. An instruction has at most one modifier of a class, except TYPE (up to
 * four). */
enum ptx_mod_class {
#define PTX_CLASS(NAME) PTX_MC_##NAME,
#include "ptx/isa.def"
    PTX_MC_COUNT
};

/* Every dotted word that a mnemonic can have after its name, types included; 0 is "absent". */
enum ptx_mod {
    PTX_NONE,
#define PTX_MOD(NAME, text, cls) PTX_##NAME,
#include "ptx/isa.def"
    PTX_MOD_COUNT
};

/* Every instruction form, in the order of isa.def. */
enum ptx_op {
#define PTX_OP(NAME, FAMILY, pattern, operands, ptx, sm) PTX_OP_##NAME,
#include "ptx/isa.def"
    PTX_OP_COUNT
};

/* Instructions that are treated alike. */
enum ptx_family {
#define PTX_FAMILY(NAME, traits) PTX_FAMILY_##NAME,
#include "ptx/isa.def"
    PTX_FAMILY_COUNT
};

/* Special registers. */
enum ptx_sreg {
#define PTX_SREG(NAME, text, type, ptx, sm) PTX_SR_##NAME,
#include "ptx/isa.def"
    PTX_SR_COUNT
};

const char *ptx_mod_text(enum ptx_mod m);
enum ptx_mod_class ptx_mod_class(enum ptx_mod m);
/* The instruction's name without modifiers ("add"), and the row's texts. */
const char *ptx_op_name(enum ptx_op op);
const char *ptx_op_pattern(enum ptx_op op);
const char *ptx_op_operands(enum ptx_op op);
enum ptx_family ptx_op_family(enum ptx_op op);
/* The operands that it writes: bit k for operand k. */
unsigned ptx_op_writes(enum ptx_op op);
/* Of what writes registers: does it do something beside that, or do its results depend on when it
 * runs? Of what writes none (cp.async, prefetch, setmaxnreg ...) false says nothing. */
bool ptx_op_acts(enum ptx_op op);
unsigned ptx_op_min_ptx(enum ptx_op op); /* 60 = PTX ISA 6.0 */
unsigned ptx_op_min_sm(enum ptx_op op);  /* 90 = sm_90; also for what sm_90a alone has */
const char *ptx_sreg_text(enum ptx_sreg r);
enum ptx_mod ptx_sreg_type(enum ptx_sreg r);
unsigned ptx_sreg_min_ptx(enum ptx_sreg r);
unsigned ptx_sreg_min_sm(enum ptx_sreg r);

/* Types are modifiers of class TYPE: PTX_PRED, PTX_B8 .. PTX_F64, PTX_F16X2, ... */
unsigned ptx_type_bits(enum ptx_mod type); /* pred counts as 1 */
bool ptx_type_is_float(enum ptx_mod type);
bool ptx_type_is_signed(enum ptx_mod type);
/* A modifier of class SPACE without its sub-qualifier: PTX_SHARED for .shared::cta, PTX_PARAM for
 * .param::entry. */
enum ptx_mod ptx_space(enum ptx_mod space);

/* ---- the module ------------------------------------------------------------------------------ */

/* A register variable of a function. */
struct ptx_reg {
    const char *name;  /* with its %: "%r12"; before ptx_finish() without its number */
    enum ptx_mod type; /* as declared: PTX_B32, PTX_F32, PTX_PRED, ... */
    /* The item that declares it, index into the function's items; UINT32_MAX: it is a parameter or
     * result of the function, kept in a register. */
    uint32_t decl;
};

/* A variable in memory: .global .const .shared .local .param, at module level or in a function. */
struct ptx_var {
    const char *name;
    enum ptx_mod space; /* PTX_GLOBAL, PTX_CONST, PTX_SHARED, PTX_LOCAL, PTX_PARAM */
    enum ptx_mod type;
    enum ptx_mod vec; /* PTX_V2, PTX_V4 or PTX_NONE */
    uint32_t align;   /* bytes, 0: natural */
    bool is_array;
    uint64_t count;      /* elements when is_array; 0 = unsized (dynamic shared memory, .extern) */
    const char *shape;   /* the dimensions as text when there are several ("[4][8]"), or NULL */
    const char *linkage; /* "", ".visible", ".extern", ".weak", ".common" */
    const char *attribute; /* the text in .attribute( ), or NULL */
    const char *ptr;       /* the text of a .ptr attribute of an entry parameter, or NULL */
    const char *init; /* the initialiser's text after '=', or NULL (parsed again by who needs it) */
    bool is_input;    /* a parameter of the function: read only */
    struct span span;
};
uint64_t ptx_var_bytes(const struct ptx_var *v);
uint32_t ptx_var_align(const struct ptx_var *v);

enum ptx_operand_kind {
    PTX_O_REG,   /* reg; negated when neg (!%p); reg2 >= 0 for a pair %p|%q; reg -1: _|%q */
    PTX_O_IMM,   /* bits: a 64-bit two's complement integer */
    PTX_O_F32,   /* bits: 0fXXXXXXXX */
    PTX_O_F64,   /* bits: 0dXXXXXXXXXXXXXXXX */
    PTX_O_SREG,  /* sreg */
    PTX_O_SYM,   /* var: the address of a variable, plus bits as an offset */
    PTX_O_LABEL, /* label: index into the function's labels */
    PTX_O_FUNC,  /* name: a function called, or whose address is taken */
    PTX_O_MEM,   /* [reg + bits], [var + bits] or [bits]: reg >= 0, or var, or neither; and elem, a
                  * tensor's   coordinates: [reg, {x, y}] */
    PTX_O_VEC,   /* {elem[0], ...}: nelem operands; a call's results and arguments, ( ) */
    PTX_O_SINK,  /* _ */
};

struct ptx_operand {
    enum ptx_operand_kind kind : 8; /* there are three for each instruction: they are kept small */
    bool neg;
    int32_t reg, reg2; /* indices into the function's regs; -1: none */
    uint32_t nelem;    /* 0 where there is no elem */
    uint64_t bits;
    const struct ptx_var *var;
    union { /* of the kind that has it */
        struct ptx_operand *elem;
        enum ptx_sreg sreg;
        uint32_t label;
        const char *name;
    };
};

enum { PTX_MAX_OPERANDS = 8, PTX_MAX_TYPES = 4 };

/* The operands of a call are always: [0] the results (PTX_O_VEC, perhaps empty), [1] the function
 * (PTX_O_FUNC, or PTX_O_REG when indirect), [2] the arguments (PTX_O_VEC), and of an indirect call
 * [3] the label of its prototype. A float literal in an .f32 or .f64 instruction has the kind of
 * that type, however it was written. */

/* What stands behind a mnemonic's name. Instructions of one mnemonic share it, so it never
 * changes. */
struct ptx_words {
    uint16_t mod[PTX_MC_COUNT];   /* enum ptx_mod by class; mod[PTX_MC_TYPE] is type[0] */
    uint16_t type[PTX_MAX_TYPES]; /* the TYPE modifiers in the order written */
};

struct ptx_inst {
    enum ptx_op op : 16; /* there are many thousands: they are kept small, too */
    bool guard_neg;
    uint8_t noperand;
    int32_t guard;              /* predicate register, -1: none */
    const uint16_t *mod, *type; /* of some struct ptx_words */
    struct ptx_operand *operand;
};

/* The m, n and k of a matrix instruction; zeros where it has none. */
struct ptx_shape {
    uint16_t m, n, k;
};
struct ptx_shape ptx_shape(const struct ptx_inst *in);

/* An instruction without operands, as a mnemonic says it. */
struct ptx_spelling {
    enum ptx_op op;
    struct ptx_words words;
};
/* The instructions of that mnemonic, one for each form that has these words: the first `most` of
 * them in `found`; returns how many there are. What finishes a result (rounding, .ftz, .sat, .relu)
 * may be left out even where PTX demands it. */
size_t ptx_spelled(const char *spelling, size_t len, size_t most, struct ptx_spelling *found);

enum ptx_item_kind {
    PTX_I_INST,
    PTX_I_LABEL,   /* label */
    PTX_I_REG,     /* .reg: nreg registers from first_reg on; a range when name<n> was written */
    PTX_I_VAR,     /* var */
    PTX_I_OPEN,    /* { */
    PTX_I_CLOSE,   /* } */
    PTX_I_COMMENT, /* text: a comment on a line of its own, without the // */
    PTX_I_LOC,     /* .loc file line column [, more]: file, line, column, text */
    PTX_I_TEXT,    /* any other directive, kept as text: .pragma, .file, .section ... */
    PTX_I_FUNC,    /* module level only: func */
    PTX_I_TARGETS, /* .branchtargets of brx.idx: target[0 .. ntarget); its own label is the item
                      before */
    PTX_I_PROTO,   /* text: a .callprototype or .calltargets; its label is the item before */
};

struct ptx_item {
    enum ptx_item_kind kind;
    struct span span;
    union { /* of the kind that has it */
        struct ptx_inst inst;
        struct {
            const char *text; /* of a PTX_I_REG: the name, of a range without the number */
            union {
                uint32_t label;
                struct {
                    uint32_t first_reg, nreg;
                    bool reg_range;    /* written as  %r<nreg> : first_reg is %r0 */
                    enum ptx_mod type; /* of the registers declared */
                };
                struct {
                    uint32_t file, line, column;
                };
                struct {
                    const uint32_t *target; /* labels */
                    uint32_t ntarget;
                };
                struct ptx_var *var;
                struct ptx_func *func;
            };
        };
    };
};

struct ptx_label {
    const char *name;
    uint32_t item; /* where it stands; UINT32_MAX until it is placed */
};

struct ptx_func {
    const char *name;
    bool is_entry;
    const char *linkage; /* ".visible", "", ... */
    VEC(struct ptx_var *) params;
    VEC(struct ptx_var *) results;   /* of a .func */
    uint32_t maxntid[3], reqntid[3]; /* 0: not given */
    uint32_t minnctapersm, maxnreg;
    const char *directives; /* other performance directives, one a line, "" if none */
    bool noreturn;          /* .noreturn */
    const char *attribute;  /* the text in .attribute( ) of a .func, or NULL */
    VEC(struct ptx_item) items;
    VEC(struct ptx_reg) regs;
    VEC(struct ptx_label) labels;
    bool has_body;
    struct span span;
};
uint64_t ptx_param_bytes(const struct ptx_func *f);
enum {
    PTX_PARAM_BYTES = 4352,       /* the most of a kernel */
    PTX_MOST_PARAM_BYTES = 32764, /* since the version PTX_MANY_PARAMS, from sm_70 on */
    PTX_MANY_PARAMS = 81,
};

struct ptx_module {
    struct arena *arena;
    /* The launch contract: the text of the leading lines behind "//@ ", each with its newline; ""
     * if none. */
    const char *header;
    unsigned version;        /* 80 = PTX ISA 8.0 */
    unsigned sm;             /* 90 */
    char sm_suffix;          /* 'a', 'f' or 0 */
    const char *target_more; /* further words of .target ("texmode_unified, debug"), "" if none */
    struct span version_span, target_span; /* of .version and .target, for messages */
    unsigned address_size;                 /* 64 */
    VEC(struct ptx_item) items;            /* variables, functions, comments, other directives */
    struct ptx_form *form;                 /* build.c: what mnemonics were matched to */
    const struct ptx_words **words;        /* ptx_set_words(): those that instructions share */
};

/* Gives the instruction these words, which are copied unless the module has them already. */
void ptx_set_words(struct ptx_module *m, struct ptx_inst *in, const struct ptx_words *words);
bool ptx_same_words(const struct ptx_inst *x, const struct ptx_inst *y);

/* NULL if absent. Of a function that is declared and defined, the definition; ptx_find_func() finds
 * entries too. */
struct ptx_func *ptx_find_entry(const struct ptx_module *m, const char *name);
struct ptx_func *ptx_find_func(const struct ptx_module *m, const char *name);

/* ---- text ------------------------------------------------------------------------------------ */

/* Reads a whole module. Returns NULL with errors in d when it does not parse, an unknown
 * instruction included (the message names the nearest form). src must outlive the module. */
struct ptx_module *ptx_parse(struct arena *a, const struct source *src, struct diags *d);
void ptx_print(const struct ptx_module *m, struct buf *out);
/* One instruction as printed, guard included, without indentation, semicolon or newline: for
 * reports. */
void ptx_print_inst(const struct ptx_func *f, const struct ptx_inst *in, struct buf *out);

/* What ptxas would refuse: operand kinds and types against the table, words that exclude each
 * other, instructions and special registers newer than the module's version or target, calls,
 * duplicate names, limits. Returns false with errors in d; warnings alone leave it true. */
bool ptx_validate(const struct ptx_module *m, struct diags *d);

/* ---- targets --------------------------------------------------------------------------------- */

struct ptx_target {
    const char *name;      /* "sm_90a" */
    unsigned sm;           /* 90 */
    char suffix;           /* 'a', 'f' or 0 */
    unsigned min_ptx;      /* the PTX version that introduced it */
    unsigned shared_optin; /* the largest dynamic shared memory of a block, bytes */
    unsigned shared_per_sm, regs_per_sm, threads_per_sm, blocks_per_sm;
};
/* "sm_80", "80", "sm_90a". NULL when unknown. */
const struct ptx_target *ptx_target_find(const char *name, size_t len);
/* The one to compile for a GPU of that compute capability: its own, with what that architecture
 * alone has (sm_90a), or else the newest before it. NULL: it is older than all. */
const struct ptx_target *ptx_target_of(unsigned sm);
/* wgmma is of Hopper alone: later architectures have other instructions in its place. */
bool ptx_target_has_wgmma(const struct ptx_target *t);
/* All n of them, from sm_70 on, in order. */
const struct ptx_target *ptx_targets(size_t *n);

/* ---- building -------------------------------------------------------------------------------- */

struct ptx_module *ptx_module_new(struct arena *a, const struct ptx_target *t);
/* Lowest version that has everything the module uses; sets m->version. */
void ptx_settle_version(struct ptx_module *m);
struct ptx_func *ptx_entry_new(struct ptx_module *m, const char *name);
struct ptx_var *ptx_param_new(struct ptx_module *m, struct ptx_func *f, const char *name,
                              enum ptx_mod type);

/* A .file directive, for ptx_loc(). */
void ptx_file(struct ptx_module *m, unsigned number, const char *name);

struct ptx_builder {
    struct ptx_module *module;
    struct ptx_func *func;
    struct span span; /* given to every instruction made; set it as you walk the source */
};
struct ptx_builder ptx_builder_new(struct ptx_module *m, struct ptx_func *f);
/* A fresh register: %p for pred, %rs b16, %r b32, %rd b64, %h f16/bf16 bits (b16), %f f32, %fd f64.
 * The declarations are written by ptx_finish() at the top of the body, one range per type. */
int32_t ptx_reg_new(struct ptx_builder *b, enum ptx_mod type);
/* A label of the name $stem_7, unique in the function, to be placed once with ptx_label_here(). */
uint32_t ptx_label_new(struct ptx_builder *b, const char *stem);
void ptx_label_here(struct ptx_builder *b, uint32_t label);
void ptx_comment(struct ptx_builder *b, const char *text); /* a comment per line of the text */
void ptx_loc(struct ptx_builder *b, unsigned file, unsigned line, unsigned column);
/* Declares an array here: PTX_SHARED, PTX_LOCAL, ... align in bytes, 0: natural. */
struct ptx_var *ptx_array_new(struct ptx_builder *b, enum ptx_mod space, const char *name,
                              enum ptx_mod type, uint32_t align, uint64_t count);

static inline struct ptx_operand ptx_r(int32_t reg)
{
    return (struct ptx_operand){.kind = PTX_O_REG, .reg = reg, .reg2 = -1};
}
struct ptx_operand ptx_pair(int32_t reg, int32_t reg2); /* %p|%q */
struct ptx_operand ptx_not(int32_t pred);
static inline struct ptx_operand ptx_imm(int64_t v)
{
    return (struct ptx_operand){.kind = PTX_O_IMM, .reg = -1, .reg2 = -1, .bits = (uint64_t)v};
}
struct ptx_operand ptx_immf32(float v);
struct ptx_operand ptx_immf64(double v);
struct ptx_operand ptx_special(enum ptx_sreg r);
struct ptx_operand ptx_sym(const struct ptx_var *v);
struct ptx_operand ptx_label(uint32_t label);
struct ptx_operand ptx_mem(int32_t reg, int64_t offset);
struct ptx_operand ptx_mem_var(const struct ptx_var *v, int64_t offset);
/* [map, {coordinates}]: a tensor, by the address of its map */
struct ptx_operand ptx_tensor(struct ptx_builder *b, int32_t map, size_t n,
                              const struct ptx_operand *coordinate);
struct ptx_operand ptx_sink(void); /* _ */
struct ptx_operand ptx_vec(struct ptx_builder *b, size_t n, const struct ptx_operand *elem);

/* Appends "mnemonic operands;". The mnemonic is matched against isa.def as the parser would, so a
 * typo in the emitter is an internal error (abort with the text) in every build. guard < 0:
 * unguarded; guard_neg: @!p. */
void ptx_emit(struct ptx_builder *b, int32_t guard, bool guard_neg, const char *mnemonic, size_t n,
              const struct ptx_operand *operands);
/* What such a mnemonic with n operands is matched to: for who appends it again and again. Good
 * until the next instruction is made. */
const struct ptx_inst *ptx_form(struct ptx_module *m, const char *mnemonic, size_t n);
void ptx_emit_form(struct ptx_builder *b, int32_t guard, bool guard_neg,
                   const struct ptx_inst *form, const struct ptx_operand *operands);
#define PTX_ARGS(...)                                                         \
    sizeof((struct ptx_operand[]){__VA_ARGS__}) / sizeof(struct ptx_operand), \
        (struct ptx_operand[])                                                \
    {                                                                         \
        __VA_ARGS__                                                           \
    }
/* PTX(b, "add.rn.f32", ptx_r(d), ptx_r(x), ptx_immf32(1)); */
#define PTX(b, mnemonic, ...) ptx_emit((b), -1, false, (mnemonic), PTX_ARGS(__VA_ARGS__))
#define PTX0(b, mnemonic)     ptx_emit((b), -1, false, (mnemonic), 0, NULL) /* ret, ... */
#define PTX_IF(b, pred, mnemonic, ...) \
    ptx_emit((b), (pred), false, (mnemonic), PTX_ARGS(__VA_ARGS__))
#define PTX_UNLESS(b, pred, mnemonic, ...) \
    ptx_emit((b), (pred), true, (mnemonic), PTX_ARGS(__VA_ARGS__))
/* Declares the registers at the top of the body and removes nothing else. Call once per function:
 * it renumbers the registers, so those handed out before mean nothing afterwards. */
void ptx_finish(struct ptx_builder *b);

#endif
