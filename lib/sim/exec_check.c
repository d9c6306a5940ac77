/* What the checks do with the lanes of a warp at once (check_cells.h). */
#include <config.h>

#include "sim/check_cells.h"
#include "sim/exec.h"

/* Finds the lowest and the highest address of an access that is no row. */
static void extent(struct check_aim *x)
{
    u64 low = x->at[0], high = x->at[0];
    SIM_LANES_LOOP
    {
        low = x->at[i] < low ? x->at[i] : low;
        high = x->at[i] > high ? x->at[i] : high;
    }
    x->low = low;
    x->high = high;
}

static void aim(struct sim_warp *w, const struct sim_op *op, struct check_aim *x)
{
    const u32 first = (u32)__builtin_ctz(w->em), lanes = w->em >> first;
    const u64 size = op->size, below = size - 1;
    lane_addresses(w, op, x->at);
    const u64 one = x->at[first], start = one - first * size;
    u64 gap = 0, skew = 0;
    if (w->em != UINT32_MAX) {
        const u32 *const lm = sim_lanes(w);
        SIM_LANES_LOOP
        {
            gap |= lm[i] ? x->at[i] ^ (start + (u64)i * size) : 0;
            x->at[i] = lm[i] ? x->at[i] : one;
        }
    } else {
        SIM_LANES_LOOP
        {
            gap |= x->at[i] ^ (start + (u64)i * size);
        }
    }
    SIM_LANES_LOOP
    {
        skew |= x->at[i];
    }
    x->skew = skew & below;
    x->row = gap == 0 && (lanes & (lanes + 1)) == 0;
    x->low = one;
    x->high = x->at[31 - __builtin_clz(w->em)];
    if (!x->row)
        extent(x);
}

/* ---- runs of cells --------------------------------------------------------------------------- */

#define AT(s, k)   ((struct check_slot){(s).block[k], (s).clock[k], (s).who[k]})
#define CELLS_LOOP SIM_INDEPENDENT for (u32 k = 0; k < n; k++)

/* n cells, and who[k] that accesses the k-th. */
struct run {
    struct check_slots write, read[2];
    const u32 *who;
    u32 n;
};

static void put_all(const struct run *r, struct check_slots s, u32 block, u32 clock)
{
    const u32 n = r->n, *const who = r->who;
    CELLS_LOOP
    {
        s.block[k] = block;
        s.clock[k] = clock;
        s.who[k] = who[k];
    }
}

/* Reads of which each is put into one of the two slots, or into none. */
static void place_all(const struct run *r, const struct check_when when)
{
    const struct check_slots a = r->read[0], b = r->read[1];
    const u32 n = r->n, *const who = r->who;
    CELLS_LOOP
    {
        const struct check_slot now = {when.block, when.clock, who[k]};
        const struct check_slot old[2] = {AT(a, k), AT(b, k)};
        const bool settled[2] = {check_settled(&when, &old[0], now.who),
                                 check_settled(&when, &old[1], now.who)};
        const bool before[2] = {check_before(&when, &old[0], now.who),
                                check_before(&when, &old[1], now.who)};
        const unsigned to = check_place(old, &now, settled, before);
        a.block[k] = to == 0 ? now.block : old[0].block;
        a.clock[k] = to == 0 ? now.clock : old[0].clock;
        a.who[k] = to == 0 ? now.who : old[0].who;
        b.block[k] = to == 1 ? now.block : old[1].block;
        b.clock[k] = to == 1 ? now.clock : old[1].clock;
        b.who[k] = to == 1 ? now.who : old[1].who;
    }
}

/* Takes note of the reads if all come after the last write and it is plain which reads come before
 * them. */
static bool read_run(const struct run *r, const struct check_when when)
{
    const struct check_slots w = r->write, a = r->read[0], b = r->read[1];
    const u32 n = r->n, *const who = r->who;
    u32 race = 0, held = 0, open = 0;
    CELLS_LOOP
    {
        race |= !check_before(&when, &AT(w, k), who[k]);
        held |= !check_settled(&when, &AT(a, k), who[k]);
    }
    if (race)
        return false;
    if (!held) {
        put_all(r, a, when.block, when.clock);
        return true;
    }
    CELLS_LOOP
    {
        const u32 first = check_before(&when, &AT(a, k), who[k]);
        const u32 second = check_settled(&when, &AT(b, k), who[k]);
        open |= !(first | second);
    }
    if (open && !when.coarse)
        return false;
    place_all(r, when);
    return true;
}

/* Takes note of the writes if all come after the last accesses. */
static bool write_run(const struct run *r, const struct check_when when, u32 stamp)
{
    const struct check_slots w = r->write, a = r->read[0], b = r->read[1];
    const u32 n = r->n, *const who = r->who;
    u32 race = 0;
    CELLS_LOOP
    {
        race |= !check_before(&when, &AT(w, k), who[k]);
        race |= !check_before(&when, &AT(a, k), who[k]);
        race |= !check_before(&when, &AT(b, k), who[k]);
    }
    if (race)
        return false;
    put_all(r, w, when.block, stamp);
    CELLS_LOOP
    {
        a.clock[k] = b.clock[k] = 0;
    }
    return true;
}

/* ---- a warp's accesses ----------------------------------------------------------------------- */

static inline bool do_run(const struct check_run *c, const struct run *r, bool writes)
{
    return writes ? write_run(r, *c->when, c->stamp) : read_run(r, *c->when);
}

static struct check_slots from(const struct check_slots *s, u64 first)
{
    return (struct check_slots){s->block + first, s->clock + first, s->who + first};
}

