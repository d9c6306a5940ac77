#include <config.h>

#include "lower/candidates.h"

#include "lower/schedule.h"

void candidates_multiply(struct arena *a, const char *strategy, const struct candidates_axis *axis,
                         size_t naxis, struct lower_candidates *out)
{
    size_t at[4] = {0};
    for (;;) {
        struct buf text = buf_in(a);
        buf_printf(&text, "{strategy: %s", strategy);
        for (size_t i = 0; i < naxis; i++)
            if (axis[i].value[at[i]])
                buf_printf(&text, ", %s: %u", axis[i].key, axis[i].value[at[i]]);
        buf_putc(&text, '}');
        *VEC_PUSH(a, &out->v) = (struct lower_candidate){strategy, buf_text(&text)};
        size_t i = naxis;
        while (i > 0 && ++at[i - 1] == axis[i - 1].n)
            at[--i] = 0;
        if (i == 0)
            return;
    }
}

struct lower_candidates lower_candidates(struct arena *a, const struct spec *s,
                                         const struct ptx_target *target)
{
    struct lower_candidates out = {0};
    for (size_t i = 0; i < nstrategies && s->has_compute; i++)
        if (strategies[i]->candidates)
            strategies[i]->candidates(a, s, target, &out);
    return out;
}
