/* Gathered operands that copies of boxes bring (matmul.h): which ones, and where a box begins.
 *
 *     pad(x[r / 3136, r % 3136 / 56 + t / 192 - 1, r % 56 + t % 192 / 64 - 1, t % 64], 0)
 *
 * A copy of windows (.im2col) takes pixels one after the other, as r counts them: those that a
 * window begins at, along each dimension from one corner to the other by steps. Which pixel of the
 * windows it is, t / 192 and t % 192 / 64, a copy says by offsets. So r's digits must be those of
 * the pixels and the images, each to the end, and t's digits must not change within a box.
 *
 *     w[t % 384 % 128, t / 384, t % 384 / 128, d]
 *
 * Where each subscript is a digit of r or of t by itself, a box of the buffer is what is wanted,
 * one element wide along all dimensions but two.
 *
 * Digits must be known: divisors and rests are numbers.
 */
#include <config.h>

#include "lower/matmul/matmul.h"

enum { MOST_STEP = 8, MOST_PIXELS = 1024, MOST_ROWS = 256 };

/* root / div % mod; mod 0: no rest is taken. */
struct digit {
    const struct lang_symbol *root;
    int64_t div, mod;
};

/* A part of a subscript: digit * times + more, or, with root NULL, more. */
struct part {
    struct digit digit;
    int64_t times, more;
};

struct finder {
    struct matmul_boxes *to;
    const struct matmul_gather *p;
    const struct lang_symbol *row, *in_row; /* whose neighbours are rows of a box, and in a row */
    bool along_k;
    struct part along[VARIANT_RANK], across[VARIANT_RANK]; /* of rows; of elements in them */
};

/* ---- digits ---------------------------------------------------------------------------------- */

static bool find_digit(const struct lang_expr *e, struct digit *d)
{
    int64_t by;
    e = inspect_strip(e);
    if (e->kind == E_NAME && e->sym->kind == SYM_INDEX && !e->sym->low) {
        *d = (struct digit){.root = e->sym, .div = 1};
        return true;
    }
    if (e->kind != E_BINARY || (e->op != OP_DIV && e->op != OP_MOD) ||
        !lang_const_int(e->args[1], &by) || by < 1 || !find_digit(e->args[0], d) ||
        (d->mod && d->mod % by))
        return false;
    if (e->op == OP_MOD) {
        d->mod = by;
        return true;
    }
    d->mod /= by;
    return !__builtin_mul_overflow(d->div, by, &d->div);
}

static bool add_digit(const struct lang_expr *e, int64_t times, struct part *to)
{
    to->times = times;
    return !to->digit.root && find_digit(e, &to->digit);
}

static bool find_part(const struct lang_expr *e, int64_t sign, struct part *to)
{
    int64_t n;
    if (!e)
        return true;
    e = inspect_strip(e);
    if (lang_const_int(e, &n)) {
        to->more += sign * n; /* which is less than 2^29: matmul_find_gather() */
        return n > -(1 << 29) && n < 1 << 29;
    }
    if (e->kind == E_BINARY && (e->op == OP_ADD || e->op == OP_SUB))
        return find_part(e->args[0], sign, to) &&
               find_part(e->args[1], e->op == OP_SUB ? -sign : sign, to);
    for (uint32_t i = 0; e->kind == E_BINARY && e->op == OP_MUL && i < 2; i++)
        if (lang_const_int(e->args[i], &n))
            return n > 0 && n <= INT16_MAX && add_digit(e->args[1 - i], sign * n, to);
    return add_digit(e, sign, to);
}

/* The largest value of a digit; -1: it is not known. */
static int64_t most_of(const struct digit *d)
{
    int64_t extent;
    if (d->mod)
        return d->mod - 1;
    return lang_const_int(d->root->dims[0], &extent) && extent > 0 ? (extent - 1) / d->div : -1;
}

static bool is_bare(const struct part *p)
{
    return p->digit.root && p->times == 1 && p->more == 0;
}

static bool is_none(const struct part *p)
{
    return !p->digit.root && p->more == 0;
}

/* ---- in a row -------------------------------------------------------------------------------- */

/* The last subscript counts elements side by side, and all other digits of their index have one
 * value in a box. */
static bool fits_in_row(const struct finder *f, uint32_t elements)
{
    const uint32_t last = f->p->n - 1;
    const struct part *side = &f->across[last];
    if (!is_bare(side) || !is_none(&f->along[last]) || side->digit.root != f->in_row ||
        side->digit.div != 1 || side->digit.mod % elements)
        return false;
    for (uint32_t i = 0; i < last; i++) {
        const struct part *p = &f->across[i];
        if (p->digit.root && (p->digit.root != f->in_row || p->digit.div % elements))
            return false;
    }
    f->to->channels = side->digit.mod;
    return true;
}

/* ---- windows of pixels ----------------------------------------------------------------------- */

