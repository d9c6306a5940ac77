/* The arguments of a run as a line of words, quoted as in a shell, by few rules.
 *
 *   blank            spaces, tabs and carriage returns part words
 *   #                where a word could begin: the rest of the line is a comment
 *   '...'            each character stands for itself
 *   "..."            so it does, but for \" and \\
 *   \c               outside of quotes: c, whatever it is
 *
 * A word is NAME=VALUE, or --kernel=NAME.
 */
#ifndef KAIO_RUN_LINE_H
#define KAIO_RUN_LINE_H

#include "run/args.h"

struct line {
    const char *kernel; /* NULL: the line names none */
    VEC(struct run_arg) args;
};

/* text: without its newline. False with an error in d. */
bool line_read(struct arena *a, const char *text, size_t len, struct line *l, struct diags *d);
/* The arguments of the line, and of the others those that it does not replace by one of the same
 * name. */
void line_complete(struct arena *a, struct line *l, const struct run_arg *other, size_t n);

#endif
