/* What a schedule may say to a strategy: rows of a table, by which values are read, told in
 * messages and listed for the manual. Private to lib/lower. */
#ifndef KAIO_LOWER_OPTION_H
#define KAIO_LOWER_OPTION_H

#include "lower/cg/cg.h"

struct option_word {
    const char *text;
    uint32_t value;
};

enum {
    OPTION_NUMBER = 1 << 0,   /* from least to most */
    OPTION_POWER = 1 << 1,    /* a power of two from least to most */
    OPTION_MULTIPLE = 1 << 2, /* a multiple of least up to most */
    OPTION_LIST = 1 << 3,     /* several numbers from 1 to most */
    OPTION_WORD = 1 << 4,
};

/* One option. Its value is one uint32_t, or `count` of them, at `offset` in the strategy's own
 * struct of options, which is all 0 where the schedule says nothing. A single number where there
 * may be several is the first of them, and the others are 1. */
struct strategy_option {
    const char *key;
    unsigned is;          /* OPTION_...: the forms that a value may have */
    uint32_t least, most; /* of numbers */
    size_t offset;
    const char *help;                /* what it is, a phrase */
    uint32_t count;                  /* of numbers in a list; 0: 1 */
    const char *list;                /* the form of a list: "[ROWS, COLUMNS]" */
    const struct option_word *words; /* .text is NULL at the end */
};

/* "a number from 1 to 16 or [ROWS, COLUMNS], each from 1 to 16" */
const char *option_values(struct arena *a, const struct strategy_option *o);
bool option_takes(const struct strategy_option *o, const char *text);
/* Reads what the schedule says into the strategy's options; false after an error. */
bool option_read(struct cg *g, const struct strategy_option *o, const struct spec_option *said,
                 void *options);

#endif
