/* f32 in parts of f16 (matmul.h): x = 2^-s (first + 2^-11 rest).
 *
 * A launch makes those of all operands in front of the products, since what blocks would do in
 * shared memory, as they do for parts of tf32, is done again for each of a row's tiles, and shared
 * memory has no time left for it beside products of f16. So the products read f16 alone, as many
 * bytes as there are of f32, and across as well as along k.
 *
 * f16 has 30 powers of two. So each block of 128 rows (or columns) by 64 terms has a scale, 2^s, by
 * which its largest element comes to lie between 2^14 and 2^15. Each part has 11 bits: where |2^s
 * x| is at least 2^-14, what both lack is at most 2^-22 |x|; below that, down to 0, less than 2^-36
 * 2^-s. A word for each block says its scale, how many such elements it has, which the products
 * take care of (wgmma/scales.c), and whether there are infinite ones.
 *
 *     temp    $first, $rest    as the operand lies in memory     f16
 *             $scale           for each block, in that order     2^-s | bits
 *
 * A block of 512 threads takes one, each 4 times 4 elements that lie side by side:
 *
 *     along k    128 rows of 64, 32 rows at a time      across    64 rows of 128, 16 at a time
 *
 * On an H100 that is bound by memory: 8 bytes for each element.
 */
#include <config.h>

#include "lower/extent.h"
#include "lower/matmul/matmul.h"

enum {
    THREADS = 512,
    WARPS = THREADS / 32,
    LANES = 4,
    PASSES = MATMUL_SCALED_SIDE * MATMUL_SCALED_TERMS / LANES / THREADS,
    MEETINGS = 3, /* of the block */
    RESIDENT = 2, /* blocks of a multiprocessor: some load while others store */
};
/* Exponents, as f32 has them. */
enum {
    ONE = 127,
    TOP = 14,   /* of the largest element, scaled */
    LEAST = 81, /* of the largest: 2^-s stays above 2^-60, and two of them are no subnormal */
    SMALL = 28, /* so far below the largest's parts begin to lack something */
    FIELD = 23, /* the bits below an exponent */
    SPECIAL = 0xff,
};

struct parting {
    struct cg *g;
    const struct lang_expr *e; /* the read of the buffer */
    const struct matmul_parted *to;
    uint32_t last, other;        /* subscripts: along memory, and the operand's other one */
    uint32_t across, down;       /* elements of a block along these */
    uint32_t rows;               /* of a pass */
    struct cg_val thread, block; /* u32: the thread's number, and that of the block of elements */
    struct cg_val sub[VARIANT_RANK]; /* i64: of the thread's first element */
    struct cg_val first, apart; /* i64: its place in the buffer, and how far it is to the next */
    int32_t inside[PASSES];     /* predicates */
    struct ptx_operand x[PASSES][LANES];
    int32_t top, most;   /* u32: see survey() */
    const int32_t *area; /* u32: shared addresses of a word of all warps, one for each meeting */
};

uint32_t matmul_other_subscript(const struct matmul_form *f, uint32_t operand)
{
    const struct matmul_operand *o = &f->operand[operand];
    const struct lang_symbol *side = o->side == MATMUL_A ? f->i : f->j;
    const struct lang_symbol *other = o->along_k ? side : f->k;
    uint32_t n = 0;
    while (!inspect_is_index(o->plain->args[n], other))
        n++;
    return n;
}

/* ---- which elements -------------------------------------------------------------------------- */

static struct extent extent_at_launch(struct cg *g, struct lang_expr *e)
{
    int64_t n;
    return lang_const_int(e, &n) ? extent_constant(g, n)
                                 : (struct extent){.e = e, .v = extent_computed(g, e)};
}

/* The block's subscripts among all, and the thread's first element. */
static void find_place(struct parting *p)
{
    struct cg *g = p->g;
    const struct lang_symbol *scale = p->to->scale;
    const uint32_t per_row = p->across / LANES;
    struct cg_val n = cg_index(g, p->block);
    for (uint32_t i = scale->rank; i-- > 1;)
        extent_split(g, n, extent_at_launch(g, scale->dims[i]), &n, &p->sub[i]);
    p->sub[0] = n;
    const struct cg_val column = cg_mul(g, cg_binary(g, OP_MOD, p->thread, cg_u32(per_row)), LANES);
    const struct cg_val row = cg_binary(g, OP_DIV, p->thread, cg_u32(per_row));
    const struct cg_val at = cg_convert(g, p->sub[p->last], DT_U32),
                        first = cg_convert(g, p->sub[p->other], DT_U32);
    p->sub[p->last] = cg_index(g, cg_add(g, cg_mul(g, at, p->across), column));
    p->sub[p->other] = cg_index(g, cg_add(g, cg_mul(g, first, p->down), row));
}

