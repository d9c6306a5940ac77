/* What is wrong with schedules of chains, and which are worth trying (chain.h). */
#include <config.h>

#include "lower/chain/chain.h"

#include "lower/schedule.h"

/* ---- what is wrong --------------------------------------------------------------------------- */

bool chain_check_tile(struct cg *g, const struct chain_tensor *t, const struct chain_plan *p,
                      uint32_t rows)
{
    if (p->high < 1 || p->high > CHAIN_HIGH || (rows && rows != p->warps * p->high * 16))
        return cg_error(g, schedule_span(g, "tile"),
                        "%u warp%s take%s %u or %u rows, 16 or 32 each, not %u", p->warps,
                        p->warps == 1 ? "" : "s", p->warps == 1 ? "s" : "", p->warps * 16,
                        p->warps * 32, rows);
    if (p->wide % chain_unit(t) || p->wide > CHAIN_WIDE)
        return cg_error(g, schedule_span(g, "tile"),
                        "a step takes a multiple of %u of '%s', at most %d, not %u", chain_unit(t),
                        t->f->j->name, CHAIN_WIDE, p->wide);
    if (rows && !chain_mma_has_registers(t, p))
        return cg_error(g, schedule_span(g, "tile"),
                        "registers have no room for tiles of %u x %u, and of %u columns, of %u "
                        "warp%s",
                        rows, p->wide, p->columns, p->warps, p->warps == 1 ? "" : "s");
    return true;
}

bool chain_check_wgmma_tile(struct cg *g, const struct chain_tensor *t,
                            const struct chain_options *want)
{
    const uint32_t rows = want->tile[0], warps = rows ? rows / 16 : want->warps;
    const uint32_t unit = chain_wgmma_unit(t);
    if (warps % CHAIN_GROUP_WARPS || warps > CHAIN_GROUPS * CHAIN_GROUP_WARPS || rows % 16 ||
        (rows && want->warps && want->warps != warps))
        return cg_error(g, schedule_span(g, rows ? "tile" : "warps"),
                        "by wgmma a block has 64, 128 or 192 rows, 16 of each warp, not %u of %u",
                        rows ? rows : warps * 16, want->warps ? want->warps : warps);
    if (want->tile[1] % unit || want->tile[1] > CHAIN_WIDE)
        return cg_error(g, schedule_span(g, "tile"),
                        "a step takes a multiple of %u of '%s', at most %d, not %u", unit,
                        t->f->j->name, CHAIN_WIDE, want->tile[1]);
    return true;
}

const char *chain_word_of_wgmma(const struct chain_options *want, bool has_stages)
{
    return want->stages && !has_stages ? "stages"
           : want->turns               ? "pingpong"
           : want->overlaps            ? "overlap"
           : want->blocks              ? "blocks"
           : want->each                ? "each"
                                       : NULL;
}

/* ---- worth trying ---------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static void add(struct arena *a, struct lower_candidates *out,
                                                      const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    *VEC_PUSH(a, &out->v) = (struct lower_candidate){"chain", arena_vprintf(a, fmt, ap)};
    va_end(ap);
}

/* The rows of the first output, where that is known: few of them are decoding. 0: it is not. */
static int64_t rows_of(const struct spec *s)
{
    int64_t n = 0;
    for (size_t i = 0; i < s->params.n; i++) {
        const struct lang_symbol *sym = s->params.v[i].sym;
        if (sym->kind == SYM_BUFFER && sym->mode != MODE_IN)
            return sym->rank > 1 && lang_const_int(sym->dims[sym->rank - 2], &n) ? n : 0;
    }
    return 0;
}

/* Offers products by wgmma: groups of 64 rows, and the terms of a step; with and without overlap
 * and turns, and a few with more in shared memory, or a block for each tile. */
static void wgmma_candidates(struct arena *a, struct lower_candidates *out)
{
    static const unsigned wide[] = {32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192};
    static const char *const ways[] = {"",
                                       ", pingpong: yes",
                                       ", pingpong: no",
                                       ", overlap: no, pingpong: yes",
                                       ", overlap: no, pingpong: no",
                                       ", stages: 3",
                                       ", blocks: tiles",
                                       ", each: 2",
                                       ", each: 3"};
    enum { FEW_WAYS = 5 };
    for (unsigned rows = CHAIN_GROUP_ROWS; rows <= CHAIN_GROUPS * CHAIN_GROUP_ROWS;
         rows += CHAIN_GROUP_ROWS)
        for (size_t i = 0; i < COUNT(wide); i++)
            for (size_t w = 0; w < (wide[i] % 64 ? FEW_WAYS : COUNT(ways)); w++)
                add(a, out, "{strategy: chain, mma: wgmma, tile: [%u, %u]%s}", rows, wide[i],
                    ways[w]);
}

/* Offers products by mma.sync: warps of 16 or 32 rows. */
static void mma_candidates(struct arena *a, int64_t rows, struct lower_candidates *out)
{
    static const unsigned wide[] = {16, 32, 48, 64, 96, 128}, warps[] = {1, 2, 4, 8};
    for (size_t i = 0; i < COUNT(warps); i++)
        for (unsigned high = 16; high <= 32; high += 16)
            for (size_t k = 0; k < COUNT(wide); k++)
                if (rows == 0 || warps[i] * high < 2 * rows || warps[i] * high == 16)
                    add(a, out, "{strategy: chain, mma: sync, tile: [%u, %u], warps: %u}",
                        warps[i] * high, wide[k], warps[i]);
}

/* Warps that share 16 rows, with some stages each. */
static void sharer_candidates(struct arena *a, unsigned split, struct lower_candidates *out)
{
    static const unsigned wide[] = {16, 32, 64}, warps[] = {1, 2, 4, 8};
    for (size_t i = 0; i < COUNT(warps); i++)
        for (size_t k = 0; k < COUNT(wide); k++)
            for (unsigned stages = 1; stages <= 3; stages++)
                add(a, out,
                    "{strategy: chain, mma: sync, tile: [16, %u], warps: %u, split: %u, "
                    "stages: %u}",
                    wide[k], warps[i], split, stages);
}

/* Few rows leave multiprocessors idle, unless blocks share them. */
static void split_candidates(struct arena *a, struct lower_candidates *out)
{
    static const unsigned wide[] = {16, 32, 64, 128}, warps[] = {2, 4};
    for (unsigned split = 1; split <= 64; split *= 2) {
        add(a, out, "{strategy: chain, split: %u}", split);
        sharer_candidates(a, split, out);
        for (size_t i = 0; i < COUNT(warps); i++)
            for (size_t k = 0; k < COUNT(wide); k++)
                add(a, out, "{strategy: chain, mma: sync, tile: [%u, %u], warps: %u, split: %u}",
                    warps[i] * 16, wide[k], warps[i], split);
    }
}

/* What has no room is refused when it is emitted: the lists name all that might have. */
void chain_candidates(struct arena *a, const struct spec *s, const struct ptx_target *target,
                      struct lower_candidates *out)
{
    enum { FEW = 64 };
    const int64_t rows = rows_of(s);
    const bool few = rows > 0 && rows < FEW;
    if (ptx_target_has_wgmma(target) && !few)
        wgmma_candidates(a, out);
    if (target->sm >= 80)
        mma_candidates(a, rows, out);
    if (target->sm >= 80 && few)
        split_candidates(a, out);
}