/* How many values has r's digit? 0: that is not known. */
static int64_t count_of(const struct finder *f, const struct digit *d)
{
    int64_t rows;
    if (d->mod)
        return d->mod;
    return lang_const_int(f->row->dims[0], &rows) && rows % d->div == 0 ? rows / d->div : 0;
}

/* Do r's digits count pixels and images, each to its end? Or pixels alone, of a batch's image: then
 * what is behind the last of them belongs to the next image, and is not stored. */
static bool counts_pixels(const struct finder *f, const char **why)
{
    int64_t below = 1, images;
    const struct digit *image = &f->along[0].digit;
    const uint32_t first = f->along_k && image->root && image->root != f->row; /* r's highest */
    for (uint32_t i = f->p->n - 1; i-- > first;) {
        const struct digit *d = &f->along[i].digit;
        *why = "rows are no pixels of images in their order";
        if (d->root != f->row || d->div != below || (d->mod == 0) != (i == first))
            return false;
        if (i > first && __builtin_mul_overflow(below, d->mod, &below))
            return false;
    }
    *why = "the number of pixels is not known";
    if (first && !lang_const_int(f->row->dims[0], &f->to->pixels))
        return false;
    if (f->along_k) /* what is behind the last row is not stored */
        return true;
    *why = "the number of images is not known";
    return lang_const_int(f->p->e->sym->dims[0], &images) && count_of(f, image) == images;
}

/* Along subscript i, dimension 1 + n of the tensor map. */
static bool find_corners(const struct finder *f, uint32_t i, uint32_t n, const char **why)
{
    static const int64_t corner[] = {32767, 127, 15}, offset[] = {65535, 255, 31};
    const struct part *at = &f->along[i], *in = &f->across[i];
    struct matmul_boxes *to = f->to;
    const uint32_t space = f->p->n - 2;
    int64_t dim, most = 0;
    const int64_t count = count_of(f, &at->digit);
    *why = "a window is not known, or its pixels go too far";
    if (in->digit.root && ((most = most_of(&in->digit)) < 0 || most > UINT16_MAX))
        return false;
    most *= in->times < 0 ? -in->times : in->times;
    if (most > offset[space - 1])
        return false;
    *why = "steps are more than 8 pixels";
    if (at->times < 1 || at->times > MOST_STEP)
        return false;
    *why = "sizes of images are not known";
    if (!lang_const_int(f->p->e->sym->dims[i], &dim) || count == 0)
        return false;
    const int64_t back = in->times < 0 ? most : 0; /* offsets count from the first pixel */
    const int64_t lower = at->more + in->more - back;
    const int64_t upper = lower + (count - 1) * at->times - dim + 1;
    *why = "windows begin too far outside of images";
    if (lower < -corner[space - 1] - 1 || lower > corner[space - 1] ||
        upper < -corner[space - 1] - 1 || upper > corner[space - 1])
        return false;
    to->step[n] = (uint32_t)at->times;
    to->lower[n] = (int32_t)lower;
    to->upper[n] = (int32_t)upper;
    to->more[n] = lower - at->more;
    to->far[n] = back - in->more;
    return true;
}

static bool find_windows(const struct finder *f, const char **why)
{
    const uint32_t last = f->p->n - 1;
    *why = "images have 1 to 3 dimensions of pixels";
    if (f->p->n < 3 || f->p->n > CONTRACT_MAP_RANK)
        return false;
    if (!counts_pixels(f, why))
        return false;
    *why = "rows are no pixels of images in their order";
    if (!is_bare(&f->along[0]) || !is_none(&f->across[0]))
        return false;
    for (uint32_t i = 1; i < last; i++)
        if (!find_corners(f, i, last - 1 - i, why))
            return false;
    f->to->im2col = true;
    return true;
}

/* ---- boxes of the buffer --------------------------------------------------------------------- */

/* Do all rows lie along one subscript, and has each subscript a digit of its own? */
static bool find_plain(const struct finder *f)
{
    struct matmul_boxes *to = f->to;
    bool any = false;
    int64_t dim, extent;
    if (f->p->n > CONTRACT_MAP_RANK)
        return false;
    for (uint32_t i = 0; i + 1 < f->p->n; i++) {
        const struct part *at = &f->along[i], *in = &f->across[i];
        if (!(is_bare(at) && is_none(in)) && !(is_bare(in) && is_none(at)))
            return false;
        if (at->digit.root != f->row || at->digit.div != 1)
            continue;
        any = true;
        to->row = i;
        to->rows = at->digit.mod;
        if (!at->digit.mod && (!lang_const_int(f->p->e->sym->dims[i], &dim) ||
                               !lang_const_int(f->row->dims[0], &extent) || dim != extent))
            return false;
    }
    for (uint32_t i = 0; i + 1 < f->p->n && any; i++) {
        const struct digit *d = &f->along[i].digit;
        if (d->root && (d->root != f->row || (i != to->row && (!to->rows || d->div % to->rows))))
            return false;
    }
    return any &&
           (!to->rows || (lang_const_int(f->row->dims[0], &extent) && extent % to->rows == 0));
}