/* The thread's elements of a pass: of the buffer, or of a temp that lies as it does. */
static struct cg_place_of place(const struct parting *p, const struct lang_symbol *t, uint32_t pass)
{
    const struct cg_val more = cg_binary(p->g, OP_MUL, p->apart, cg_int(DT_I64, pass));
    return cg_address(p->g, t, cg_binary(p->g, OP_ADD, p->first, more));
}

/* Is the extent so many whole blocks? */
static bool is_whole(const struct lang_expr *dim, uint32_t of)
{
    int64_t n;
    return lang_const_int(dim, &n) && n % of == 0;
}

/* Are there those elements? A predicate, or -1: there are. */
static int32_t exists(struct parting *p, uint32_t pass)
{
    struct cg *g = p->g;
    const struct lang_symbol *t = p->e->sym;
    struct cg_val is = cg_bool(g, true);
    if (!is_whole(t->dims[p->last], p->across))
        is = cg_binary(g, OP_LT, p->sub[p->last], cg_extent(g, t, p->last));
    if (!is_whole(t->dims[p->other], p->down)) {
        const struct cg_val row =
            cg_add(g, cg_convert(g, p->sub[p->other], DT_U32), cg_u32(pass * p->rows));
        const struct cg_val extent = cg_extent(g, t, p->other);
        const struct cg_val below = cg_binary(g, OP_LT, cg_index(g, row), extent);
        is = cg_binary(g, OP_LAND, is, below);
    }
    int64_t always;
    return cg_is_const(is, &always) ? -1 : cg_reg(g, is);
}

static void load(struct parting *p)
{
    struct cg *g = p->g;
    const struct lang_symbol *t = p->e->sym;
    const char *how = cg_is_constant(g, t) ? "ld.global.nc.v4.b32" : "ld.global.v4.b32";
    p->first = cg_flat_index(g, t, t->rank, p->sub);
    p->apart = cg_int(DT_I64, p->rows);
    for (uint32_t i = p->other + 1; i < t->rank; i++)
        p->apart = cg_binary(g, OP_MUL, p->apart, cg_extent(g, t, i));
    for (uint32_t i = 0; i < PASSES; i++) {
        p->inside[i] = exists(p, i);
        for (uint32_t e = 0; e < LANES; e++) {
            p->x[i][e] = ptx_r(cg_new(g, DT_U32));
            if (p->inside[i] >= 0)
                PTX(&g->b, "mov.u32", p->x[i][e], ptx_imm(0));
        }
        ptx_emit(&g->b, p->inside[i], false, how,
                 PTX_ARGS(ptx_vec(&g->b, LANES, p->x[i]), cg_mem(place(p, t, i))));
    }
}

/* ---- what they are --------------------------------------------------------------------------- */

/* Of all finite elements' magnitudes, as integers, the largest, and the largest of all. */
static void survey(struct parting *p)
{
    struct cg *g = p->g;
    p->top = cg_mutable(g, cg_u32(0));
    p->most = cg_mutable(g, cg_u32(0));
    for (uint32_t i = 0; i < PASSES; i++)
        for (uint32_t e = 0; e < LANES; e++) {
            const int32_t size = cg_new(g, DT_U32);
            const int32_t is_finite = cg_new(g, DT_BOOL), finite = cg_new(g, DT_U32);
            PTX(&g->b, "and.b32", ptx_r(size), p->x[i][e], ptx_imm(INT32_MAX));
            PTX(&g->b, "setp.lt.u32", ptx_r(is_finite), ptx_r(size), ptx_imm(SPECIAL << FIELD));
            PTX(&g->b, "selp.b32", ptx_r(finite), ptx_r(size), ptx_imm(0), ptx_r(is_finite));
            CG_ASSIGN(g, p->top, "max.u32", ptx_r(p->top), ptx_r(finite));
            CG_ASSIGN(g, p->most, "max.u32", ptx_r(p->most), ptx_r(size));
        }
}

