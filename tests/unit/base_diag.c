#include <config.h>

#include "base/diag.h"
#include "tap.h"

static const char *formatted(struct arena *a, const struct diags *d, bool color)
{
    struct buf b = buf_in(a);
    diags_format(d, "kaio-emit", color, &b);
    return buf_text(&b);
}

static struct span at(const struct source *s, size_t off, size_t len)
{
    return (struct span){s, off, len};
}

static const struct source *text(struct arena *a, const char *s)
{
    return source_new(a, "k.yaml", s, strlen(s));
}

static void test_caret(struct arena *a)
{
    const struct source *s = text(a, "one\n\ty[i] = x[j]\nthree\n");
    struct diags *d = diags_new(a);
    ok(!diag_error(d, at(s, 14, 1), "unknown index '%s'", "j"), "an error is false");
    diag_note(d, at(s, 0, 3), "here");
    eq_str(formatted(a, d, false),
           "k.yaml:2:11: error: unknown index 'j'\n    2 |  y[i] = x[j]\n      |           ^\n"
           "k.yaml:1:1: note: here\n    1 | one\n      | ^~~\n",
           "position, line and caret");
    eq_int(d->nerror, 1, "notes are not errors");
}

static void test_utf8(struct arena *a)
{
    const struct source *s = text(a, "\xc3\xa9\xc3\xa9 x");
    struct diags *d = diags_new(a);
    diag_warning(d, at(s, 5, 1), "here");
    eq_str(formatted(a, d, false),
           "k.yaml:1:4: warning: here\n    1 | \xc3\xa9\xc3\xa9 x\n      |    ^\n",
           "columns and carets count characters, not bytes");
}

static void test_ends(struct arena *a)
{
    struct diags *d = diags_new(a);
    const struct source *empty = text(a, ""), *s = text(a, "ab");
    diag_error(d, at(empty, 0, 0), "empty");
    diag_error(d, at(s, 2, 0), "at the end");
    diag_error(d, at(s, 99, 5), "past the end");
    diag_error(d, SPAN_NONE, "no position");
    eq_str(formatted(a, d, false),
           "k.yaml:1:1: error: empty\n"
           "k.yaml:1:3: error: at the end\n    1 | ab\n      |   ^\n"
           "k.yaml:1:3: error: past the end\n    1 | ab\n      |   ^\n"
           "kaio-emit: error: no position\n",
           "spans at the edges");
}

static void test_long_line(struct arena *a)
{
    char *line = arena_alloc(a, 100001);
    memset(line, 'x', 100000);
    struct diags *d = diags_new(a);
    diag_error(d, at(text(a, line), 50000, 10), "in the middle");
    ok(strlen(formatted(a, d, false)) < 500, "a very long line is cut");
    ok(strstr(formatted(a, d, false), "...xxx") != NULL, "and the cut is marked");
}

static void test_limit(struct arena *a)
{
    struct diags *d = diags_new(a);
    for (int i = 0; i < 1000; i++) {
        diag_error(d, SPAN_NONE, "e%d", i);
        diag_note(d, SPAN_NONE, "n%d", i);
    }
    eq_int(d->nerror, 1000, "all errors are counted");
    const char *all = formatted(a, d, false);
    ok(strstr(all, "e19\n") && strstr(all, "n19\n") && !strstr(all, "e20") && !strstr(all, "n20"),
       "the first ones are shown");
    ok(strstr(all, "980 more errors not shown") != NULL, "the others are mentioned");
}

static void test_terminal(struct arena *a)
{
    const struct source *s = source_new(a, "a\033[2Jb", "k\033[2J\n", 6);
    struct diags *d = diags_new(a);
    diag_error(d, at(s, 0, 1), "unknown key '%s'", "\033]0;title\007\x9b");
    ok(!strpbrk(formatted(a, d, false), "\033\007"),
       "control characters of the input don't reach the terminal");
    ok(strstr(formatted(a, d, true), "\033[1;31merror:\033[0m") != NULL, "colour does");
}

static void test_nearest(void)
{
    static const char *const list[] = {"kernel", "params", "compute", "body", NULL};
    eq_str(diag_nearest("kernle", 6, list), "kernel", "two letters swapped");
    eq_str(diag_nearest("parms", 5, list), "params", "one left out");
    eq_str(diag_nearest("bodyx", 4, list), "body", "only len bytes are read");
    eq_str(diag_nearest("schedule", 8, list), NULL, "nothing is near");
    eq_str(diag_nearest("", 0, list), NULL, "nothing is near the empty name");
    eq_str(diag_nearest("b", 1, list), NULL, "a name that shares nothing");
}

int main(void)
{
    struct arena *a = arena_new();
    test_caret(a);
    test_utf8(a);
    test_ends(a);
    test_long_line(a);
    test_limit(a);
    test_terminal(a);
    test_nearest();
    arena_free(a);
    return tap_done();
}
