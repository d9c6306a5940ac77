#include <config.h>

#include "base/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static const int64_t SECOND = 1000000000;

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * SECOND + t.tv_nsec;
}

static bool is_terminal(void)
{
    const char *term = getenv("TERM");
    return isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}

void progress_begin(struct progress *p, const char *what, uint64_t total, bool quiet)
{
    *p = (struct progress){
        .what = what, .total = total, .start = now(), .enabled = !quiet && is_terminal()};
}

/* A line that is as wide as the terminal would wrap, and could not be redrawn. */
static int line_width(void)
{
    struct winsize w;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 8)
        return w.ws_col - 1;
    return 79;
}

void progress_step(struct progress *p, uint64_t done)
{
    if (!p->enabled)
        return;
    int64_t t = now();
    if (t - p->start < SECOND || (p->drawn && t - p->drawn < SECOND / 5))
        return;
    char line[256];
    double seconds = (double)(t - p->start) / 1e9;
    if (p->total)
        snprintf(line, sizeof line, "%s: %" PRIu64 "/%" PRIu64 " (%.0f%%), %.0f s, %.3g/s", p->what,
                 done, p->total, 100.0 * (double)done / (double)p->total, seconds,
                 (double)done / seconds);
    else
        snprintf(line, sizeof line, "%s: %" PRIu64 ", %.0f s", p->what, done, seconds);
    size_t n = strlen(line);
    if (p->detail)
        snprintf(line + n, sizeof line - n, "; %s", p->detail);
    fprintf(stderr, "\r\033[K%.*s", line_width(), line);
    fflush(stderr);
    p->drawn = t;
}

void progress_clear(struct progress *p)
{
    if (p->drawn) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
    p->drawn = 0;
}
