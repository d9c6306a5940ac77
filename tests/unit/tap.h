/* Unit tests that print TAP, which 'make check' reads.
 *
 *     int main(void)
 *     {
 *         ok(1 + 1 == 2, "addition");            // the condition's text is shown when it fails
 *         eq_int(strlen("abc"), 3, "strlen");    // shows both values when they differ
 *         eq_str(name, "x", "name of %d", i);
 *         return tap_done();
 *     }
 *
 * A check is a statement about behaviour; inside a loop over thousands of values count the failures
 * and check the count once. Each check continues after a failure and yields whether it passed.
 */
#ifndef KAIO_TESTS_TAP_H
#define KAIO_TESTS_TAP_H

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int tap_count, tap_failed;

__attribute__((format(printf, 4, 0), unused)) static bool
tap_vcheck(bool pass, const char *file, int line, const char *fmt, va_list ap)
{
    printf("%sok %d - ", pass ? "" : "not ", ++tap_count);
    vprintf(fmt, ap);
    putchar('\n');
    if (!pass) {
        tap_failed++;
        printf("# failed at %s:%d\n", file, line);
    }
    fflush(stdout);
    return pass;
}

__attribute__((format(printf, 4, 5), unused)) static bool tap_check(bool pass, const char *file,
                                                                    int line, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    tap_vcheck(pass, file, line, fmt, ap);
    va_end(ap);
    return pass;
}

__attribute__((format(printf, 1, 2), unused)) static void tap_note(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("# ", stdout);
    vprintf(fmt, ap);
    putchar('\n');
    va_end(ap);
}

static inline bool tap_same_str(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Equal as a user sees it: NaN equals NaN, and zeros of different sign differ. */
static inline bool tap_same_dbl(double a, double b)
{
    return isnan(a) ? isnan(b) != 0 : memcmp(&a, &b, sizeof a) == 0;
}

__attribute__((format(printf, 5, 6), unused)) static bool
tap_int(intmax_t got, intmax_t want, const char *file, int line, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    bool pass = tap_vcheck(got == want, file, line, fmt, ap);
    va_end(ap);
    if (!pass)
        tap_note("got %" PRIdMAX ", want %" PRIdMAX, got, want);
    return pass;
}

__attribute__((format(printf, 5, 6), unused)) static bool
tap_str(const char *got, const char *want, const char *file, int line, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    bool pass = tap_vcheck(tap_same_str(got, want), file, line, fmt, ap);
    va_end(ap);
    if (!pass)
        tap_note("got  \"%s\"\n# want \"%s\"", got ? got : "(null)", want ? want : "(null)");
    return pass;
}

__attribute__((format(printf, 5, 6), unused)) static bool
tap_dbl(double got, double want, const char *file, int line, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    bool pass = tap_vcheck(tap_same_dbl(got, want), file, line, fmt, ap);
    va_end(ap);
    if (!pass)
        tap_note("got %.17g (%a), want %.17g (%a)", got, got, want, want);
    return pass;
}

/* Arguments are evaluated once. */
#define ok(cond, ...)                                   \
    (tap_check((cond), __FILE__, __LINE__, __VA_ARGS__) \
         ? true                                         \
         : (tap_note("not true: %s", #cond), false))
#define eq_int(got, want, ...) \
    tap_int((intmax_t)(got), (intmax_t)(want), __FILE__, __LINE__, __VA_ARGS__)
#define eq_str(got, want, ...) tap_str((got), (want), __FILE__, __LINE__, __VA_ARGS__)
#define eq_dbl(got, want, ...) tap_dbl((got), (want), __FILE__, __LINE__, __VA_ARGS__)

/* A check that cannot be made here. */
__attribute__((unused)) static void tap_skip(const char *what, const char *why)
{
    printf("ok %d - %s # SKIP %s\n", ++tap_count, what, why);
}

/* The plan and the exit status: the last thing main returns. */
__attribute__((unused)) static int tap_done(void)
{
    printf("1..%d\n", tap_count);
    return tap_failed ? 1 : 0;
}

#endif
