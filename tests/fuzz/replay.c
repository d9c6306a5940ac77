/* Runs a fuzz target over the inputs kept in its corpus, so that 'make check' repeats every input
 * that once mattered: tests/fuzz/corpus/NAME/ for a program called NAME, or the files named as
 * arguments. A crash or a sanitizer report is the failure. */
#include <config.h>

#include "../unit/tap.h"

#include <dirent.h>
#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool replay(const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data = NULL;
    size_t n = 0, cap = 0;
    if (!f)
        return false;
    do {
        if (n == cap)
            data = realloc(data, cap = cap ? cap * 2 : 4096);
        if (!data)
            abort();
        n += fread(data + n, 1, cap - n, f);
    } while (!feof(f) && !ferror(f));
    bool good = !ferror(f);
    fclose(f);
    /* an exact copy, so that AddressSanitizer sees the first byte past the end */
    uint8_t *exact = malloc(n ? n : 1);
    if (!exact)
        abort();
    memcpy(exact, data, n);
    free(data);
    LLVMFuzzerTestOneInput(exact, n);
    free(exact);
    return good;
}

static int visible(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

int main(int argc, char **argv)
{
    const char *src = getenv("KAIO_SRCDIR");
    const char *name = strrchr(argv[0], '/');
    char path[4096];
    struct dirent **list;
    LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    ok(true, "empty input");
    for (int i = 1; i < argc; i++)
        ok(replay(argv[i]), "%s", argv[i]);
    if (argc > 1)
        return tap_done();
    name = name ? name + 1 : argv[0];
    snprintf(path, sizeof path, "%s/tests/fuzz/corpus/%s", src ? src : ".", name);
    int n = scandir(path, &list, visible, alphasort);
    ok(n > 0, "corpus '%s' has inputs (%s)", path, n < 0 ? strerror(errno) : "found");
    for (int i = 0; i < n; i++) {
        char file[8192];
        snprintf(file, sizeof file, "%s/%s", path, list[i]->d_name);
        ok(replay(file), "%s", list[i]->d_name);
        free(list[i]);
    }
    if (n >= 0)
        free(list);
    return tap_done();
}
