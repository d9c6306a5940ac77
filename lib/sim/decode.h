/* From PTX instructions to records. Private to lib/sim.
 *
 * Most instructions are rows of handlers.def, found by op, modifiers and types (forms.c).
 * decode_*.c has a function for each family of isa.def that needs more: another operand layout,
 * several records, an address. families.def says which. A decoder looks at the instruction's op,
 * mod, type and shape; only messages have its text.
 */
#ifndef KAIO_SIM_DECODE_H
#define KAIO_SIM_DECODE_H

#include "sim/sim.h"

struct sim_row {
    const char *spell;
    uint8_t d, a, b, c; /* enum sim_type */
};
extern const struct sim_row sim_rows[SIM_H_COUNT];

struct dec_fixup {
    uint32_t op, label;
};

/* The .branchtargets of a brx.idx. */
struct dec_targets {
    const struct ptx_item *item;
};

struct dec {
    const struct sim_decode_in *in;
    struct diags *diags;
    struct sim_code *code;
    VEC(struct sim_op) op;
    VEC(struct dec_fixup) fixups;
    VEC(struct dec_targets) targets;
    VEC(bool) polls;    /* by record: it may see what another thread did */
    uint32_t *label_op; /* by label: its record, UINT32_MAX where it has none */
    bool *label_used;   /* a branch goes there */
    uint32_t *reg_off;  /* by register */
    uint8_t *reg_class; /* by register: enum dec_class */
    bool *reg_written, *reg_read;
    uint32_t pred_next, pred_end; /* where single predicates go */
    uint32_t file_next;
    struct sim_symbols vars; /* the entry's variables, params included */
    /* the instruction at hand */
    uint32_t item;
    const struct ptx_inst *inst;
    struct span span;
    bool guard; /* emit() puts a GUARD in front of each record */
    uint32_t guard_off;
    uint8_t guard_flags;
    bool failed; /* this instruction was reported */
};

/* DEC_128: two slots of 64 bits, one behind the other */
enum dec_class { DEC_NONE, DEC_PRED, DEC_16, DEC_32, DEC_64, DEC_128 };
enum dec_class dec_class_of(enum sim_type t);
enum dec_class dec_reg_class(enum ptx_mod declared);
/* Bytes of a memory or register type; 0 for those the simulator does not have. */
uint32_t dec_type_bytes(enum ptx_mod t);

/* The mnemonic as printed, modifiers included, for messages; in the arena. */
const char *dec_mnemonic(struct dec *dc);
/* Reports the instruction; returns false. */
bool dec_error(struct dec *dc, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool dec_unsupported(struct dec *dc);

/* A new record of a handler; the guard is seen to. */
struct sim_op *dec_emit(struct dec *dc, enum sim_handler_id h);
struct sim_op *dec_emit3(struct dec *dc, enum sim_handler_id h, uint32_t d, uint32_t a, uint32_t b,
                         uint32_t c);
/* Keeps the value of the guard, for instructions that become several records, one of which may
 * write it. */
void dec_keep_guard(struct dec *dc);
/* Emits a record that itself has the guard, for control instructions. */
struct sim_op *dec_emit_control(struct dec *dc, enum sim_handler_id h);

/* Slots. */
uint32_t dec_const(struct dec *dc, uint64_t bits, bool wide);
uint32_t dec_temp(struct dec *dc, enum dec_class c);
/* The halves of a 128-bit register, which is read or written. */
bool dec_halves(struct dec *dc, const struct ptx_operand *o, bool writes, uint32_t half[2]);
/* The slot of a source or destination operand read as type t. Reports what does not fit and returns
 * 0. */
uint32_t dec_src(struct dec *dc, const struct ptx_operand *o, enum sim_type t);
uint32_t dec_dst(struct dec *dc, const struct ptx_operand *o, enum sim_type t);
/* The slot of a special register read as type t. */
uint32_t dec_special(struct dec *dc, enum ptx_sreg reg, enum sim_type t);
/* A predicate source, negation resolved into a temporary. */
uint32_t dec_pred(struct dec *dc, const struct ptx_operand *o);
/* The operand's register class; constants take the wanted one. */
enum dec_class dec_operand_class(struct dec *dc, const struct ptx_operand *o,
                                 enum dec_class wanted);
/* The value of an immediate operand of type t. */
uint64_t dec_imm(struct dec *dc, const struct ptx_operand *o, enum sim_type t);
bool dec_is_imm(const struct ptx_operand *o);
/* Is it a register that counts time? */
bool dec_is_clock(enum ptx_sreg reg);
/* The space of a memory operand, as a modifier names it. */
bool dec_space(struct dec *dc, enum ptx_mod mod, enum sim_space *space);
/* A memory operand: its register or constant slot, the offset, and whether the slot has 32 bits. */
bool dec_memory(struct dec *dc, const struct ptx_operand *m, enum sim_space space, uint32_t *slot,
                uint64_t *offset, bool *narrow);
/* One slot of 64 bits with the whole address of the operand. */
uint32_t dec_flat(struct dec *dc, const struct ptx_operand *m, enum sim_space space);
/* How an element of a type is folded into memory by .add and the like; enum sim_atom, SIM_NO_FOLD:
 * not at all. */
uint8_t dec_fold(struct dec *dc, enum ptx_mod op, enum ptx_mod t, bool shared);
/* Matrix instructions (decode_matrix.c, decode_wmma.c; sim_mma: matrix.h). Slots of the n registers
 * of an operand, written { } or, when there is one, without. */
struct sim_mma;
bool dec_group(struct dec *dc, const struct ptx_operand *o, uint32_t n, enum sim_type t,
               bool written, uint32_t *slot);
/* enum sim_element and bits of an element; false: it is not one. */
bool dec_element(enum ptx_mod t, uint8_t *element, unsigned *bits);
/* enum sim_round of an instruction. */
uint8_t dec_round(const struct ptx_inst *in);
/* How the tensor cores of an architecture add up floats. */
void dec_accumulation(struct sim_mma *m, unsigned sm, unsigned element_bits);
void dec_emit_mma(struct dec *dc, const struct sim_mma *m);
/* The address of a variable in its own state space. */
bool dec_address(struct dec *dc, const struct ptx_var *v, uint64_t *address);

/* The handler of a setp without boolean operator, or SIM_H_NONE. */
enum sim_handler_id dec_comparison(enum ptx_mod compare, enum ptx_mod type);
/* Emits handler h on the instruction's operands as its row has them. mods: rounding, .ftz, .sat are
 * the record's. */
bool dec_row(struct dec *dc, enum sim_handler_id h, bool mods);

/* The entry with the functions that it calls in their places; NULL with an error in d when that
 * can't be. */
const struct ptx_func *dec_inline(const struct sim_decode_in *in, struct diags *d);
/* Orders the records (order.c): code->rank, code->late, and what going back in a loop costs. */
void dec_order(struct dec *dc);

typedef bool (*dec_fn)(struct dec *dc);
#define SIM_FAMILY(FAMILY, function) bool function(struct dec *dc);
#include "sim/families.def"
/* fence.proxy.tensormap */
bool dec_tensor_fence(struct dec *dc);

#endif
