/* Any bytes as a PTX module: what is read prints, and the printed text is read as the same text. */
#include <config.h>

#include "ptx/ptx.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct ptx_module *parse(struct arena *a, const char *text, size_t len, struct diags *d)
{
    return ptx_parse(a, source_new(a, "fuzz.ptx", text, len), d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    struct buf once = buf_in(a), twice = buf_in(a), report = buf_in(a);
    struct ptx_module *m = parse(a, (const char *)data, size, d);
    if (!m && d->nerror == 0)
        abort();
    if (m) {
        ptx_validate(m, d);
        ptx_print(m, &once);
        struct diags *none = diags_new(a);
        struct ptx_module *again = parse(a, buf_text(&once), once.len, none);
        if (!again) {
            diags_format(none, "fuzz", false, &report);
            fputs(buf_text(&report), stderr);
            abort();
        }
        ptx_print(again, &twice);
        if (once.len != twice.len || memcmp(buf_text(&once), buf_text(&twice), once.len) != 0) {
            fprintf(stderr, "%s\n---- prints as\n%s\n", buf_text(&once), buf_text(&twice));
            abort();
        }
    }
    diags_format(d, "fuzz", false, &report);
    arena_free(a);
    return 0;
}
