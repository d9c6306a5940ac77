#include <config.h>

#include "lower/cg/cg.h"

void lower_explain(struct cg *g, const char *fmt, ...)
{
    if (!g->opt->report)
        return;
    va_list ap;
    va_start(ap, fmt);
    buf_puts(&g->opt->report->text, arena_vprintf(g->a, fmt, ap));
    va_end(ap);
}
