/* Golden diagnostics: every tests/diag/NAME.yaml is read as kaio-emit reads it, and what is said
 * about it must be tests/diag/NAME.err to the byte (no such file: nothing may be said).
 * KAIO_BLESS=1 writes the files anew. With arguments: prints what is said about those files. */
#include <config.h>

#include "spec/spec.h"
#include "tap.h"

#include <dirent.h>

static char *slurp(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    char *text = malloc(1 << 20);
    if (!text)
        abort();
    *n = fread(text, 1, (1 << 20) - 1, f);
    text[*n] = '\0';
    fclose(f);
    return text;
}

/* The diagnostics as text in the arena; *good: was a spec made? */
static const char *diagnose(struct arena *a, const char *path, bool *good)
{
    size_t n = 0;
    char *text = slurp(path, &n);
    const char *base = strrchr(path, '/');
    struct diags *d = diags_new(a);
    struct buf b = buf_in(a);
    if (!text)
        return NULL;
    const struct source *src = source_new(a, base ? base + 1 : path, text, n);
    free(text);
    *good = spec_read(a, src, NULL, 0, d) != NULL;
    diags_format(d, "spec", false, &b);
    if (*good != (d->nerror == 0))
        buf_puts(&b, "*** an error without a message, or a message without an error\n");
    return buf_text(&b);
}

static void check(const char *dir, const char *name)
{
    struct arena *a = arena_new();
    char path[4096];
    size_t n = 0;
    bool good;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    const char *got = diagnose(a, path, &good);
    char *dot = strrchr(path, '.');
    strcpy(dot, ".err");
    if (getenv("KAIO_BLESS")) {
        remove(path);
        FILE *f = *got ? fopen(path, "wb") : NULL;
        if (f) {
            fputs(got, f);
            fclose(f);
        }
    }
    char *want = slurp(path, &n);
    if (!tap_check(strcmp(got, want ? want : "") == 0, __FILE__, __LINE__, "%s", name))
        tap_note("got:\n%s", got);
    free(want);
    arena_free(a);
}

static int is_yaml(const struct dirent *e)
{
    const char *dot = strrchr(e->d_name, '.');
    return dot && strcmp(dot, ".yaml") == 0;
}

int main(int argc, char **argv)
{
    const char *top = getenv("KAIO_SRCDIR");
    char dir[2048];
    struct dirent **list;
    for (int i = 1; i < argc; i++) {
        struct arena *a = arena_new();
        bool good;
        const char *text = diagnose(a, argv[i], &good);
        fputs(text ? text : "cannot be read\n", stdout);
        arena_free(a);
    }
    if (argc > 1)
        return 0;
    snprintf(dir, sizeof dir, "%s/tests/diag", top ? top : ".");
    int n = scandir(dir, &list, is_yaml, alphasort);
    ok(n > 80, "%d inputs in '%s'", n, dir);
    for (int i = 0; i < n; i++) {
        check(dir, list[i]->d_name);
        free(list[i]);
    }
    if (n >= 0)
        free(list);
    return tap_done();
}
