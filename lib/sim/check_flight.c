/* Operations in flight and mbarriers, as the sanitizer sees them. */
#include <config.h>

#include "sim/check.h"
#include "sim/flight.h"

static bool follows_init(const struct sim_flight *f)
{
    return f->issuer->launch->check->bits & DEVICE_CHECK_INIT;
}

/* Bytes become defined where those that they are copies of are. */
static void define_part(const struct sim_flight *f, const struct sim_piece *p)
{
    struct check_shadow *const here = &f->to->check->shared;
    switch (f->kind) {
    case SIM_FLY_LOAD:
        check_copy_defined(here, p->shared, p->buffer ? p->buffer->shadow : NULL, p->at, p->bytes);
        return;
    case SIM_FLY_PEER:
        if (f->fold == SIM_NO_FOLD)
            check_copy_defined(here, p->shared, &f->issuer->check->shared, p->from, p->bytes);
        return;
    case SIM_FLY_VALUE: check_define(here, p->shared, p->bytes); return;
    case SIM_FLY_STORE:
        if (p->buffer && p->buffer->shadow)
            check_copy_defined(p->buffer->shadow, p->at, here, p->shared, p->bytes);
        return;
    case SIM_FLY_REDUCE:
    case SIM_FLY_COPIES: return;
    }
}

void sim_check_flight_issued(struct sim_warp *w, const struct sim_op *op,
                             const struct sim_flight *f)
{
    (void)w;
    (void)op;
    (void)f;
}

void sim_check_flight_part(const struct sim_flight *f, const struct sim_piece *p, bool reads,
                           bool writes)
{
    (void)reads;
    if (writes && follows_init(f))
        define_part(f, p);
}

void sim_check_flight_done(const struct sim_flight *f, bool reads, bool writes)
{
    (void)f;
    (void)reads;
    (void)writes;
}

void sim_check_flight_dropped(const struct sim_flight *f)
{
    (void)f;
}

void sim_check_bulk_commit(struct sim_warp *w, const struct sim_op *op, uint32_t lanes)
{
    (void)w;
    (void)op;
    (void)lanes;
}

void sim_check_bulk_waited(struct sim_warp *w, const struct sim_op *op, uint32_t lanes, bool read)
{
    (void)w;
    (void)op;
    (void)lanes;
    (void)read;
}

void sim_check_mbar_made(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                         struct sim_block *b, uint32_t offset)
{
    (void)op;
    (void)lane;
    if (w->block->launch->check->bits & DEVICE_CHECK_INIT)
        check_define(&b->check->shared, offset, 8);
}

void sim_check_mbar_gone(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                         struct sim_block *b, uint32_t offset)
{
    (void)w;
    (void)op;
    (void)lane;
    (void)b;
    (void)offset;
}

void sim_check_mbar_arrives(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                            struct sim_block *b, uint32_t offset, uint32_t count)
{
    (void)w;
    (void)op;
    (void)lane;
    (void)b;
    (void)offset;
    (void)count;
}

void sim_check_mbar_phase(struct sim_block *b, uint32_t offset)
{
    (void)b;
    (void)offset;
}

void sim_check_mbar_passed(struct sim_warp *w, const struct sim_op *op, uint32_t lanes,
                           struct sim_block *b, uint32_t offset)
{
    (void)w;
    (void)op;
    (void)lanes;
    (void)b;
    (void)offset;
}