/* The cells of a row are a run as they are. */
static bool do_row(const struct check_run *c, bool writes)
{
    const u32 lane = (u32)__builtin_ctz(c->lanes), each = c->each;
    const u32 n = (u32)__builtin_popcount(c->lanes) << each;
    const u32 first = c->who + (lane << CHECK_OP_BITS);
    const u64 cell = (c->at[lane] - c->origin) >> c->shift;
    u32 who[SIM_LANES * 16], any = 0;
    const u32 *const more = c->cell->more + cell;
    CELLS_LOOP
    {
        who[k] = first + (k >> each << CHECK_OP_BITS);
    }
    if (c->more)
        CELLS_LOOP
        {
            any |= more[k];
        }
    const struct run r = {from(&c->cell->write, cell),
                          {from(&c->cell->read[0], cell), from(&c->cell->read[1], cell)},
                          who,
                          n};
    return !any && do_run(c, &r, writes);
}

/* Others are copied to be one. */
struct copy {
    u32 write[3][SIM_LANES * 2], read[2][3][SIM_LANES * 2], who[SIM_LANES * 2];
    u64 cell[SIM_LANES * 2];
    u32 n, lanes;
};

static void copy_in(struct copy *x, u32 (*to)[SIM_LANES * 2], const struct check_slots *s)
{
    for (u32 k = 0; k < x->n; k++) {
        to[0][k] = s->block[x->cell[k]];
        to[1][k] = s->clock[x->cell[k]];
        to[2][k] = s->who[x->cell[k]];
    }
    for (u32 k = x->n; k % 8; k++) /* whole vectors */
        to[0][k] = to[1][k] = to[2][k] = 0;
}

static void copy_out(const struct copy *x, u32 (*const what)[SIM_LANES * 2],
                     const struct check_slots *s)
{
    for (u32 k = 0; k < x->n; k++) {
        s->block[x->cell[k]] = what[0][k];
        s->clock[x->cell[k]] = what[1][k];
        s->who[x->cell[k]] = what[2][k];
    }
}

/* Takes the next of these lanes, no two of which access one cell. */
static void take(struct copy *x, const struct check_run *c, u32 lanes)
{
    const u32 most = 2 * SIM_LANES >> c->each;
    u64 seen[16] = {0};
    u32 taken = 0;
    x->n = x->lanes = 0;
    for (u32 left = lanes; left && taken < most; left &= left - 1) {
        const u32 lane = (u32)__builtin_ctz(left);
        const u64 cell = (c->at[lane] - c->origin) >> c->shift;
        const u32 hash = (u32)(cell >> c->each) * 2654435769u >> 22;
        if (seen[hash / 64] >> hash % 64 & 1)
            continue;
        seen[hash / 64] |= (u64)1 << hash % 64;
        x->lanes |= 1u << lane;
        taken++;
        for (u32 k = 0; k >> c->each == 0; k++) {
            x->cell[x->n] = cell + k;
            x->who[x->n++] = c->who + (lane << CHECK_OP_BITS);
        }
    }
}

static bool any_more(const struct copy *x, const struct check_run *c)
{
    u32 any = 0;
    for (u32 k = 0; c->more && k < x->n; k++)
        any |= c->cell->more[x->cell[k]];
    return any;
}

static u32 do_copies(const struct check_run *c, u32 lanes, bool writes)
{
    struct copy x;
    while (lanes) {
        take(&x, c, lanes);
        if (any_more(&x, c))
            return lanes;
        copy_in(&x, x.write, &c->cell->write);
        copy_in(&x, x.read[0], &c->cell->read[0]);
        copy_in(&x, x.read[1], &c->cell->read[1]);
        for (u32 k = x.n; k % 8; k++)
            x.who[k] = 0;
        const struct run r = {{x.write[0], x.write[1], x.write[2]},
                              {{x.read[0][0], x.read[0][1], x.read[0][2]},
                               {x.read[1][0], x.read[1][1], x.read[1][2]}},
                              x.who,
                              (x.n + 7) / 8 * 8};
        if (!do_run(c, &r, writes))
            return lanes;
        if (writes)
            copy_out(&x, x.write, &c->cell->write);
        copy_out(&x, x.read[0], &c->cell->read[0]);
        copy_out(&x, x.read[1], &c->cell->read[1]);
        lanes &= ~x.lanes;
    }
    return 0;
}

/* Lanes that read what two lanes before them read, too, add nothing, for all are of one warp. */
static u32 different(const struct check_run *c)
{
    u64 last = UINT64_MAX;
    u32 same = 0, lanes = 0;
    if (c->one) {
        const u32 others = c->lanes & (c->lanes - 1);
        return c->lanes & ~(others & (others - 1));
    }
    for (u32 left = c->lanes; left; left &= left - 1) {
        const u64 at = c->at[__builtin_ctz(left)];
        same = at == last ? same + 1 : 0;
        last = at;
        lanes |= same < 2 ? left & -left : 0;
    }
    return lanes;
}

static u32 run_read(const struct check_run *c)
{
    if (c->row)
        return do_row(c, false) ? 0 : c->lanes;
    const u32 lanes = different(c);
    return c->one ? lanes : do_copies(c, lanes, false);
}

static u32 run_write(const struct check_run *c)
{
    if (c->row)
        return do_row(c, true) ? 0 : c->lanes;
    return do_copies(c, c->lanes, true);
}

void SIM_NAMED(sim_fill_check)(struct sim_build *b)
{
    b->check_aim = aim;
    b->check_read = run_read;
    b->check_write = run_write;
}
