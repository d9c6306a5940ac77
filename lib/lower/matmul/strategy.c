/* What the strategy is called, what a schedule may say to it, and which schedules are worth
 * trying. */
#include <config.h>

#include "lower/matmul/matmul.h"

#include <stdio.h>

static const struct option_word by[] = {
    {"none", MATMUL_BY_NONE}, {"fma", MATMUL_BY_NONE},      {"sync", MATMUL_BY_SYNC},
    {"tf32", MATMUL_BY_TF32}, {"tf32x3", MATMUL_BY_TF32X3}, {"f16x3", MATMUL_BY_F16X3},
    {"fp8", MATMUL_BY_FP8},   {"wgmma", MATMUL_BY_WGMMA},   {NULL, 0},
};
static const struct option_word blocks[] = {
    {"multiprocessors", MATMUL_BLOCKS_ALL}, {"tiles", MATMUL_BLOCKS_TILES}, {NULL, 0}};
static const struct option_word windows[] = {
    {"tma", MATMUL_WINDOWS_TMA}, {"threads", MATMUL_WINDOWS_THREADS}, {NULL, 0}};
static const struct option_word yes_no[] = {{"yes", 1}, {"no", 0}, {NULL, 0}};
static const struct option_word turn[] = {{"yes", MATMUL_TURN}, {"no", MATMUL_TURN_NOT}, {NULL, 0}};

#define AT(member) offsetof(struct matmul_options, member)
static const struct strategy_option options[] = {
    {"mma", OPTION_WORD, 0, 0, AT(mma), "what multiplies", .words = by},
    {"tile", OPTION_LIST, 1, 65536, AT(shape), "rows, columns and terms of a block", 3,
     "[ROWS, COLUMNS, TERMS]"},
    {"warps", OPTION_LIST, 1, 32, AT(warps), "warps of a block", 2, "[ROWS, COLUMNS]"},
    {"stages", OPTION_NUMBER, 1, 16, AT(stages), "tiles of the operands in shared memory"},
    {"split", OPTION_NUMBER, 1, 256, AT(split), "blocks that share a tile"},
    {"group", OPTION_NUMBER, 1, 256, AT(group), "rows of tiles that are walked together"},
    {"cluster", OPTION_NUMBER | OPTION_LIST, 1, 16, AT(clusters),
     "tiles of a cluster's blocks, by wgmma", 2, "[ROWS, COLUMNS]"},
    {"blocks", OPTION_NUMBER | OPTION_WORD, 1, 65535, AT(blocks),
     "blocks that take tiles by turns, by tensor cores", .words = blocks},
    {"pingpong", OPTION_WORD, 0, 0, AT(pingpong),
     "whether two warpgroups take whole tiles by turns, by wgmma", .words = yes_no},
    {"turn", OPTION_WORD, 0, 0, AT(turn),
     "whether what is apart in memory is brought side by side by a launch of its own",
     .words = turn},
    {"windows", OPTION_WORD, 0, 0, AT(windows), "what copies windows, by wgmma", .words = windows},
};

/* ---- schedules worth trying ---- */

/* The sizes of a contraction, as far as they are known without its form. */
struct sizes {
    unsigned bits; /* of the first input's elements */
    uint64_t rows,
        columns; /* of the first result: its last dimension, and all others; 0: not known */
};

static struct sizes sizes_of(const struct spec *s)
{
    struct sizes z = {.bits = 16};
    bool in = false;
    for (size_t i = 0; i < s->params.n; i++) {
        const struct lang_symbol *sym = s->params.v[i].sym;
        if (sym->kind == SYM_BUFFER && sym->mode == MODE_IN && !in) {
            in = true;
            z.bits = dtype_bits(sym->type) < 8 ? 8 : dtype_bits(sym->type);
        }
        if (sym->kind != SYM_BUFFER || sym->mode == MODE_IN)
            continue;
        z.rows = z.columns = 1;
        for (uint32_t k = 0; k < sym->rank; k++) {
            int64_t extent;
            if (!lang_const_int(sym->dims[k], &extent) || extent < 1 || z.rows > UINT32_MAX)
                return (struct sizes){.bits = z.bits};
            *(k + 1 < sym->rank ? &z.rows : &z.columns) *= (uint64_t)extent;
        }
        break;
    }
    return z;
}

struct tiling {
    unsigned rows, columns, warps[2];
};

/* A tile that is mostly outside of the result is none to try. */
static bool is_sensible(const struct tiling *t, const struct sizes *z)
{
    return (!z->rows || t->rows < 2 * z->rows || t->rows == 16) &&
           (!z->columns || t->columns < 2 * z->columns || t->columns == 32);
}

__attribute__((format(printf, 3, 4))) static void add(struct arena *a, struct lower_candidates *out,
                                                      const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    *VEC_PUSH(a, &out->v) = (struct lower_candidate){"matmul", arena_vprintf(a, fmt, ap)};
    va_end(ap);
}