static void make_areas(struct cg *g, int32_t *at)
{
    const struct ptx_var *area =
        ptx_array_new(&g->b, PTX_SHARED, "$range", PTX_B32, 16, MEETINGS * WARPS);
    const struct ptx_operand base = ptx_sym(area);
    const int32_t first = cg_pure(g, PTX_B32, "mov.u32", 1, &base);
    for (uint32_t i = 0; i < MEETINGS; i++)
        at[i] = cg_reg(g, cg_add(g, cg_value(DT_U32, first), cg_u32(i * WARPS * 4)));
}

/* The largest, or the sum, of the block's: each warp leaves its own in shared memory. */
static void meet(struct parting *p, const char *fold, int32_t area, int32_t word)
{
    struct cg *g = p->g;
    const struct cg_val lane = cg_binary(g, OP_AND, p->thread, cg_u32(31));
    const struct cg_val warp = cg_binary(g, OP_SHR, p->thread, cg_u32(5));
    const struct cg_val first = cg_value(DT_U32, area);
    const struct cg_val mine = cg_add(g, first, cg_mul(g, warp, 4));
    const int32_t leads = cg_reg(g, cg_binary(g, OP_EQ, lane, cg_u32(0)));
    const int32_t others = cg_reg(g, cg_binary(g, OP_GE, lane, cg_u32(WARPS)));
    CG_ASSIGN(g, word, fold, ptx_r(word), ptx_imm(-1));
    PTX_IF(&g->b, leads, "st.shared.b32", ptx_mem(cg_reg(g, mine), 0), ptx_r(word));
    PTX(&g->b, "bar.sync", ptx_imm(0));
    const struct cg_val slot = cg_binary(g, OP_AND, lane, cg_u32(WARPS - 1));
    const struct cg_val theirs = cg_add(g, first, cg_mul(g, slot, 4));
    CG_ASSIGN(g, word, "ld.shared.b32", ptx_mem(cg_reg(g, theirs), 0));
    CG_ASSIGN_IF(g, others, word, "mov.u32", ptx_imm(0));
    CG_ASSIGN(g, word, fold, ptx_r(word), ptx_imm(-1));
}

/* Elements that are less than this, but not 0, counted up to MATMUL_SCALED_TERMS: a u32. */
static struct cg_val count(struct parting *p, int32_t less)
{
    struct cg *g = p->g;
    const int32_t n = cg_mutable(g, cg_u32(0));
    for (uint32_t i = 0; i < PASSES; i++)
        for (uint32_t e = 0; e < LANES; e++) {
            const int32_t size = cg_new(g, DT_U32), below = cg_new(g, DT_U32);
            const int32_t is = cg_new(g, DT_BOOL);
            PTX(&g->b, "and.b32", ptx_r(size), p->x[i][e], ptx_imm(INT32_MAX));
            PTX(&g->b, "add.u32", ptx_r(below), ptx_r(size), ptx_imm(-1));
            PTX(&g->b, "setp.lt.u32", ptx_r(is), ptx_r(below), ptx_r(less));
            CG_ASSIGN_IF(g, is, n, "add.u32", ptx_r(n), ptx_imm(1));
        }
    meet(p, "redux.sync.add.u32", p->area[2], n);
    return cg_minmax(g, false, cg_value(DT_U32, n), cg_u32(MATMUL_SCALED_TERMS));
}

/* Writes the block's word; 2^s, an f32. */
static int32_t scale(struct parting *p)
{
    struct cg *g = p->g;
    const struct cg_val top = cg_value(DT_U32, p->top);
    const struct cg_val field = cg_u32(FIELD);
    const struct cg_val exponent =
        cg_minmax(g, true, cg_binary(g, OP_SHR, top, field), cg_u32(LEAST));
    const struct cg_val up = cg_binary(g, OP_SUB, cg_u32(2 * ONE + TOP), exponent);
    const struct cg_val down = cg_binary(g, OP_SUB, exponent, cg_u32(TOP));
    struct cg_val small = cg_binary(g, OP_SUB, exponent, cg_u32(SMALL));
    small = cg_binary(g, OP_SUB, cg_binary(g, OP_SHL, small, field), cg_u32(1));
    const struct cg_val lose = count(p, cg_reg(g, small));
    struct cg_val wild = cg_binary(g, OP_GE, cg_value(DT_U32, p->most), cg_u32(SPECIAL << FIELD));
    wild = cg_mul(g, cg_convert(g, wild, DT_U32), MATMUL_SCALED_WILD);
    struct cg_val word = cg_binary(g, OP_SHL, down, field);
    word = cg_binary(g, OP_OR, word, cg_binary(g, OP_OR, lose, wild));
    const struct cg_place_of at = cg_address(g, p->to->scale, cg_index(g, p->block));
    const int32_t leads = cg_reg(g, cg_binary(g, OP_EQ, p->thread, cg_u32(0)));
    PTX_IF(&g->b, leads, "st.global.b32", cg_mem(at), ptx_r(cg_reg(g, word)));
    const int32_t by = cg_new(g, DT_F32);
    PTX(&g->b, "mov.b32", ptx_r(by), ptx_r(cg_reg(g, cg_binary(g, OP_SHL, up, field))));
    return by;
}