/* ---- what fits ------------------------------------------------------------------------------- */

void matmul_find_boxes(struct cg *g, struct matmul_gather *p, const struct lang_symbol *row,
                       const struct lang_symbol *in_row, bool along_k)
{
    const uint32_t elements = MATMUL_BOX_SPAN * 8 / dtype_bits(p->e->sym->type);
    struct matmul_boxes *to = ARENA_NEW(g->a, struct matmul_boxes);
    struct finder f = {.to = to, .p = p, .row = row, .in_row = in_row, .along_k = along_k};
    *to = (struct matmul_boxes){.along_k = along_k};
    p->boxes = NULL;
    p->no_boxes = "its sizes are not known, or subscripts are no pixels";
    for (uint32_t i = 0; i < p->n; i++)
        if (!find_part(p->sub[i].at, 1, along_k ? &f.along[i] : &f.across[i]) ||
            !find_part(p->sub[i].k, 1, along_k ? &f.across[i] : &f.along[i]))
            return;
    p->no_boxes =
        arena_printf(g->a, "a window's pixels have no multiples of %u channels", elements);
    if (fits_in_row(&f, elements) && (find_plain(&f) || find_windows(&f, &p->no_boxes))) {
        p->boxes = to;
        p->no_boxes = NULL;
    }
}

bool matmul_boxes_fit(const struct matmul_boxes *b, uint32_t rows)
{
    return b->im2col ? rows <= MOST_PIXELS : rows <= MOST_ROWS && (!b->rows || b->rows % rows == 0);
}

void matmul_boxes_require(struct cg *g, const struct matmul_gather *p, struct variant_condition *c)
{
    for (uint32_t i = 0; i < p->n; i++)
        variant_require_some(g, c, p->e->sym->dims[i]);
}

/* ---- code ------------------------------------------------------------------------------------ */

int32_t matmul_boxes_map(struct matmul *m, const struct matmul_gather *p, uint32_t rows,
                         uint32_t elements)
{
    const struct matmul_boxes *b = p->boxes;
    const struct lang_symbol *t = p->e->sym;
    const bool tf32 = p->cut == MATMUL_EVEN;
    uint32_t box[CONTRACT_MAP_RANK] = {elements, 1, 1, 1, 1};
    if (!b->im2col) {
        box[p->n - 1 - b->row] = rows;
        return cg_param_map(m->g, t, box, tf32);
    }
    box[1] = rows;
    return cg_param_windows(
        m->g, t, box, &(struct cg_windows){.lower = b->lower, .upper = b->upper, .step = b->step},
        tf32);
}

/* Channels that are behind the last one read as 0: so does what is behind the last term. */
static struct cg_val channel_at(struct matmul *m, const struct matmul_gather *p, struct cg_val at,
                                struct cg_val k)
{
    struct cg *g = m->g;
    if (!p->boxes->along_k || m->whole_k || !p->boxes->channels)
        return at;
    const struct cg_val ok = cg_binary(g, OP_LT, cg_index(g, k), m->k);
    const struct cg_val behind = cg_extent(g, p->e->sym, p->n - 1);
    return cg_select(g, cg_reg(g, ok), at, behind);
}

void matmul_boxes_at(struct matmul *m, const struct matmul_gather *p, struct cg_val at,
                     struct cg_val k, struct matmul_box *box)
{
    struct cg *g = m->g;
    const struct matmul_boxes *b = p->boxes;
    const uint32_t last = p->n - 1;
    *box = (struct matmul_box){.rank = p->n, .noffset = b->im2col ? p->n - 2 : 0};
    struct cg_val images = cg_int(DT_I64, 0); /* a cluster's last tiles begin behind the image */
    if (b->pixels) {
        cg_divmod(g, cg_index(g, at), cg_int(DT_I64, b->pixels), &images, &at);
        at = cg_convert(g, at, DT_U32);
    }
    for (uint32_t d = 0; d < p->n; d++) {
        struct cg_val x = matmul_gather_part(m, p, last - d, false, at);
        if (d == last)
            x = cg_binary(g, OP_ADD, x, images);
        const struct cg_val y = matmul_gather_part(m, p, last - d, true, k);
        struct cg_val v = cg_binary(g, OP_ADD, x, y);
        if (d == 0)
            v = channel_at(m, p, v, k);
        if (b->im2col && d && d < last) {
            const struct cg_val far = cg_int(DT_I64, b->far[d - 1]);
            const struct cg_val in = cg_binary(g, OP_ADD, b->along_k ? y : x, far);
            const int32_t offset = cg_reg(g, cg_convert(g, in, DT_U32));
            box->offset[d - 1] = ptx_r(CG(g, PTX_B16, "cvt.u16.u32", ptx_r(offset)));
            v = cg_binary(g, OP_ADD, b->along_k ? x : y, cg_int(DT_I64, b->more[d - 1]));
        }
        box->at[d] = ptx_r(cg_reg(g, cg_convert(g, v, DT_U32)));
    }
}
