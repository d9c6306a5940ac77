/* schedule: which strategy, and what it says to that one. Private to lib/lower. */
#ifndef KAIO_LOWER_SCHEDULE_H
#define KAIO_LOWER_SCHEDULE_H

#include "lower/strategy.h"

extern const struct strategy *const strategies[]; /* in the order in which they are tried */
extern const size_t nstrategies;

/* A strategy, and what it found the stage to be. */
struct choice {
    const struct strategy *by; /* NULL: none */
    void *form;
};

/* The strategy that the schedule names; *good is false after an error. NULL: it names none. */
const struct strategy *schedule_named(struct cg *g, bool *good);
/* The one that takes what no other does. */
const struct strategy *schedule_last(void);
/* The stage's form, if the strategy fits it. NULL: it does not, and why says what the stage
 * lacks. */
void *schedule_analyse(struct cg *g, const struct strategy *st, const struct lower_stage *s,
                       struct buf *why);
/* The first but the last that fits the stage and takes all that the schedule says; if there is
 * none, the first that fits. Says to --explain what the others lack. */
struct choice schedule_first(struct cg *g, const struct lower_stage *s);
/* The same of those that take whole dimensions, without a word. */
struct choice schedule_first_whole(struct cg *g, const struct lower_stage *s);
/* Does any but the last fit? */
bool schedule_fits(struct cg *g, const struct lower_stage *s);
/* Has the strategy all that the schedule says, with such values? */
bool schedule_takes(const struct cg *g, const struct strategy *st);
/* Does the schedule want this one: by its name or, where it names none, by words that it takes? */
bool schedule_asks(const struct cg *g, const struct strategy *st);
/* Does the schedule name this one? */
bool schedule_names(const struct cg *g, const struct strategy *st);
const struct spec_option *schedule_option(const struct cg *g, const char *key); /* or NULL */
/* The place where the schedule says this; the kernel's name where it does not. */
struct span schedule_span(const struct cg *g, const char *key);
/* The strategy's options, all 0; and as the schedule says them: NULL after an error. */
void *schedule_nothing(struct cg *g, const struct strategy *st);
void *schedule_read(struct cg *g, const struct strategy *st);
/* False, after an error: what the schedule says was taken by none, and the last choice was st. */
bool schedule_refuse(struct cg *g, const struct strategy *st);

#endif
