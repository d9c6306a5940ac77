/* Asynchronous copies and matrix loads. */
#include <config.h>

#include "sim/check.h"

void sim_check_landed(struct sim_warp *w, const struct sim_copy *copy, uint32_t lanes)
{
    struct check_shadow *s = &w->block->check->shared;
    for (uint32_t left = s->undefined ? lanes : 0; left; left &= left - 1)
        check_define(s, copy->to[__builtin_ctz(left)], copy->size);
}
