/* A line on stderr that says how far long work has come. For the tools' mains; see base/cli.h.
 *
 * Nothing is shown unless stderr is a terminal and a second has passed; then it is redrawn at most
 * five times a second. Call progress_clear() before printing anything else, and never inside a
 * timed region. */
#ifndef KAIO_BASE_PROGRESS_H
#define KAIO_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    const char *what;     /* "verifying saxpy/large"; the caller's, may change between steps */
    const char *detail;   /* what is being done of that: "compiling 7 of 31"; NULL: nothing more */
    uint64_t total;       /* 0: unknown, the count alone is shown */
    int64_t start, drawn; /* ns, monotonic; drawn = 0: the line is not on the screen */
    bool enabled;
};

/* quiet: never show anything. */
void progress_begin(struct progress *p, const char *what, uint64_t total, bool quiet);
void progress_step(struct progress *p, uint64_t done);
void progress_clear(struct progress *p);

#endif
