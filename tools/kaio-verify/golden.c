/* --golden WANT GOT: two files, the same tensor. */
#include <config.h>

#include "verify.h"

#include "data/load.h"

static bool load_tensor(struct arena *a, const char *path, struct loaded *l, struct diags *d)
{
    if (!load_file(a, path, l, d) || (l->raw && !load_raw(a, l, LOAD_ALL, d)))
        return false;
    if (l->raw) {
        l->type = DT_U8;
        l->rank = 1;
        l->dim[0] = l->bytes;
    }
    return true;
}

static bool same_shape(const struct loaded *a, const struct loaded *b)
{
    bool same = a->rank == b->rank;
    for (uint32_t k = 0; same && k < a->rank; k++)
        same = a->dim[k] == b->dim[k];
    return same && loaded_type(a) == loaded_type(b);
}

static bool view(struct arena *a, const struct loaded *l, struct buffer *b, struct diags *d)
{
    enum dtype t = l->raw ? DT_U8 : loaded_type(l);
    if (t == DT_VOID)
        return diag_error(d, SPAN_NONE, "'%s' holds %s, which can't be compared", l->name,
                          l->type_name);
    if (!l->raw)
        return loaded_as(a, l, t, b) ||
               diag_error(d, SPAN_NONE, "'%s' can't be read as %s", l->name, dtype_name(t));
    if (!buffer_shape(b, t, 1, l->dim))
        return diag_error(d, SPAN_NONE, "'%s' is too large", l->name);
    b->data = (void *)(uintptr_t)l->data;
    return true;
}

int verify_golden(struct cli *cli, const struct options *opt)
{
    if (cli->argc != 2)
        cli_usage_error(cli, "--golden compares two files: WANT and GOT");
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    struct loaded want, got;
    struct buffer w, g;
    int status = CLI_BAD_INPUT;
    if (load_tensor(a, cli->argv[0], &want, d) && load_tensor(a, cli->argv[1], &got, d)) {
        if (!same_shape(&want, &got)) {
            struct buf b = buf_in(a);
            buf_printf(&b, "'%s' is ", got.name);
            loaded_print(&got, &b);
            buf_printf(&b, ", but '%s' is ", want.name);
            loaded_print(&want, &b);
            diag_error(d, SPAN_NONE, "%s", buf_text(&b));
        } else if (view(a, &want, &w, d) && view(a, &got, &g, d)) {
            struct compare_result res;
            struct rows rows = {.format = opt->format,
                                .arena = a,
                                .out = stdout,
                                .color = cli->color_out,
                                .tolerance = opt->tolerance};
            compare_arrays(w.type, w.rank, w.dim, w.data, g.data, &opt->tolerance, &res);
            static const enum row_status of[] = {ROW_PASS, ROW_FAIL, ROW_MISTRUST};
            rows_begin(&rows);
            rows_add(&rows, &(struct row){.status = of[res.status],
                                          .output = got.name,
                                          .result = &res,
                                          .why = res.why});
            status = rows_end(&rows);
        }
    }
    int reported = cli_report(cli, d);
    arena_free(a);
    return reported ? reported : status;
}