/* Offers products by mma.sync, with 64 or 128 bytes of an operand's row in a step. */
static void mma_candidates(struct arena *a, const struct sizes *z, struct lower_candidates *out)
{
    enum { IDLE = 512 }; /* blocks, more of which leave no multiprocessor idle */
    static const struct tiling v[] = {
        {128, 256, {2, 4}}, {256, 128, {4, 2}}, {128, 128, {2, 2}}, {128, 128, {2, 4}},
        {128, 64, {2, 2}},  {64, 128, {2, 2}},  {64, 64, {2, 2}},   {64, 256, {1, 4}},
        {32, 128, {1, 4}},  {64, 32, {2, 2}},   {16, 128, {1, 4}},  {16, 64, {1, 4}},
    };
    static const char head[] = "{strategy: matmul, tile: [%u, %u, %u], warps: [%u, %u], stages: %u";
    const unsigned k = 512 / z->bits;
    for (size_t i = 0; i < COUNT(v); i++) {
        const struct tiling *t = &v[i];
        char text[128];
        if (!is_sensible(t, z))
            continue;
        for (unsigned deep = 1; deep <= 2; deep++) {
            snprintf(text, sizeof text, head, t->rows, t->columns, k * deep, t->warps[0],
                     t->warps[1], 5 - deep);
            add(a, out, "%s}", text);
        }
        /* where there are few blocks they share tiles, and each has more on its way */
        for (unsigned split = 1; z->rows && split <= 8; split *= 2)
            for (unsigned stages = 4; stages <= 6; stages += 2)
                if (z->rows * z->columns / (t->rows * t->columns) * split <= IDLE) {
                    snprintf(text, sizeof text, head, t->rows, t->columns, 2 * k, t->warps[0],
                             t->warps[1], stages);
                    add(a, out, "%s, split: %u}", text, split);
                }
    }
}

/* Offers products by wgmma, with 128 bytes of an operand's row in a step, as many stages as there
 * is room for, with and without clusters. Tiles for large results come in other orders, too, and
 * with blocks that make whole turns. */
static void wgmma_candidates(struct arena *a, const struct sizes *z, struct lower_candidates *out)
{
    enum { MANY = 128 }; /* multiprocessors with an equal part of results that are powers of two */
    static const struct tiling v[] = {
        {128, 256, {0}}, {256, 128, {0}}, {128, 192, {0}}, {192, 128, {0}}, {128, 128, {0}},
        {128, 224, {0}}, {128, 160, {0}}, {128, 112, {0}}, {128, 64, {0}},  {64, 256, {0}},
        {64, 192, {0}},  {64, 128, {0}},  {64, 112, {0}},  {64, 64, {0}},   {64, 32, {0}},
    };
    static const char *const clusters[] = {"1", "2", "[1, 2]"};
    const unsigned k = 1024 / z->bits;
    for (size_t i = 0; i < COUNT(v); i++) {
        const struct tiling *t = &v[i];
        const uint64_t tiles = z->rows * z->columns / (t->rows * t->columns);
        if (!is_sensible(t, z))
            continue;
        for (size_t c = 0; c < COUNT(clusters); c++)
            add(a, out, "{strategy: matmul, mma: wgmma, tile: [%u, %u, %u], cluster: %s}", t->rows,
                t->columns, k, clusters[c]);
        for (unsigned group = 2; i < 2 && group <= 32 && tiles > MANY; group *= 4)
            add(a, out, "{strategy: matmul, mma: wgmma, tile: [%u, %u, %u], cluster: 2, group: %u}",
                t->rows, t->columns, k, group == 8 ? 16 : group);
        if (i < 2 && tiles > MANY)
            add(a, out,
                "{strategy: matmul, mma: wgmma, tile: [%u, %u, %u], cluster: 2, blocks: %u}",
                t->rows, t->columns, k, (unsigned)MANY);
        for (unsigned split = 2; z->rows && split <= 4 && tiles * split <= MANY; split *= 2)
            for (size_t c = 0; c < 2; c++)
                add(a, out,
                    "{strategy: matmul, mma: wgmma, tile: [%u, %u, %u], cluster: %s, split: %u}",
                    t->rows, t->columns, k, clusters[c], split);
        if (t->rows == 64 && t->columns <= 64) /* deeper steps: fewer of them */
            add(a, out, "{strategy: matmul, mma: wgmma, tile: [%u, %u, %u]}", t->rows, t->columns,
                2 * k);
    }
}