/* ---- their parts ----------------------------------------------------------------------------- */

/* Two elements: a word of first parts, and one of rests. */
static void part(struct cg *g, const struct ptx_operand *x, int32_t by, struct ptx_operand *first,
                 struct ptx_operand *rest)
{
    struct ptx_operand left[2];
    for (uint32_t e = 0; e < 2; e++) {
        const int32_t plain = cg_new(g, DT_F32), y = cg_new(g, DT_F32), h = cg_new(g, DT_F16);
        const int32_t back = cg_new(g, DT_F32), d = cg_new(g, DT_F32), r = cg_new(g, DT_F32);
        PTX(&g->b, "mov.b32", ptx_r(plain), x[e]);
        PTX(&g->b, "mul.rn.f32", ptx_r(y), ptx_r(plain), ptx_r(by));
        PTX(&g->b, "cvt.rn.f16.f32", ptx_r(h), ptx_r(y));
        PTX(&g->b, "cvt.f32.f16", ptx_r(back), ptx_r(h));
        PTX(&g->b, "sub.rn.f32", ptx_r(d), ptx_r(y), ptx_r(back));
        PTX(&g->b, "mul.rn.f32", ptx_r(r), ptx_r(d), ptx_immf32(0x1p11f));
        left[e] = ptx_r(r);
        first[e] = ptx_r(h);
    }
    const struct ptx_operand pair[2] = {first[0], first[1]};
    first[0] = ptx_r(ptx_reg_new(&g->b, PTX_B32));
    PTX(&g->b, "mov.b32", first[0], ptx_vec(&g->b, 2, pair));
    *rest = ptx_r(ptx_reg_new(&g->b, PTX_B32));
    PTX(&g->b, "cvt.rn.f16x2.f32", *rest, left[1], left[0]); /* the second is the lower half */
}

static void store_words(struct parting *p, const struct lang_symbol *t, uint32_t pass,
                        const struct ptx_operand *word)
{
    struct ptx_builder *b = &p->g->b;
    ptx_emit(b, p->inside[pass], false, "st.global.v2.b32",
             PTX_ARGS(cg_mem(place(p, t, pass)), ptx_vec(b, 2, word)));
}

static void store(struct parting *p, int32_t by)
{
    struct cg *g = p->g;
    for (uint32_t i = 0; i < PASSES; i++) {
        struct ptx_operand first[LANES], rest[2], firsts[2];
        for (uint32_t w = 0; w < 2; w++) {
            part(g, &p->x[i][2 * w], by, &first[2 * w], &rest[w]);
            firsts[w] = first[2 * w];
        }
        store_words(p, p->to->first, i, firsts);
        store_words(p, p->to->rest, i, rest);
    }
}

/* ---- launches -------------------------------------------------------------------------------- */

static void make_temps(struct parting *p, struct matmul_parted *to)
{
    struct cg *g = p->g;
    const struct lang_symbol *t = p->e->sym;
    struct lang_expr *dim[VARIANT_RANK];
    for (uint32_t i = 0; i < t->rank; i++)
        dim[i] = i == p->last    ? lx_ceil_div_int(g->a, t->dims[i], p->across)
                 : i == p->other ? lx_ceil_div_int(g->a, t->dims[i], p->down)
                                 : t->dims[i];
    *to = (struct matmul_parted){.first = cg_temp(g, "first", DT_F16, t->rank, t->dims, false),
                                 .rest = cg_temp(g, "rest", DT_F16, t->rank, t->dims, false),
                                 .scale = cg_temp(g, "scale", DT_U32, t->rank, dim, false)};
}

static struct lang_expr *blocks_of(struct cg *g, const struct lang_symbol *scale)
{
    struct lang_expr *n = lx_int(g->a, 1);
    for (uint32_t i = 0; i < scale->rank; i++)
        n = lx_mul(g->a, n, scale->dims[i]);
    return n;
}

