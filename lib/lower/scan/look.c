/* Tiles of other blocks: scan/scan.h.
 *
 * A block takes the next tile by a counter, so that all tiles before it are being worked on. It
 * leaves its tile's total, looks at the totals of the tiles before it in its group of 32, and at
 * what all groups before come to:
 *
 *     group g      t0 t1 ... t31        total of each tile, as soon as it is known
 *                  sum[g]               of the group's, left by the block of its last tile
 *                  upto[g]              upto[g - 1] + sum[g], left by the same block
 *
 * A warp looks at up to 32 groups at once, from the nearest on, until it finds one whose `upto` is
 * there and all nearer ones' sums are; to that it adds these, the furthest first. That is what
 * upto[g - 1] is, bit by bit, whatever was there in time.
 *
 * What is left is in words of 64 bits: 32 of a value, and above them the launch's number. So each
 * says for itself that it is there, and relaxed loads and stores will do; and what former launches
 * left need not be cleared, for which a block would have to wait until its stores are done. The
 * counter has that number above the tile's: who takes the last tile sets it to 0 and counts the
 * launch. Numbers begin with 1, since all is zero before the first launch.
 */
#include <config.h>

#include "lower/scan/scan.h"

#include "lower/cg/sync.h"

enum { GROUP = 32, WORDS = 2 * SCAN_PARTS };

struct scan_memory {
    const struct lang_symbol *turn, *totals, *sums, *upto;
    struct cg_val launch; /* its number */
};

static const char relaxed[] = ".relaxed.gpu";

/* ---- words ----------------------------------------------------------------------------------- */

static uint32_t words_of(const struct scan *s)
{
    uint32_t n = 0;
    for (uint32_t p = 0; p < s->npart; p++)
        n += dtype_bits(s->part[p]) == 64 ? 2 : 1;
    return n;
}

static void to_words(struct scan *s, const struct scan_state *x, struct cg_val *word)
{
    struct cg *g = s->g;
    for (uint32_t p = 0; p < s->npart; p++) {
        const enum dtype t = s->part[p];
        if (dtype_bits(t) < 64) {
            *word++ = dtype_is_float(t) ? cg_bitcast(g, x->v[p], DT_U32)
                                        : cg_value(DT_U32, cg_reg(g, x->v[p]));
            continue;
        }
        struct ptx_operand half[2] = {ptx_r(cg_new(g, DT_U32)), ptx_r(cg_new(g, DT_U32))};
        PTX(&g->b, "mov.b64", ptx_vec(&g->b, 2, half), ptx_r(cg_reg(g, x->v[p])));
        *word++ = cg_value(DT_U32, half[0].reg);
        *word++ = cg_value(DT_U32, half[1].reg);
    }
}

static struct scan_state from_words(struct scan *s, const int32_t *word)
{
    struct cg *g = s->g;
    struct scan_state x;
    for (uint32_t p = 0; p < s->npart; p++) {
        const enum dtype t = s->part[p];
        const struct cg_val low = cg_freeze(g, cg_value(DT_U32, *word++));
        if (dtype_bits(t) < 64) {
            x.v[p] = dtype_is_float(t) ? cg_bitcast(g, low, t) : cg_value(t, low.op.reg);
            continue;
        }
        struct ptx_operand half[2] = {low.op, ptx_r(*word++)};
        x.v[p] = cg_value(t, cg_new(g, t));
        PTX(&g->b, "mov.b64", x.v[p].op, ptx_vec(&g->b, 2, half));
    }
    return x;
}

/* Where the words of state `number` begin. */
static struct cg_place_of place_of(struct scan *s, const struct lang_symbol *t,
                                   struct cg_val number)
{
    struct cg *g = s->g;
    struct cg_place_of at = cg_address(g, t, cg_index(g, cg_mul(g, number, words_of(s))));
    at.order = relaxed;
    return at;
}

static void publish(struct scan *s, const struct lang_symbol *t, struct cg_val number,
                    const struct scan_state *x)
{
    struct cg *g = s->g;
    struct cg_val word[WORDS];
    struct cg_place_of at = place_of(s, t, number);
    to_words(s, x, word);
    for (uint32_t w = 0; w < words_of(s); w++) {
        struct ptx_operand half[2] = {ptx_r(cg_reg(g, word[w])),
                                      ptx_r(cg_reg(g, s->memory->launch))};
        const struct cg_val both = cg_value(DT_U64, cg_new(g, DT_U64));
        PTX(&g->b, "mov.b64", both.op, ptx_vec(&g->b, 2, half));
        cg_store_at(g, DT_U64, at, both);
        at.offset += 8;
    }
}

