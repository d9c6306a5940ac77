/* Finds out whether a plan fits, and what lies where (wgmma/wgmma.h). */
#include <config.h>

#include "lower/wgmma/wgmma.h"

#include <stdarg.h>
#include <stdio.h>

/* Registers of a thread; of three warpgroups; columns of an instruction of one of four
 * warpgroups. */
enum { NOT_SUMS = 48, NOT_SUMS_OF_3 = 32, MOST_WIDE_OF_4 = 192 };
enum { CONVERTS = 2, CONVERTS_PARTS = 3, CONVERTS_PARTS_OF_2 = 7 }; /* warps */
enum { SPARE = 16 }; /* registers, of those that are not sums */

static bool fails(struct buf *why, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static bool fails(struct buf *why, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    if (!why) /* most plans are only tried */
        return false;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    buf_puts(why, text);
    return false;
}

static bool is_multiple(uint32_t x, uint32_t y)
{
    return x && y && x % y == 0;
}

static bool has_instruction(const struct wgmma_shape *s, struct buf *why)
{
    const struct ptx_target *t = s->target;
    if (!ptx_target_has_wgmma(t))
        return fails(why, "%s has no wgmma: sm_90a has", t->name);
    switch (s->p->type) {
    case MATMUL_F16:
    case MATMUL_BF16:
    case MATMUL_INT8:
    case MATMUL_FP8:
    case MATMUL_TF32: break;
    case MATMUL_F32: return fails(why, "wgmma multiplies no f32, but its parts: 'mma: tf32x3'");
    case MATMUL_F64: return fails(why, "wgmma multiplies no f64");
    case MATMUL_I32: return fails(why, "wgmma multiplies no i32");
    }
    if (s->f->type == MATMUL_FP8 && s->p->type != MATMUL_FP8)
        return fails(why, "wgmma takes e4m3 and e5m2 as they are, not as f16");
    return s->f->i || fails(why, "a single row leaves most of wgmma idle");
}

/* One subscript is k, one is the side's index, and one of these is the last. */
static bool check_operand(const struct wgmma_shape *s, const struct matmul_operand *o,
                          struct buf *why)
{
    const struct lang_symbol *side = o->side == MATMUL_A ? s->f->i : s->f->j;
    const struct lang_expr *e = o->plain;
    const char *name = o->side == MATMUL_A ? "left" : "right";
    uint32_t sides = 0, ks = 0;
    if (!e)
        return true; /* it is computed */
    if (e->nargs != e->sym->rank || e->nargs > CONTRACT_MAP_RANK)
        return fails(why, "the %s operand has more than %d dimensions", name, CONTRACT_MAP_RANK);
    for (uint32_t i = 0; i < e->nargs; i++) {
        sides += inspect_is_index(e->args[i], side);
        ks += inspect_is_index(e->args[i], s->f->k);
    }
    const struct lang_symbol *last = o->along_k ? s->f->k : side;
    if (sides != 1 || ks != 1 || !inspect_is_index(e->args[e->nargs - 1], last))
        return fails(why, "the %s operand is no matrix", name);
    if (!o->along_k && dtype_bits(o->type) == 8)
        return fails(why, "wgmma takes the %s operand's %s along k alone", name,
                     dtype_name(o->type));
    return true;
}

/* Do the tile's sides go together? */
static bool check_sides(const struct wgmma_shape *s, const struct wgmma_tile *t, struct buf *why)
{
    const struct matmul_plan *p = s->p;
    const bool a = t->side == MATMUL_A;
    const uint32_t unit = t->along_k ? 8 * t->sharers : WGMMA_SPAN / t->size;
    if (t->made && t->sharers > 1)
        return fails(why, "blocks of a cluster share no operand that is computed");
    if (t->made && p->parts > 1)
        return fails(why, "an operand that is computed goes by wgmma in one part alone");
    if ((t->turned || p->parts > 1) && p->bk != WGMMA_SPAN / t->size)
        return fails(why, "a tile of f32 that %s has %u terms, not %u",
                     t->turned ? "does not lie along k" : "is multiplied in parts",
                     WGMMA_SPAN / t->size, p->bk);
    if (!is_multiple(p->bk * t->size, WGMMA_SPAN))
        return fails(why, "a tile's third side must be a multiple of %u, not %u",
                     WGMMA_SPAN / t->size, p->bk);
    if (!t->made && p->align[t->operand] * t->size < 16)
        return fails(why, "TMA copies rows of whole 16 bytes");
    if (s->steps && s->steps != p->bk * t->size / WGMMA_STEP)
        return fails(why, "operands of different sizes");
    if (!is_multiple(t->rows, unit))
        return fails(why, "a tile has multiples of %u %s here, not %u", unit,
                     a ? "rows" : "columns", t->rows);
    /* threads' stores would have to be ordered before the other block's copies */
    if (wgmma_is_converted(s, t) && t->sharers > 1)
        return fails(why, "blocks of a cluster share no operand that is rounded on its way");
    return true;
}

/* Do producers make the operand? They make what is computed. Beside that they make what would have
 * to be converted, since no warps are left that convert. */
static bool is_made(const struct wgmma_shape *s, uint32_t n)
{
    const struct matmul_operand *o = &s->f->operand[n];
    const bool converted = s->p->type == MATMUL_TF32 && o->side != s->left &&
                           (matmul_cut_of(o) == MATMUL_AWAY || !o->along_k);
    return s->makes && (!matmul_wgmma_copies(s->f, s->p, n) || converted);
}

static bool measure_tile(struct wgmma_shape *s, uint32_t n, struct buf *why)
{
    const struct matmul_plan *p = s->p;
    const struct matmul_operand *o = &s->f->operand[n];
    struct wgmma_tile *t = &s->tile[s->ntile];
    if (!check_operand(s, o, why))
        return false;
    if (p->windows == MATMUL_WINDOWS_TMA && o->gather && !matmul_wgmma_copies(s->f, p, n))
        return fails(why, "TMA does not copy these windows: %s",
                     o->gather->no_boxes ? o->gather->no_boxes : "a tile has other rows than they");
    if (matmul_in_f16(p) && !o->plain)
        return fails(why, "f32 that is no matrix in memory goes in parts of tf32");
    const bool a = o->side == MATMUL_A;
    *t = (struct wgmma_tile){.operand = n,
                             .side = o->side,
                             .along_k = o->along_k,
                             .made = is_made(s, n),
                             .size = matmul_in_f16(p) ? 2 : dtype_bits(o->type) / 8,
                             .rows = a ? p->bm : p->bn,
                             .offset = s->stage_bytes,
                             .sharers = a ? s->across : s->down};
    t->along_k |= t->made && t->size != 2;
    if (t->made && s->gathers)
        t->along_k = o->along_k;
    t->held = p->type == MATMUL_TF32 && o->side == s->left && !t->made &&
              (matmul_cut_of(o) == MATMUL_AWAY || !o->along_k || p->parts > 1);
    t->turned = t->size == 4 && !t->along_k && !t->held;
    t->parted = p->parts > 1 && !t->held;
    if (!check_sides(s, t, why))
        return false;
    s->steps = p->bk * t->size / WGMMA_STEP;
    const struct wgmma_layout l = wgmma_layout(t->along_k, t->size, t->rows, p->bk);
    t->atoms = l.atoms;
    t->atom_bytes = l.atom_bytes;
    t->by_rows = t->along_k || t->atoms % t->sharers != 0;
    const uint32_t high = t->along_k ? t->rows : p->bk;
    t->box_rows = t->by_rows ? high / t->sharers : high;
    if (t->box_rows > WGMMA_WIDE && !t->made)
        return fails(why, "TMA copies %u rows at once at most, not %u", WGMMA_WIDE, t->box_rows);
    if (t->made && s->gathers && !wgmma_gather_fits(t))
        return fails(why, "a thread would gather too many rows");
    t->bytes = t->atoms * t->atom_bytes;
    t->rest = t->offset + t->bytes;
    s->stage_bytes += t->bytes * (t->parted ? 2 : 1);
    *(t->made ? &s->made : &s->copied) += t->bytes * (matmul_in_f16(p) ? 2 : 1);
    if (wgmma_is_converted(s, t))
        s->converts = p->parts < 2       ? CONVERTS
                      : s->producers < 2 ? CONVERTS_PARTS
                                         : CONVERTS_PARTS_OF_2;
    s->tile_of[n] = s->ntile++;
    return true;
}

/* A warpgroup's part of the tile: some of the instructions' rows, all of their columns. */
static bool measure_part(struct wgmma_shape *s, struct buf *why)
{
    const struct matmul_plan *p = s->p;
    const char *const sides[] = {"rows", "columns"};
    const bool turned = p->turned;
    const uint32_t all = turned ? p->bn : p->bm, across = turned ? p->bm : p->bn;
    const uint32_t unit = turned ? WGMMA_TURNED : p->type == MATMUL_INT8 && across > 32 ? 16 : 8;
    s->left = turned ? MATMUL_B : MATMUL_A;
    s->high = turned ? p->wn : p->wm;
    s->wide = turned ? p->wm : p->wn;
    if (!is_multiple(s->high, WGMMA_ROWS) || !is_multiple(all, s->high))
        return fails(why, "a warpgroup takes multiples of %u %s, not %u of %u", WGMMA_ROWS,
                     sides[turned], s->high, all);
    if (s->wide != across || !is_multiple(across, unit) || across > WGMMA_WIDE)
        return fails(why, "a warpgroup takes all %s, a multiple of %u up to %u, not %u of %u",
                     sides[!turned], unit, WGMMA_WIDE, s->wide, across);
    if (matmul_in_f16(p) && (MATMUL_SCALED_SIDE % s->high || MATMUL_SCALED_SIDE % s->wide))
        return fails(why,
                     "f32 has one scale for %d rows or columns: a warpgroup takes so many, or "
                     "a half or a quarter, not %u x %u",
                     MATMUL_SCALED_SIDE, p->wm, p->wn);
    s->takers = all / s->high;
    return true;
}

static bool measure_block(struct wgmma_shape *s, struct buf *why)
{
    const struct matmul_plan *p = s->p;
    s->down = p->cluster[0] ? p->cluster[0] : 1;
    s->across = p->cluster[1] ? p->cluster[1] : 1;
    s->sharing = s->down * s->across;
    s->blocks = s->sharing * p->split;
    s->peers = s->down + s->across - 1;
    if (s->down > 2 || s->across > 2)
        return fails(why, "a cluster has 2 blocks along each side at most, not %u x %u", s->down,
                     s->across);
    if (!measure_part(s, why))
        return false;
    if (p->pingpong && s->takers != 1)
        return fails(why,
                     "warpgroups that take tiles by turns take all of one, not %u x %u of %u x %u",
                     p->wm, p->wn, p->bm, p->bn);
    if (p->split > 1 && (p->pingpong || p->blocks))
        return fails(why, "blocks that share tiles take one each, and all warpgroups do together");
    if (s->blocks > WGMMA_BLOCKS)
        return fails(why,
                     "a cluster has %u blocks at most, those that share a tile among them, not %u",
                     WGMMA_BLOCKS, s->blocks);
    if (p->pingpong && !p->blocks)
        return fails(why, "warpgroups take tiles by turns where blocks do");
    s->consumers = p->pingpong ? 2 : s->takers;
    s->producers = p->producers ? p->producers : 1;
    if (s->producers > 2 || s->consumers > WGMMA_CONSUMERS ||
        s->producers + s->consumers > WGMMA_GROUPS ||
        p->threads != (s->producers + s->consumers) * WGMMA_GROUP)
        return fails(why, "%u threads are no producer and %u warpgroups", p->threads, s->consumers);
    if (p->stages < 2 || p->stages > WGMMA_STAGES)
        return fails(why, "stages must be 2 to %d, not %u", WGMMA_STAGES, p->stages);
    return true;
}

uint32_t wgmma_sets(const struct wgmma_shape *s)
{
    return s->converts ? RING_SETS : RING_SETS - 1;
}

static uint32_t barriers_of(const struct wgmma_shape *s)
{
    return ring_barrier_bytes(s->p->stages, wgmma_sets(s)) + wgmma_range_bytes(s);
}

/* Patches of so many bytes. */
static void place_patches(struct wgmma_shape *s, uint32_t bytes)
{
    const uint32_t warps = s->consumers * WGMMA_GROUP / 32;
    s->patch_bytes = bytes;
    s->barriers = s->patches + warps * bytes;
    s->bytes = s->barriers + barriers_of(s);
    s->brought_barriers = s->bytes;
    s->bytes += s->nbrought ? warps * RING_BARRIER : 0;
}

/* Boxes of results, or else patches as wide as there is room, up to 64 columns. */
static void measure_memory(struct wgmma_shape *s)
{
    const uint32_t warps = s->consumers * WGMMA_GROUP / 32, room = s->target->shared_optin;
    s->patches = s->stage_bytes * s->p->stages;
    place_patches(s, wgmma_direct(s));
    if (s->patch_bytes && s->bytes > room && wgmma_keep_brought(s))
        place_patches(s, epilogue_bytes(s));
    s->direct = s->patch_bytes && s->bytes <= room;
    if (!s->direct)
        s->nbrought = s->kept = 0;
    s->by_threads = wgmma_by_threads(s);
    for (uint32_t cols = 64; cols >= 8 && !s->direct && !s->p->turned; cols /= 2) {
        if (s->p->bn % cols)
            continue;
        s->patch_cols = cols;
        s->pitch = wgmma_pitch(cols);
        s->patch_bytes = s->f->nproduct * WGMMA_PATCH * s->pitch * 4;
        s->barriers = s->patches + warps * s->patch_bytes;
        s->bytes = s->barriers + barriers_of(s);
        if (s->bytes <= room)
            return;
    }
}

uint32_t wgmma_sums(const struct wgmma_shape *s)
{
    return s->f->nproduct * (s->high / WGMMA_ROWS) * (s->wide / 2);
}

uint32_t wgmma_registers(const struct wgmma_shape *s, bool produces)
{
    /* by producers that make nothing, one or two that do; by consumers: multiples of 8, 504 of
     * threads that are one each of three warpgroups, 512 of four */
    static const uint8_t of[3][WGMMA_CONSUMERS][2] = {{{24, 240}, {24, 240}, {32, 160}},
                                                      {{232, 240}, {120, 192}, {80, 144}},
                                                      {{128, 248}, {80, 176}, {0, 0}}};
    static const uint8_t converting[2][WGMMA_CONSUMERS][2] = {{{24, 240}, {72, 216}, {80, 144}},
                                                              {{72, 240}, {48, 208}, {0, 0}}};
    if (s->converts)
        return converting[s->producers - 1][s->consumers - 1][!produces];
    return of[s->made ? s->producers : 0][s->consumers - 1][!produces];
}

/* Can one instruction make all products? They share its left operand, which it reads once then, and
 * their right ones lie as one of as many times the columns would. */
static bool can_join(const struct wgmma_shape *s)
{
    const struct matmul_form *f = s->f;
    if (f->nproduct * s->wide > WGMMA_WIDE || s->p->promotes || s->left != MATMUL_A)
        return false;
    for (uint32_t q = 1; q < f->nproduct; q++) {
        const struct matmul_product *p = &f->product[q], *before = p - 1;
        const struct wgmma_tile *t = &s->tile[s->tile_of[p->b]];
        const struct wgmma_tile *u = &s->tile[s->tile_of[before->b]];
        if (p->a != before->a || f->operand[p->b].type != f->operand[before->b].type ||
            t->along_k != u->along_k || t->turned || u->turned || (t->along_k && t->atoms > 1) ||
            t->offset != u->offset + u->bytes)
            return false;
    }
    return true;
}

bool wgmma_measure(struct wgmma_shape *s, struct buf *why)
{
    const struct matmul_plan *p = s->p;
    if (!has_instruction(s, why) || !measure_block(s, why))
        return false;
    s->gathers = s->producers == 1 && matmul_wgmma_gathers(s->f, p);
    s->makes = matmul_wgmma_computes(s->f, p) || matmul_wgmma_gathers(s->f, p);
    for (uint32_t i = 0; i < s->f->noperand; i++)
        if (!measure_tile(s, i, why))
            return false;
    s->joined = can_join(s) ? s->f->nproduct : 1;
    measure_memory(s);
    s->ranges = s->barriers + ring_barrier_bytes(p->stages, wgmma_sets(s));
    if (p->turned && !s->patch_bytes)
        return fails(why, "a tile's columns are instructions' rows only of results of 4 bytes that "
                          "go straight from registers");
    const uint32_t room = s->target->shared_optin;
    if (s->bytes > room)
        return fails(why,
                     "%u stages of %u bytes each and %u for the results don't fit %u bytes of "
                     "shared memory",
                     p->stages, s->stage_bytes, s->bytes - s->patches, room);
    if (wgmma_share_bytes(s) > s->patches)
        return fails(why, "%u bytes of other blocks' sums don't fit where %u stages were",
                     wgmma_share_bytes(s), p->stages);
    /* an instruction's registers are among those that threads begin with, for ptxas */
    const uint32_t columns = s->joined * s->wide;
    if (s->producers + s->consumers == WGMMA_GROUPS && columns > MOST_WIDE_OF_4)
        return fails(why, "instructions of four warpgroups have %u columns at most, not %u",
                     MOST_WIDE_OF_4, columns);
    const uint32_t all = wgmma_registers(s, false);
    const uint32_t most = all - (s->consumers > 2 ? NOT_SUMS_OF_3 : NOT_SUMS);
    const uint32_t sums = wgmma_sums(s) + (p->promotes ? s->wide / 2 : 0);
    const uint32_t held = wgmma_held_words(s);
    if (sums + held > most)
        return fails(why, "a thread would keep %u sums%s: %u at most, of %u warpgroups",
                     sums + held, held ? " and factors" : "", most, s->consumers);
    if (wgmma_find_columns(s) + sums + held + wgmma_kept_words(s) + SPARE > most)
        s->ncolumn = 0;
    return true;
}

bool matmul_wgmma_fits(const struct ptx_target *target, const struct matmul_form *f,
                       const struct matmul_plan *p, struct buf *why)
{
    struct wgmma_shape s = {.target = target, .f = f, .p = p};
    return wgmma_measure(&s, why);
}

uint32_t matmul_wgmma_shared(const struct ptx_target *target, const struct matmul_form *f,
                             const struct matmul_plan *p)
{
    struct wgmma_shape s = {.target = target, .f = f, .p = p};
    return wgmma_measure(&s, NULL) ? s.bytes : 0;
}

bool matmul_wgmma_direct(const struct ptx_target *target, const struct matmul_form *f,
                         const struct matmul_plan *p)
{
    struct wgmma_shape s = {.target = target, .f = f, .p = p};
    return wgmma_measure(&s, NULL) && s.direct;
}

bool matmul_wgmma_works(const struct ptx_target *target, const struct matmul_form *f,
                        const struct matmul_plan *p)
{
    struct wgmma_shape s = {.target = target, .f = f, .p = p};
    return wgmma_measure(&s, NULL) && s.direct && (s.nbrought || s.by_threads);
}

/* No share of the sum is empty. */
static void require_shares(struct cg *g, const struct matmul_form *f, const struct matmul_plan *p,
                           struct variant_condition *c)
{
    struct lang_expr *k = f->k->dims[0];
    const uint32_t split = p->split, bk = p->bk;
    int64_t n;
    if (lang_const_int(k, &n)) {
        const int64_t steps = n / bk + (n % bk != 0);
        c->never |= (steps + split - 1) / split * (split - 1) >= steps;
    } else {
        struct lang_expr *steps = lx_ceil_div_int(g->a, k, bk);
        struct lang_expr *others = lx_mul_int(g->a, lx_ceil_div_int(g->a, steps, split), split - 1);
        variant_require(c, lx_compare(g->a, OP_LT, others, steps));
    }
}

void matmul_wgmma_require(struct cg *g, const struct matmul_form *f, const struct matmul_plan *p,
                          struct variant_condition *c)
{
    if (p->split > 1)
        require_shares(g, f, p, c);
    variant_require_some(g, c, f->k->dims[0]);
    for (uint32_t i = 0; i < f->noperand; i++) {
        const struct lang_expr *e = f->operand[i].plain;
        for (uint32_t d = 0; e && d < e->sym->rank; d++)
            variant_require_some(g, c, e->sym->dims[d]);
        if (!e && matmul_wgmma_copies(f, p, i))
            matmul_boxes_require(g, f->operand[i].gather, c);
    }
}
