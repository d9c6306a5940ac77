/* What a strategy is given, what it offers, and what it says of its sums. Private to lib/lower. */
#ifndef KAIO_LOWER_STRATEGY_H
#define KAIO_LOWER_STRATEGY_H

#include "lower/candidates.h"
#include "lower/option.h"

/* A part of a spec's equations that is computed together. */
struct lower_stage {
    const struct lang_equation *const
        *eq; /* what define out and inout parameters, or stored intermediates */
    uint32_t n;
    const char *entry; /* the name of the first entry; others by lower_entry_name() */
};

/* Finds what the stage is for the strategy: its form, which proves that it fits and which lower()
 * takes. NULL: it does not fit, and why (or NULL: nobody asks) says what it lacks. Generates
 * nothing. A form refers to the stage, and it is true until something is stored or outlined. */
typedef void *strategy_analyse(struct cg *g, const struct lower_stage *s, struct buf *why);
/* Generates the code of what analyse() found, with its launches. options: the strategy's own, as
 * schedule_read() made them. False after an error. */
typedef bool strategy_lower(struct cg *g, void *form, const void *options);

/* Intermediates that a stage is better given, in the order in which they are stored. */
enum { LOWER_TURNED = 8 };
struct lower_turned {
    const struct lang_equation *eq[LOWER_TURNED];
    uint32_t n;
    bool computed; /* they are no buffers in another order */
};
/* Finds buffers that the stage reads in such an order that bringing them into another, by launches
 * of their own, takes less time than reading them as they are; or what it computes again and again,
 * where storing that takes less. Reads of the intermediates stand for
 * others from then on (cg_view). False: there are none. */
typedef bool strategy_turn(struct cg *g, const struct lower_stage *s, void *form,
                           const void *options, struct lower_turned *out);

/* A way of turning equations into code. */
struct strategy {
    const char *name;
    const char *takes; /* which stages, a phrase: for the manual */
    const struct strategy_option *options;
    size_t noption;
    size_t options_size; /* bytes of the struct that they are read into */
    strategy_analyse *analyse;
    strategy_lower *lower;
    strategy_candidates *candidates;
    strategy_turn *turn; /* or NULL */
    /* analyse() sees to it that no element of an inout is read by one thread after another wrote
     * it; else only stages that read just the elements they write are given to it */
    bool minds_inouts;
    /* The terms of its sums are products: such a sum is worth a stage of its own, and what is left
     * of the equations is best done at once after it. */
    bool takes_products;
    /* Its reductions are prefixes: what it does not compute with others is worth a stage of its
     * own, too. */
    bool takes_prefixes;
    /* It computes intermediates of more elements than it stores, as it goes: a stage that it takes
     * is better left whole. */
    bool streams;
    /* Ranges of its reductions are whole dimensions: others are worth being made so, with a
     * condition. */
    bool takes_whole;
};

#define STRATEGY(name) extern const struct strategy name##_strategy;
#include "lower/strategies.def"
#undef STRATEGY

enum { NAIVE_BLOCK = 256 };
/* The code of an entry that has begun, of `block` threads; the launch's grid. */
struct lang_expr *naive_code(struct cg *g, const struct lower_stage *gr, uint32_t block);
/* body.c */
bool body_lower(struct cg *g);

/* What follows is launched behind what was lowered so far, for the same stage: a step of its own,
 * whose first entry this is. */
void lower_next_step(struct cg *g, const char *entry, const struct strategy *by);

/* The product of a tensor's dimensions: a constant, a dimension or computed at launch; and as the
 * launch has it, for a grid. */
struct cg_val shape_total(struct cg *g, const struct lang_symbol *t, uint32_t divide,
                          struct lang_expr **at_launch);
/* ctaid.x * elements_per_block + tid.x * elements_per_thread, an i64. */
struct cg_val thread_start(struct cg *g, uint32_t per_block, uint32_t per_thread);
/* "KERNEL_part", made unlike the name of every kernel and entry of the module. */
const char *lower_entry_name(struct cg *g, const char *part);
/* No term of the stage's sums goes through more than this many roundings on its way into the sum;
 * NULL: not known. The contract says the largest of all. */
void lower_depth(struct cg *g, struct lang_expr *e);
/* What the stage's sums by tensor cores lose beside that, in units of 2^-24 (lib/ref/ref.h derives
 * them). The contract says the largest. For k products of
 *
 *   f16, bf16, tf32   6 * ceil_div(k, 4)        on every target
 *   tf32x3            36 * ceil_div(n, 4)       three products of n terms, from 0 each time;
 *                                               lower_products(): 24, 72 with bf16
 *   f16x3             20 * ceil_div(n, 16) + 4  the same of f16; lower_products(): 25
 *   e4m3, e5m2        34816 * ceil_div(k, 16)   by their own instruction; as f16: as f16
 *   i8, u8            nothing: they are exact
 *
 * and lower_depth() counts the additions outside of mma.sync alone, at least 1: the parts of a
 * split sum, and where mma.sync starts from 0 every so many k and its result is added to others. */
void lower_truncation(struct cg *g, struct lang_expr *e);
void lower_products(struct cg *g, struct lang_expr *e);
/* And below what power of two weights are lost, one for all of the kernel. */
void lower_weights(struct cg *g, struct lang_expr *e);
/* Tells of an entry, to --explain: "  NAME: HOW MORE, when WHEN" in words, and in parts. */
void lower_tell(struct cg *g, const struct lower_entry *e);
/* Notes it in --explain's parts alone. */
void lower_note(struct cg *g, const struct lower_entry *e);
/* Why something better was not taken, to --explain in parts. */
void lower_missed(struct cg *g, const char *what, const char *why);
/* False; says in why (NULL: nobody asks) what a stage lacks for a strategy at s. */
bool lower_lacks(struct buf *why, struct span s, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