/* Offers products of f32 in parts of f16. */
static void f16_candidates(struct arena *a, const struct sizes *z, struct lower_candidates *out)
{
    static const struct tiling v[] = {{256, 128, {0}}, {128, 128, {0}}};
    static const char *const clusters[] = {"1", "2", "[1, 2]"};
    for (size_t i = 0; i < COUNT(v); i++)
        for (size_t c = 0; c < COUNT(clusters) && is_sensible(&v[i], z); c++)
            add(a, out, "{strategy: matmul, mma: f16x3, tile: [%u, %u, 64], cluster: %s}",
                v[i].rows, v[i].columns, clusters[c]);
}

/* Few rows, without tiles: threads along B's rows, or along its columns; which of them fit is the
 * layout's. */
static void row_tiles(struct arena *a, const struct sizes *z, struct lower_candidates *out)
{
    enum { MOST_ROWS = 16 };
    static const struct {
        unsigned columns, k, warps; /* columns and terms of 16 bytes each, or as many */
    } v[] = {
        /* along B's rows: k vectors of 32 threads for each warp */
        {2, 32, 1}, {4, 32, 1}, {2, 64, 2}, {4, 64, 2}, {4, 128, 4}, {2, 256, 8}, {4, 256, 8},
    };
    static const struct {
        unsigned across, rows, warps; /* vectors of columns, rows of a thread */
    } w[] = {
        {4, 4, 8},  {4, 8, 8},  {8, 4, 8},  {8, 8, 8},  {4, 8, 16},
        {8, 8, 16}, {4, 8, 32}, {8, 4, 32}, {16, 8, 8},
    };
    static const char form[] =
        "{strategy: matmul, mma: none, tile: [%u, %u, %u], warps: [1, %u], stages: %u}";
    const unsigned lanes = 128 / z->bits, rows = (unsigned)z->rows;
    if (!z->rows || z->rows > MOST_ROWS)
        return;
    for (unsigned stages = 1; stages <= 4; stages *= 2) {
        for (size_t i = 0; i < COUNT(v); i++)
            add(a, out, form, rows, v[i].columns, v[i].k * lanes, v[i].warps, stages);
        for (size_t i = 0; i < COUNT(w); i++)
            add(a, out, form, rows, w[i].across * lanes, w[i].warps * 32 / w[i].across * w[i].rows,
                w[i].warps, stages);
    }
}

/* Offers products by fma. */
static void fma_candidates(struct arena *a, const struct sizes *z, struct lower_candidates *out)
{
    static const struct tiling v[] = {
        {128, 128, {0}}, {128, 64, {0}}, {64, 128, {0}}, {64, 64, {0}},
        {32, 64, {0}},   {32, 32, {0}},  {16, 64, {0}},
    };
    for (size_t i = 0; i < COUNT(v); i++)
        for (unsigned k = 8; k <= 16 && is_sensible(&v[i], z); k += 8)
            add(a, out, "{strategy: matmul, mma: none, tile: [%u, %u, %u]}", v[i].rows,
                v[i].columns, k);
}

/* Tiles of mma.sync by turns and each of a block's own, where there are several for each
 * multiprocessor: one of them is the default. */
static void turns_candidates(struct arena *a, const struct sizes *z, struct lower_candidates *out)
{
    enum { TILE = 128 * 256, FEW = 64 }; /* multiprocessors */
    if (z->rows * z->columns <= (uint64_t)TILE * FEW)
        return;
    add(a, out, "{strategy: matmul, mma: sync, blocks: tiles}");
    add(a, out, "{strategy: matmul, mma: sync, blocks: multiprocessors}");
}

static void candidates(struct arena *a, const struct spec *s, const struct ptx_target *target,
                       struct lower_candidates *out)
{
    enum { LARGE = 256 }; /* rows and columns, of which mma.sync multiplies none as fast as wgmma */
    const struct sizes z = sizes_of(s);
    const bool wgmma = ptx_target_has_wgmma(target) && z.bits <= 32;
    if (wgmma)
        wgmma_candidates(a, &z, out);
    if (wgmma && z.bits == 32 && z.rows)
        f16_candidates(a, &z, out);
    if (!wgmma || z.rows < LARGE || z.columns < LARGE)
        mma_candidates(a, &z, out);
    if (!wgmma)
        turns_candidates(a, &z, out);
    row_tiles(a, &z, out);
    if (z.bits >= 32)
        fma_candidates(a, &z, out);
    for (unsigned split = 1; split <= 16; split *= 2)
        add(a, out, "{strategy: matmul, split: %u}", split);
    for (unsigned group = 1; group <= 16; group *= 4)
        add(a, out, "{strategy: matmul, group: %u}", group);
}

/* ---- the strategy ---- */

const struct strategy matmul_strategy = {
    .name = "matmul",
    .takes = "contractions: sums of products, by tiles; convolutions",
    .options = options,
    .noption = COUNT(options),
    .options_size = sizeof(struct matmul_options),
    .analyse = matmul_fit,
    .lower = matmul_lower,
    .candidates = candidates,
    .turn = matmul_turn,
    .takes_products = true,
};
