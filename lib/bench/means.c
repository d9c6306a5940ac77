#include <config.h>

#include "bench/means.h"

#include <math.h>

#include "base/num.h"

static struct mean *find(struct arena *a, struct means *m, const char *kernel, const char *rival,
                         enum bench_mode mode)
{
    for (size_t i = 0; i < m->v.n; i++) {
        struct mean *x = &m->v.v[i];
        if (strcmp(x->kernel, kernel) == 0 && strcmp(x->rival, rival) == 0 && x->mode == mode)
            return x;
    }
    struct mean *x = VEC_PUSH(a, &m->v);
    *x = (struct mean){
        .kernel = arena_strdup(a, kernel), .rival = arena_strdup(a, rival), .mode = mode};
    return x;
}

void means_add(struct arena *a, struct means *m, const struct bench_row *row)
{
    const struct measured *k = &row->result[0];
    for (size_t i = 1; i < row->nresult; i++) {
        const struct measured *r = &row->result[i];
        if (k->status != RIVAL_OK || r->status != RIVAL_OK || !k->n || !r->n)
            continue;
        struct mean *x = find(a, m, row->bench->kernel.source.kernel, r->rival->name, row->mode);
        x->logs += log(r->ratio);
        x->n++;
    }
}

void means_text(const struct means *m, bool modes, struct buf *out)
{
    for (size_t i = 0; i < m->v.n; i++) {
        const struct mean *x = &m->v.v[i];
        char digits[32];
        buf_printf(out, "%s / %s%s: %s, the geometric mean of %u row%s\n", x->kernel, x->rival,
                   !modes                       ? ""
                   : x->mode == BENCH_SUSTAINED ? " sustained"
                                                : " burst",
                   num_print_digits(exp(x->logs / x->n), 4, digits), x->n, x->n == 1 ? "" : "s");
    }
}
