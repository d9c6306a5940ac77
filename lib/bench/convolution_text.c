/* Says in words which convolution a library is asked for. */
#include <config.h>

#include "bench/convolution.h"

#include <inttypes.h>

/* "2 x 64 x 56 x 56", and the order in memory where the last dimension is not the fastest. */
static void tensor_text(const char *name, const struct conv_problem *p, const struct conv_tensor *t,
                        struct buf *out)
{
    for (unsigned k = 0; k < p->spatial + 2; k++)
        buf_printf(out, "%s%" PRIu64, k ? " x " : name, t->dim[k]);
    if (convolution_channels_last(p, t))
        buf_puts(out, " channels last");
}

static void numbers_text(const char *name, const struct conv_problem *p, const int64_t *v,
                         int64_t usual, struct buf *out)
{
    bool all_usual = true;
    for (unsigned k = 0; k < p->spatial; k++)
        all_usual &= v[k] == usual;
    for (unsigned k = 0; k < p->spatial && !all_usual; k++)
        buf_printf(out, "%s%" PRId64, k ? " x " : name, v[k]);
}

void convolution_text(const struct convolution *x, struct buf *out)
{
    static const char *const kinds[] = {"convolution", "gradient of the image",
                                        "gradient of the filter"};
    const struct conv_problem *p = &x->problem;
    buf_printf(out, "  %s of %s", kinds[p->kind],
               p->tf32 ? "tf32" : dtype_name(p->tensor[CONV_X].type));
    tensor_text(", x ", p, &p->tensor[CONV_X], out);
    tensor_text(", w ", p, &p->tensor[CONV_W], out);
    tensor_text(", y ", p, &p->tensor[CONV_Y], out);
    if (convolution_groups(p) != 1)
        buf_printf(out, ", groups %" PRIu64, convolution_groups(p));
    numbers_text(", stride ", p, p->stride, 1, out);
    numbers_text(", dilation ", p, p->dilation, 1, out);
    numbers_text(", border ", p, p->pre, 0, out);
    if (memcmp(p->pre, p->post, p->spatial * sizeof *p->pre) != 0)
        numbers_text(" and ", p, p->post, -1, out);
    buf_putc(out, '\n');
}