/* Loads a state's words, which are assigned; 0 where all are there. */
static struct cg_val look(struct scan *s, struct cg_place_of at, const int32_t *word)
{
    struct cg *g = s->g;
    struct cg_val missing = cg_u32(0);
    for (uint32_t w = 0; w < words_of(s); w++) {
        const struct cg_val both = cg_load_at(g, DT_U64, false, at);
        struct ptx_operand half[2] = {ptx_r(cg_new(g, DT_U32)), ptx_r(cg_new(g, DT_U32))};
        PTX(&g->b, "mov.b64", ptx_vec(&g->b, 2, half), both.op);
        cg_move(g, word[w], cg_value(DT_U32, half[0].reg));
        const struct cg_val other =
            cg_binary(g, OP_XOR, cg_value(DT_U32, half[1].reg), s->memory->launch);
        missing = w ? cg_binary(g, OP_OR, missing, other) : other;
        at.offset += 8;
    }
    return missing;
}

static void open_words(struct scan *s, int32_t *word)
{
    for (uint32_t w = 0; w < words_of(s); w++) {
        word[w] = cg_new_mutable(s->g, DT_U32);
        cg_move(s->g, word[w], cg_u32(0));
    }
}

/* ---- tiles ----------------------------------------------------------------------------------- */

static struct lang_expr *groups_of_row(struct cg *g, const struct scan_plan *p)
{
    return lx_ceil_div_int(g->a, p->tiles.e, GROUP);
}

static struct scan_memory *name_memory(struct scan *s)
{
    struct cg *g = s->g;
    struct scan_memory *m = ARENA_NEW(g->a, struct scan_memory);
    struct lang_expr *one = lx_int(g->a, 1);
    struct lang_expr *groups = lx_mul(g->a, s->p->rows.e, groups_of_row(g, s->p));
    struct lang_expr *words = lx_mul_int(g->a, groups, words_of(s));
    struct lang_expr *totals = lx_mul_int(g->a, words, GROUP);
    m->turn = cg_temp(g, "turn", DT_U64, 1, &one, true);
    m->totals = cg_temp(g, "totals", DT_U64, 1, &totals, true);
    m->sums = cg_temp(g, "sums", DT_U64, 1, &words, true);
    m->upto = cg_temp(g, "upto", DT_U64, 1, &words, true);
    return m;
}

static struct cg_val less_one(struct cg *g, struct cg_val n)
{
    return cg_binary(g, OP_SUB, n, cg_u32(1));
}

/* Takes the next tile; leaves its number and the launch's at the place. */
static void take_tile(struct scan *s, struct cg_place_of at)
{
    struct cg *g = s->g;
    const uint32_t more = cg_label(g, "more");
    const struct ptx_operand turn = cg_mem(cg_address(g, s->memory->turn, cg_index(g, cg_u32(0))));
    const struct cg_val was = cg_value(DT_U64, cg_new(g, DT_U64));
    PTX(&g->b, "atom.relaxed.gpu.global.add.u64", was.op, turn, cg_op(g, cg_int(DT_U64, 1)));
    struct ptx_operand half[2] = {ptx_r(cg_new(g, DT_U32)), ptx_r(cg_new(g, DT_U32))};
    PTX(&g->b, "mov.b64", ptx_vec(&g->b, 2, half), was.op);
    const struct cg_val number = cg_value(DT_U32, half[0].reg);
    cg_store_at(g, DT_U32, at, number);
    at.offset += 4;
    cg_store_at(g, DT_U32, at, cg_add(g, cg_value(DT_U32, half[1].reg), cg_u32(1)));
    const struct cg_val blocks = scan_number(g, s->p->blocks);
    const size_t mark = cg_scope_open(g);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_NE, number, less_one(g, blocks))), true, more);
    const struct cg_val next =
        cg_binary(g, OP_SUB, cg_int(DT_U64, INT64_C(1) << 32), cg_convert(g, blocks, DT_U64));
    PTX(&g->b, "red.relaxed.gpu.global.add.u64", turn, cg_op(g, next));
    cg_scope_close(g, mark);
    cg_place(g, more);
}

