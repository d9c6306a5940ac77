/* --golden WANT GOT: two files, the same tensor. */
#include <config.h>

#include "verify.h"

#include "data/load.h"

#include <math.h>

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

static bool is_float(const struct loaded *l)
{
    return !l->raw && loaded_type(l) != DT_VOID && dtype_is_float(loaded_type(l));
}

/* Of one shape, and of one type or of two types of floats. */
static bool are_alike(const struct loaded *a, const struct loaded *b)
{
    bool same = a->rank == b->rank;
    for (uint32_t k = 0; same && k < a->rank; k++)
        same = a->dim[k] == b->dim[k];
    return same && (loaded_type(a) == loaded_type(b) || (is_float(a) && is_float(b)));
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

/* Rounds it to a type, from which it may be: NaNs lose what tells them apart. */
static void round_to(struct arena *a, const char *name, struct buffer *b, enum dtype type)
{
    enum { BATCH = 256 };
    const struct buffer from = *b;
    buffer_shape(b, type, from.rank, from.dim);
    buffer_alloc(a, b, name);
    for (uint64_t at = 0; at < from.count; at += BATCH) {
        double v[BATCH];
        const size_t n = from.count - at < BATCH ? (size_t)(from.count - at) : BATCH;
        for (size_t k = 0; k < n; k++) {
            v[k] = dtype_get(from.type, from.data, (size_t)(at + k));
            v[k] = isnan(v[k]) ? NAN : v[k];
        }
        dtype_store(type, b->data, at, n, v);
    }
}

/* Two types of floats are compared as the one that has fewer bits. */
static void round_both(struct arena *a, struct cli *cli, struct buffer *w, struct buffer *g)
{
    const enum dtype narrow = dtype_precision(g->type) < dtype_precision(w->type) ? g->type
                                                                                  : w->type;
    if (w->type == g->type)
        return;
    cli_note(cli, "%s and %s are compared as %s", dtype_name(w->type), dtype_name(g->type),
             dtype_name(narrow));
    round_to(a, "the wanted values", w, narrow);
    round_to(a, "the values", g, narrow);
}

/* The tensors as buffers of one shape. False with errors in d. */
static bool make_alike(struct arena *a, const struct loaded *want, const struct loaded *got,
                       struct buffer *w, struct buffer *g, struct diags *d)
{
    if (are_alike(want, got))
        return view(a, want, w, d) && view(a, got, g, d);
    struct buf b = buf_in(a);
    buf_printf(&b, "'%s' is ", got->name);
    loaded_print(got, &b);
    buf_printf(&b, ", but '%s' is ", want->name);
    loaded_print(want, &b);
    return diag_error(d, SPAN_NONE, "%s", buf_text(&b));
}

int verify_golden(struct cli *cli, const struct options *opt)
{
    if (cli->argc != 2)
        cli_usage_error(cli, "--golden compares two files: WANT and GOT");
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    struct loaded want, got;
    struct buffer w, g;
    struct compare_result res;
    struct row row;
    struct rows rows = {.format = opt->format,
                        .arena = a,
                        .out = stdout,
                        .color = cli->color_out,
                        .tolerance = opt->tolerance};
    rows_begin(&rows);
    if (load_tensor(a, cli->argv[0], &want, d) && load_tensor(a, cli->argv[1], &got, d) &&
        make_alike(a, &want, &got, &w, &g, d)) {
        round_both(a, cli, &w, &g);
        compare_arrays(w.type, w.rank, w.dim, w.data, g.data, &opt->tolerance, &res);
        row = row_of_result(got.name, &res);
    } else {
        cli_report(cli, d);
        row = row_of_errors(a, cli->argv[1], d);
    }
    rows_add(&rows, &row);
    int status = rows_end(&rows);
    if (d->nerror)
        status = CLI_BAD_INPUT;
    arena_free(a);
    return status;
}
