/* Suppressions: findings that are known, and are neither to be reported nor to fail a run.
 *
 * A rule a line, of words: a pattern for the kind of the finding, then conditions, which all must
 * hold.
 *
 *     # the counters may be off by a few
 *     race            entry=count*  buffer=bins
 *     uninitialised   file=reduce.cu  line=31-40
 *
 * entry=, buffer= and file= have patterns as a shell's (fnmatch(3)); a file without a '/' is one in
 * whatever folder. file and line are those of the PTX or of the source that .loc names, of either
 * access of a race, and both of one place. Quotes keep blanks in a word together; # begins a
 * comment.
 */
#ifndef KAIO_BASE_SUPPRESS_H
#define KAIO_BASE_SUPPRESS_H

#include "base/finding.h"

struct suppression {
    struct span span; /* of the rule */
    const char *kind;
    const char *entry, *buffer, *file; /* NULL: any */
    uint32_t first, last;              /* lines; last 0: any */
    uint64_t used;                     /* findings that it suppressed */
};

struct suppressions {
    VEC(struct suppression) list;
};

/* Adds the rules of a text. kinds: those that there are, ending with NULL. False with errors in
 * d. */
bool suppress_read(struct arena *a, struct suppressions *s, const struct source *text,
                   const char *const *kinds, struct diags *d);
/* The first rule that the finding meets, whose use is counted; NULL: none. */
struct suppression *suppress_find(struct suppressions *s, const struct finding *f);
/* A note for each rule that might have been used for one of these entries (NULL after the last) and
 * was not. */
void suppress_unused(const struct suppressions *s, const char *const *entry, struct diags *d);
/* A rule for the finding, as suppress_read() takes it, with a newline. */
void suppress_write(const struct finding *f, struct buf *out);

#endif