void scan_take_tile(struct scan *s, struct scan_look *l)
{
    struct cg *g = s->g;
    const size_t from = g->func->items.n;
    struct ptx_var *var = ptx_array_new(&g->b, PTX_SHARED, "$tile", PTX_B32, 8, 2);
    cg_to_prologue(g, from, 3000001);
    const uint32_t taken = cg_label(g, "taken");
    const struct cg_val tid = cg_special(g, SP_TID_X);
    struct cg_place_of at = {.space = CG_SHARED, .base = CG(g, PTX_B32, "mov.u32", ptx_sym(var))};
    s->memory = name_memory(s);
    const size_t mark = cg_scope_open(g);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_NE, tid, cg_u32(0))), true, taken);
    take_tile(s, at);
    cg_scope_close(g, mark);
    cg_place(g, taken);
    PTX(&g->b, "bar.sync", ptx_imm(0));
    const struct cg_val number = cg_load_at(g, DT_U32, false, at);
    at.offset += 4;
    s->memory->launch = cg_load_at(g, DT_U32, false, at);
    struct cg_val row, tile;
    const struct cg_val tiles = cg_index(g, scan_number(g, s->p->tiles));
    cg_divmod(g, cg_index(g, number), tiles, &row, &tile);
    l->row = cg_convert(g, row, DT_U32);
    l->tile = cg_convert(g, tile, DT_U32);
    l->place = cg_binary(g, OP_AND, l->tile, cg_u32(GROUP - 1));
    const struct cg_val groups = scan_number(g, scan_count(groups_of_row(g, s->p)));
    l->group = cg_binary(g, OP_SHR, l->tile, cg_u32(5));
    l->first = cg_binary(g, OP_MUL, l->row, groups);
    l->here = cg_add(g, l->first, l->group);
    l->is_last = cg_binary(g, OP_EQ, l->group, less_one(g, groups));
}

/* ---- looking back ---------------------------------------------------------------------------- */

/* What the tiles before in the group come to, in every lane. */
static struct scan_state look_in_group(struct scan *s, const struct scan_look *l,
                                       struct cg_val lane)
{
    struct cg *g = s->g;
    int32_t word[WORDS], has;
    const uint32_t again = cg_label(g, "wait"), there = cg_label(g, "there");
    const int32_t is_before = cg_reg(g, cg_binary(g, OP_LT, lane, l->place));
    open_words(s, word);
    const struct cg_place_of at =
        place_of(s, s->memory->totals, cg_weighted(g, l->here, GROUP, lane, 1));
    cg_jump_if(g, is_before, false, there);
    const size_t mark = cg_scope_open(g);
    cg_place(g, again);
    cg_loop_head(g);
    const struct cg_val missing = look(s, at, word);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_NE, missing, cg_u32(0))), true, again);
    cg_scope_close(g, mark);
    cg_place(g, there);
    PTX(&g->b, "bar.warp.sync", ptx_imm(UINT32_MAX));
    struct scan_state x = scan_select(s, is_before, from_words(s, word), scan_identity(s));
    for (uint32_t by = 1; by < GROUP; by *= 2) {
        const struct scan_state other = scan_shuffle_up(s, x, by, GROUP, &has);
        x = scan_select(s, has, scan_meet(s, other, x), x);
    }
    return scan_last_lane(s, x, GROUP);
}

static struct cg_val ballot(struct cg *g, struct cg_val p)
{
    const int32_t r = cg_new(g, DT_U32);
    PTX(&g->b, "vote.sync.ballot.b32", ptx_r(r), ptx_r(cg_reg(g, p)), ptx_imm(UINT32_MAX));
    return cg_value(DT_U32, r);
}

/* Waits for the nearest group whose `upto` is there, and for the sums of nearer ones: the lane that
 * has it. before: lane l's group is l + 1 before this one; where it is none, nothing comes before
 * it. */
static void wait_for_groups(struct scan *s, const struct scan_look *l, struct cg_val lane,
                            const int32_t *sum, const int32_t *upto, int32_t nearest)
{
    struct cg *g = s->g;
    const uint32_t again = cg_label(g, "wait"), asked = cg_label(g, "asked");
    const struct cg_val exists = cg_binary(g, OP_LT, lane, l->group);
    const struct cg_val number = cg_binary(g, OP_SUB, less_one(g, l->here), lane);
    const int32_t no_sum = cg_new_mutable(g, DT_U32), no_upto = cg_new_mutable(g, DT_U32);
    size_t mark = cg_scope_open(g);
    cg_place(g, again);
    cg_loop_head(g);
    cg_move(g, no_sum, cg_u32(0));
    cg_move(g, no_upto, cg_u32(0));
    cg_jump_if(g, cg_reg(g, exists), false, asked);
    const size_t inner = cg_scope_open(g);
    cg_move(g, no_upto, look(s, place_of(s, s->memory->upto, number), upto));
    cg_move(g, no_sum, look(s, place_of(s, s->memory->sums, number), sum));
    cg_scope_close(g, inner);
    cg_place(g, asked);
    const struct cg_val ends = ballot(g, cg_binary(g, OP_EQ, cg_value(DT_U32, no_upto), cg_u32(0)));
    const struct cg_val sums = ballot(g, cg_binary(g, OP_EQ, cg_value(DT_U32, no_sum), cg_u32(0)));
    /* the lowest bit of ends, less 1: those below it */
    const struct cg_val least = cg_binary(g, OP_AND, ends, cg_binary(g, OP_SUB, cg_u32(0), ends));
    const struct cg_val below = less_one(g, least);
    const struct cg_val some = cg_binary(g, OP_AND, sums, below);
    cg_move(g, nearest, cg_value(DT_U32, CG(g, PTX_B32, "popc.b32", cg_op(g, below))));
    const struct cg_val lacks = cg_binary(g, OP_NE, some, below);
    const struct cg_val missing = cg_binary(g, OP_LOR, cg_binary(g, OP_EQ, ends, cg_u32(0)), lacks);
    cg_jump_if(g, cg_reg(g, missing), true, again);
    cg_scope_close(g, mark);
}

