/* The rows of isa.def, taken apart: what the builder, the parser, the printer and the validator
 * match against. Private to lib/ptx.
 *
 * The table is made from the constant text of isa.def on first use (once, whichever thread comes
 * first) and never changes afterwards.
 */
#ifndef KAIO_PTX_TABLE_H
#define KAIO_PTX_TABLE_H

#include "ptx/ptx.h"

/* One word that may stand in a slot of a mnemonic. */
struct ptx_alt {
    uint16_t word;    /* number of the text; equal text, equal number */
    uint16_t mod;     /* enum ptx_mod; PTX_NONE for a word that is only written (sync) */
    uint16_t min_ptx; /* 0: no more than the row's own minimum */
    uint16_t min_sm;  /* as in isa.def */
};

struct ptx_slot {
    const struct ptx_alt *alt;
    uint16_t nalt;
    uint8_t cls; /* enum ptx_mod_class; PTX_MC_COUNT for a word that is only written */
    bool optional;
    bool has_minima; /* some of its words have their own */
};

/* One operand of a row; the letters are isa.def's. */
struct ptx_spec {
    char kind; /* a letter, or '=' for a plain value of the given type */
    bool dest;
    bool optional;  /* ? */
    bool sink;      /* _ allowed */
    uint16_t type;  /* kind '=': enum ptx_mod */
    uint16_t group; /* kind '=': number of values in { }, 0: no braces */
};

struct ptx_row {
    const char *name, *pattern, *operands;
    size_t name_len;
    uint16_t min_ptx, min_sm;
    uint8_t nslot, nspec;
    uint8_t writes;  /* bit k: operand k */
    bool has_minima; /* some slot has */
    bool is_plain;   /* every operand is always there */
    const struct ptx_slot *slot;
    struct ptx_spec spec[PTX_MAX_OPERANDS];
};

const struct ptx_row *ptx_row(enum ptx_op op);

/* A piece of a mnemonic: words[0] is the name. */
struct ptx_word {
    const char *text;
    size_t len;
};
enum { PTX_MAX_WORDS = 24 };

/* Sets *found from the first row that fits the words (in the row's order; else in any order), and
 * noperand if any row takes that many (PTX_ANY_COUNT: don't ask). Returns false when no row fits,
 * and *found stays. */
enum { PTX_ANY_COUNT = 99 };
bool ptx_match(const struct ptx_word *words, size_t n, size_t noperand, struct ptx_spelling *found);
/* The instruction that s spells, without operands; its words are those of s. */
static inline struct ptx_inst ptx_as_spelled(const struct ptx_spelling *s)
{
    return (struct ptx_inst){.op = s->op, .guard = -1, .mod = s->words.mod, .type = s->words.type};
}
/* Splits "add.rn.f32"; 0 when it has too many words. */
size_t ptx_split(const char *mnemonic, size_t len, struct ptx_word words[PTX_MAX_WORDS]);
/* The n rows of that name, or NULL; all names, NULL at the end; the text of a word by its
 * number. */
const struct ptx_row *ptx_rows_of(const char *name, size_t len, size_t *n);
const char *const *ptx_names(void);
const char *ptx_word_text(unsigned word);
/* The valid mnemonic nearest to the words, or NULL when nothing is near. */
const char *ptx_nearest(struct arena *a, const struct ptx_word *words, size_t n);

/* Is that operand of the row there, given the modifiers written (h, k and y)? Optional ones count
 * as there. */
bool ptx_spec_applies(const struct ptx_inst *in, const struct ptx_spec *spec);
/* The fewest and the most operands that in, by its row and modifiers, takes. */
void ptx_operand_range(const struct ptx_inst *in, size_t *least, size_t *most);
/* The specification of each of the in->noperand operands (optional ones are filled from the left).
 * Returns false when the number does not fit. */
bool ptx_operand_specs(const struct ptx_inst *in, const struct ptx_spec *specs[PTX_MAX_OPERANDS]);

/* The words of in's mnemonic in order, name not included; returns their number. */
size_t ptx_mnemonic_words(const struct ptx_inst *in, const char *words[PTX_MAX_WORDS]);

/* The special register of that name, or PTX_SR_COUNT. */
enum ptx_sreg ptx_sreg_find(const char *name, size_t len);
/* The modifier of class TYPE of that text, without the dot, or PTX_NONE; likewise for any class. */
enum ptx_mod ptx_type_find(const char *text, size_t len);
enum ptx_mod ptx_mod_find(const char *text, size_t len, enum ptx_mod_class cls);

/* ld, st, cvt: registers may be larger than the type. */
bool ptx_op_wide(enum ptx_op op);
/* Of a load, store or atomic: the type times the vector's length. */
unsigned ptx_access_bits(const struct ptx_inst *in);
/* The registers of an operand g: the accumulator of a wgmma. */
unsigned ptx_group_length(const struct ptx_inst *in);

/* The newest thing that the instruction's row and words ask for; sm as isa.def writes it. */
struct ptx_needs {
    unsigned ptx, sm;
};
void ptx_inst_needs(const struct ptx_inst *in, struct ptx_needs *needs);

/* Mnemonics met lately. Those of a module are few, and each is met thousands of times: what goes by
 * the mnemonic alone is found out once for most of them. */
enum { PTX_SEEN = 256 };
struct ptx_seen {
    enum ptx_op op;
    const uint16_t *mod; /* NULL: none yet */
};
/* Where the instruction's mnemonic is in a table of that length, or where it belongs in place of
 * another one. */
static inline size_t ptx_seen_at(const struct ptx_inst *in)
{
    const uint64_t h = (uint64_t)(uintptr_t)in->mod >> 4 ^ (uint64_t)in->op << 40;
    return (h * 0x9e3779b97f4a7c15u >> 32) % PTX_SEEN;
}
/* Was it met before? It is from now on. */
static inline bool ptx_see(struct ptx_seen seen[PTX_SEEN], const struct ptx_inst *in)
{
    struct ptx_seen *const s = &seen[ptx_seen_at(in)];
    const bool before = s->mod == in->mod && s->op == in->op;
    *s = (struct ptx_seen){in->op, in->mod};
    return before;
}

/* Minima as isa.def writes them: does the target have it? what to call it in a message ("sm_80",
 * "sm_90a"). */
bool ptx_sm_allows(unsigned min_sm, unsigned sm, char suffix);
const char *ptx_sm_text(struct arena *a, unsigned min_sm);

/* Like ptx_target_find(), targets too old to emit for included. */
const struct ptx_target *ptx_target_any(const char *name, size_t len);

#endif
