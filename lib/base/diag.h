/* Input text with positions, and diagnostics that point into it.
 *
 * A source is a whole input (a YAML file, a PTX module, a command-line argument); a span is a byte
 * range of it. Every token, AST node and PTX instruction carries the span it came from, so that any
 * later stage can report   file:line:column: error: text   with the line and a caret under it. The
 * library never prints: it adds to a list, and the tool prints the list.
 */
#ifndef KAIO_BASE_DIAG_H
#define KAIO_BASE_DIAG_H

#include "base/arena.h"
#include "base/buf.h"

#include <stdio.h>

struct source {
    const char *name; /* as the user gave it; "<stdin>" for standard input */
    const char *text; /* NUL-terminated, may also contain NULs */
    size_t len;
};

struct span {
    const struct source *src; /* NULL: no position (a message about the run as a whole) */
    size_t off, len;          /* bytes */
};

/* From the start of a to the end of b (same source). */
struct span span_join(struct span a, struct span b);
/* A string that did not come from a file (a command-line argument) as a source. Copies both
 * strings. */
const struct source *source_new(struct arena *a, const char *name, const char *text, size_t len);
struct span source_all(const struct source *src);

struct line_col {
    size_t line, col; /* from 1; columns count characters (UTF-8 code points), as editors do */
};
struct line_col span_line_col(struct span s);

enum diag_level { DIAG_NOTE, DIAG_WARNING, DIAG_ERROR };

struct finding;
struct finding_summary;

struct diag {
    enum diag_level level;
    struct span span;
    char *text;       /* lower case, no full stop */
    const char *kind; /* what a program may go by: "race"; a string that stays. NULL: of no kind */
    /* all of it in parts (base/finding.h), of what the simulator found; NULL: there is only the
     * text */
    const struct finding *finding;
    const struct finding_summary *summary; /* of a note that belongs to no other diagnostic */
};

enum { DIAG_LIMIT = 20 }; /* errors kept; the rest are counted */

struct diags {
    struct arena *arena;
    VEC(struct diag) list; /* a note belongs to the error or warning before it */
    size_t nerror, nwarning;
    size_t limit; /* DIAG_LIMIT, unless the owner raises it */
};

struct diags *diags_new(struct arena *a);
/* Returns false, so that a check can end with  return diag_error(...). */
bool diag_error(struct diags *d, struct span s, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void diag_warning(struct diags *d, struct span s, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* More about the diagnostic just added: where the other thing is, how to mend it. */
void diag_note(struct diags *d, struct span s, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The kind of the error or warning last added. */
void diag_kind(struct diags *d, const char *kind);
/* Those of `more` behind those of d. */
void diags_append(struct diags *d, const struct diags *more);
static const struct span SPAN_NONE = {0};

/* Everything in the list as text: for each diagnostic the position, the level and the message, then
 * the source line and a caret line. color wraps parts in ANSI sequences. prog ("kaio-emit") stands
 * in for the position where there is none. */
void diags_format(const struct diags *d, const char *prog, bool color, struct buf *out);

/* The candidate nearest to name, for "did you mean", or NULL: edit distance at most 2, or 1 for a
 * name of under 4 characters, and less than the name's length. list ends with NULL. */
const char *diag_nearest(const char *name, size_t len, const char *const *list);

#endif