/* What all groups before come to, in every lane. */
static struct scan_state look_at_groups(struct scan *s, const struct scan_look *l,
                                        struct cg_val lane)
{
    struct cg *g = s->g;
    int32_t sum[WORDS], upto[WORDS], all[SCAN_PARTS];
    const int32_t at = cg_new_mutable(g, DT_U32);
    const uint32_t next = cg_label(g, "nearer"), added = cg_label(g, "added");
    open_words(s, sum);
    open_words(s, upto);
    cg_move(g, at, cg_u32(0));
    wait_for_groups(s, l, lane, sum, upto, at);
    const int32_t exists = cg_reg(g, cg_binary(g, OP_LT, lane, l->group));
    const struct scan_state end = scan_select(s, exists, from_words(s, upto), scan_identity(s));
    const struct scan_state own = from_words(s, sum);
    const struct scan_state first = scan_from_lane(s, end, at);
    scan_keep(s, all);
    scan_move(s, all, &first);
    const size_t mark = cg_scope_open(g);
    cg_place(g, next);
    cg_loop_head(g);
    const struct cg_val left = cg_value(DT_U32, at);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_EQ, left, cg_u32(0))), true, added);
    cg_move(g, at, less_one(g, left));
    const struct scan_state more = scan_meet(s, scan_kept(s, all), scan_from_lane(s, own, at));
    scan_move(s, all, &more);
    cg_jump(g, next);
    cg_scope_close(g, mark);
    cg_place(g, added);
    struct scan_state x = scan_kept(s, all);
    for (uint32_t p = 0; p < s->npart; p++)
        x.v[p] = cg_freeze(g, x.v[p]);
    return x;
}

/* Leaves a state by lane 0, where p holds. */
static void leave_if(struct scan *s, struct cg_val p, struct cg_val lane,
                     const struct lang_symbol *t, struct cg_val number, const struct scan_state *x)
{
    struct cg *g = s->g;
    const uint32_t left = cg_label(g, "left");
    const size_t mark = cg_scope_open(g);
    p = cg_binary(g, OP_LAND, p, cg_binary(g, OP_EQ, lane, cg_u32(0)));
    cg_jump_if(g, cg_reg(g, p), false, left);
    publish(s, t, number, x);
    cg_scope_close(g, mark);
    cg_place(g, left);
}

/* The block's first warp. */
static void look_back(struct scan *s, const struct scan_look *l, struct scan_state total,
                      struct cg_val slot)
{
    struct cg *g = s->g;
    const struct scan_memory *m = s->memory;
    const struct cg_val lane = cg_special(g, SP_LANEID);
    const uint32_t told = cg_label(g, "told");
    leave_if(s, cg_bool(g, true), lane, m->totals, cg_weighted(g, l->here, GROUP, l->place, 1),
             &total);
    const struct scan_state inner = look_in_group(s, l, lane);
    const struct scan_state sum = scan_meet(s, inner, total);
    const struct cg_val goes_on = cg_unary(g, OP_NOT, l->is_last);
    const struct cg_val closes =
        cg_binary(g, OP_LAND, cg_binary(g, OP_EQ, l->place, cg_u32(GROUP - 1)), goes_on);
    leave_if(s, closes, lane, m->sums, l->here, &sum);
    const struct scan_state groups = look_at_groups(s, l, lane);
    const struct scan_state upto = scan_meet(s, groups, sum);
    leave_if(s, closes, lane, m->upto, l->here, &upto);
    const struct scan_state before = scan_meet(s, groups, inner);
    const size_t mark = cg_scope_open(g);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_NE, lane, cg_u32(0))), true, told);
    scan_leave(s, slot, 1, &before);
    cg_scope_close(g, mark);
    cg_place(g, told);
}

struct scan_state scan_look_back(struct scan *s, const struct scan_look *l, struct scan_state total)
{
    struct cg *g = s->g;
    const struct cg_val slot = cg_u32(s->p->threads / 32), tid = cg_special(g, SP_TID_X);
    const uint32_t others = cg_label(g, "others");
    struct scan_state before;
    const size_t mark = cg_scope_open(g);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_GE, tid, cg_u32(32))), true, others);
    look_back(s, l, total, slot);
    cg_scope_close(g, mark);
    cg_place(g, others);
    PTX(&g->b, "bar.sync", ptx_imm(0));
    scan_fetch(s, slot, 1, &before);
    return before;
}