static void part_block(struct parting *p)
{
    find_place(p);
    load(p);
    survey(p);
    meet(p, "redux.sync.max.u32", p->area[0], p->top);
    meet(p, "redux.sync.max.u32", p->area[1], p->most);
    store(p, scale(p));
}

/* The first operand that has the same parts: they are all of a buffer's elements. */
static uint32_t same_parts(const struct matmul_form *f, uint32_t n)
{
    const struct matmul_operand *o = &f->operand[n], *q = f->operand;
    uint32_t k = 0;
    while (k < n && !(q[k].plain->sym == o->plain->sym && q[k].along_k == o->along_k &&
                      matmul_other_subscript(f, k) == matmul_other_subscript(f, n)))
        k++;
    return k;
}

double matmul_parts_about(const struct matmul_form *f)
{
    const double launch = 2500, moved = 2600; /* bytes in a nanosecond, of 8 for each element */
    double elements = 0;
    for (uint32_t n = 0; n < f->noperand; n++) {
        const struct lang_symbol *t = f->operand[n].plain->sym;
        double all = same_parts(f, n) == n;
        for (uint32_t i = 0; i < t->rank; i++) {
            int64_t extent;
            all *= lang_const_int(t->dims[i], &extent) ? (double)extent : 0;
        }
        elements += all;
    }
    return launch + elements * 8 / moved;
}

/* The different ones of the operands, with their temps; how many. */
static uint32_t find_partings(struct cg *g, const struct matmul_form *f, struct matmul_parted *to,
                              struct parting *all)
{
    const uint32_t side = MATMUL_SCALED_SIDE, terms = MATMUL_SCALED_TERMS;
    uint32_t found = 0;
    for (uint32_t n = 0; n < f->noperand; n++) {
        const struct matmul_operand *o = &f->operand[n];
        struct parting p = {.g = g,
                            .e = o->plain,
                            .to = &to[n],
                            .last = o->plain->nargs - 1,
                            .other = matmul_other_subscript(f, n),
                            .across = o->along_k ? terms : side,
                            .down = o->along_k ? side : terms};
        const uint32_t same = same_parts(f, n);
        p.rows = THREADS / (p.across / LANES);
        if (same < n) {
            to[n] = to[same];
        } else {
            make_temps(&p, &to[n]);
            all[found++] = p;
        }
    }
    return found;
}

bool matmul_lower_parts(struct cg *g, const struct matmul_form *f, struct matmul_parted *to)
{
    struct parting p[MATMUL_OPERANDS];
    struct lang_expr *blocks = lx_int(g->a, 0);
    int32_t area[MEETINGS];
    const uint32_t n = find_partings(g, f, to, p);
    cg_begin(g, lower_entry_name(g, "parts"));
    cg_at(g, f->stage->eq[0]->span);
    g->shared_bytes = NULL;
    g->block[0] = g->func->reqntid[0] = THREADS;
    g->block[1] = g->block[2] = 1;
    g->func->reqntid[1] = g->func->reqntid[2] = 1;
    g->func->minnctapersm = RESIDENT;
    make_areas(g, area);
    const struct cg_val thread = cg_special(g, SP_TID_X);
    struct cg_val block = cg_special(g, SP_CTAID_X);
    for (uint32_t i = 0; i < n; i++) {
        struct lang_expr *own = blocks_of(g, p[i].to->scale);
        const uint32_t others = cg_label(g, "others");
        const size_t mark = cg_scope_open(g);
        const struct cg_val many = extent_u32(g, extent_at_launch(g, own).v);
        p[i].thread = thread;
        p[i].block = block;
        p[i].area = area;
        if (i + 1 < n)
            cg_jump_if(g, cg_reg(g, cg_binary(g, OP_LT, block, many)), false, others);
        part_block(&p[i]);
        if (i + 1 < n) {
            cg_jump(g, g->exit);
            g->exit_used = true;
        }
        cg_scope_close(g, mark);
        cg_place(g, others);
        block = cg_binary(g, OP_SUB, block, many);
        blocks = lx_add(g->a, blocks, own);
    }
    lower_tell(g, &(struct lower_entry){.name = g->func->name,
                                        .how = "two parts of f16 of each factor",
                                        .ns = matmul_parts_about(f)});
    cg_end(g, cg_launch(g, blocks, lx_int(g->a, THREADS)));
    g->step++;
    return !g->failed;
}
