#include <config.h>

#include "ref/fill.h"

#include "data/generate.h"
#include "data/philox.h"
#include "ref/parallel.h"

#include <float.h>
#include <math.h>

const char *const fill_names[] = {"exact", "normal", "uniform", "edge", "extreme", NULL};

/* ---- what the spec does with its inputs ------------------------------------------------------ */

static bool exact_call(enum lang_builtin fn)
{
    switch ((int)fn) {
    case FN_FMA:
    case FN_RELU:
    case FN_ABS:
    case FN_MIN:
    case FN_MAX:
    case FN_CLAMP:
    case FN_FLOOR:
    case FN_CEIL:
    case FN_TRUNC:
    case FN_ROUND:
    case FN_RINT:
    case FN_TF32:
    case FN_TF32_RN:
    case FN_TF32_RZ: return true;
    default: return false;
    }
}

static bool exact_expr(const struct lang_expr *e)
{
    if (e->kind == E_CALL && dtype_is_float(e->type) && !exact_call(e->fn))
        return false;
    if (e->kind == E_BINARY && e->op == OP_DIV && dtype_is_float(e->type))
        return false;
    /* literals and scalars as 0.044715 make it inexact */
    if (e->kind == E_FLOAT && e->fval * 256 != rint(e->fval * 256))
        return false;
    for (uint32_t k = 0; k < e->nargs; k++)
        if (!exact_expr(e->args[k]))
            return false;
    return !(e->kind == E_INDEX && e->pad) || exact_expr(e->pad);
}

bool fill_can_be_exact(const struct spec *s)
{
    const struct lang_equations *q = spec_oracle(s);
    for (size_t k = 0; k < q->n; k++)
        if (!exact_expr(q->v[k]->rhs))
            return false;
    return true;
}

struct walk {
    const struct ref_input *in;
    const struct lang_symbol *sym;
    struct fill_use use;
};

static bool mentions(const struct lang_expr *e, const struct lang_symbol *sym)
{
    if ((e->kind == E_INDEX || e->kind == E_NAME) && e->sym == sym)
        return true;
    for (uint32_t k = 0; k < e->nargs; k++)
        if (mentions(e->args[k], sym))
            return true;
    return false;
}

static bool lookup(void *ctx, const struct lang_symbol *sym, double *f, int64_t *i)
{
    const struct ref_input *in = ctx;
    *i = sym->kind == SYM_DIM ? (int64_t)in->dims[sym->id] : in->scalars[sym->id].i;
    *f = sym->kind == SYM_DIM ? (double)*i : in->scalars[sym->id].f;
    return sym->kind == SYM_DIM || sym->kind == SYM_SCALAR;
}

static void walk(struct walk *w, const struct lang_expr *e)
{
    if (e->kind == E_INDEX)
        for (uint32_t k = 0; k < e->nargs; k++) {
            struct arena *a = arena_new();
            int64_t extent;
            if (a && mentions(e->args[k], w->sym) && e->sym->dims &&
                lang_eval_int(e->sym->dims[k], lookup, (void *)(uintptr_t)w->in, &extent,
                              diags_new(a))) {
                uint64_t x = extent > 0 ? (uint64_t)extent : 1;
                w->use.extent = w->use.subscript && w->use.extent < x ? w->use.extent : x;
                w->use.padded = (w->use.padded || !w->use.subscript) && e->pad;
                w->use.subscript = true;
            }
            arena_free(a);
        }
    if (e->kind == E_BINARY && mentions(e->args[1], w->sym)) {
        w->use.divisor |= e->op == OP_DIV || e->op == OP_MOD;
        w->use.shift |= e->op == OP_SHL || e->op == OP_SHR;
    }
    for (uint32_t k = 0; k < e->nargs; k++)
        walk(w, e->args[k]);
    if (e->kind == E_INDEX && e->pad)
        walk(w, e->pad);
}

/* ---- what is reduced together ---------------------------------------------------------------- */

/* Which dimensions of each equation's tensor are reduced along, in some other equation. */
struct along {
    const struct lang_equations *q;
    uint32_t *of; /* by equation */
};

/* Does a subscript run along a reduction? It does if it mentions an index of one, or an index of
 * the equation along which what the equation defines is reduced. */
static bool runs_along(const struct along *g, size_t eq, const struct lang_expr *e)
{
    const struct lang_equation *q = g->q->v[eq];
    bool any = false;
    if (e->kind == E_NAME && e->sym->kind == SYM_INDEX) {
        uint32_t p = 0;
        while (p < q->nindex && q->index[p] != e->sym)
            p++;
        any = p == q->nindex || (p < 32 && (g->of[eq] >> p & 1));
    }
    for (uint32_t k = 0; k < e->nargs && e->kind != E_INDEX; k++)
        any |= runs_along(g, eq, e->args[k]);
    return any;
}

/* The dimensions of sym that are reduced along below e, in equation eq of the list. */
static uint32_t along_in(const struct along *g, size_t eq, const struct lang_symbol *sym,
                         const struct lang_expr *e)
{
    uint32_t bits = 0;
    for (uint32_t k = 0; k < e->nargs; k++) {
        if (e->kind == E_INDEX && e->sym == sym && k < 32 && runs_along(g, eq, e->args[k]))
            bits |= (uint32_t)1 << k;
        bits |= along_in(g, eq, sym, e->args[k]);
    }
    return bits;
}

static uint32_t reduced_along(const struct lang_equations *q, const struct lang_symbol *sym)
{
    struct arena *a = arena_new();
    struct along g = {q, ARENA_ARRAY(a, q->n ? q->n : 1, uint32_t)};
    uint32_t bits = 0;
    bool more = true;
    for (size_t pass = 0; more && pass < 16; pass++) { /* what depends on what: few are deep */
        more = false;
        for (size_t t = 0; t < q->n; t++) {
            uint32_t before = g.of[t];
            for (size_t k = 0; k < q->n; k++)
                g.of[t] |= along_in(&g, k, q->v[t]->sym, q->v[k]->rhs);
            more |= g.of[t] != before;
        }
    }
    for (size_t k = 0; k < q->n; k++)
        bits |= along_in(&g, k, sym, q->v[k]->rhs);
    arena_free(a);
    return bits;
}

struct fill_use fill_use_of(const struct ref_input *in, const struct spec_param *param)
{
    struct walk w = {.in = in, .sym = param->sym};
    const struct lang_equations *q = spec_oracle(in->spec);
    if (!dtype_is_float(param->sym->type))
        for (size_t k = 0; k < q->n; k++)
            walk(&w, q->v[k]->rhs);
    else
        w.use.reduced = reduced_along(q, param->sym);
    return w.use;
}

static bool reduces(const struct lang_expr *e)
{
    bool any = e->kind == E_REDUCE;
    for (uint32_t k = 0; k < e->nargs; k++)
        any |= reduces(e->args[k]);
    return any;
}

uint64_t fill_terms(const struct ref_input *in)
{
    const struct lang_equations *q = spec_oracle(in->spec);
    uint64_t most = 1;
    bool any = false;
    for (size_t k = 0; k < q->n; k++)
        any |= reduces(q->v[k]->rhs);
    for (size_t k = 0; any && k < in->spec->dims.n; k++)
        most = in->dims[k] > most ? in->dims[k] : most;
    return most;
}

/* ---- filling --------------------------------------------------------------------------------- */

static uint64_t name_hash(const char *s)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 0x100000001b3u;
    return h;
}

struct words {
    uint32_t w[4];
};

static struct words random_words(uint64_t seed, uint64_t stream, uint64_t i)
{
    struct words r;
    uint32_t counter[4] = {(uint32_t)i, (uint32_t)(i >> 32), (uint32_t)stream,
                           (uint32_t)(stream >> 32)};
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    philox4x32(counter, key, r.w);
    return r;
}

/* The largest L for which `terms` products of whole numbers up to L stay exact in 24 bits, and L
 * itself in t. */
static int64_t exact_limit(enum dtype t, uint64_t terms)
{
    int64_t most = dtype_is_float(t) && dtype_precision(t) < 6 ? (int64_t)1 << dtype_precision(t)
                                                               : 32;
    while (most > 1 && (double)most * (double)most * (double)(terms ? terms : 1) > 0x1p24)
        most--;
    return most;
}

/* What is the same for all elements of a buffer. */
struct filling {
    enum fill_kind kind;
    uint64_t seed, stream, terms;
    const struct fill_use *use;
    int64_t limit;
    struct buffer *b;
};

static double special_value(enum dtype t, uint32_t k)
{
    const double special[] = {0.0,
                              -0.0,
                              dtype_smallest(t),
                              -dtype_smallest(t),
                              dtype_smallest(t) * 3,
                              1,
                              -1,
                              dtype_max(t),
                              -dtype_max(t),
                              INFINITY,
                              -INFINITY,
                              NAN,
                              t == DT_F64   ? DBL_MIN
                              : t == DT_F16 ? 0x1p-14
                                            : (double)FLT_MIN};
    return special[k % (sizeof special / sizeof *special)];
}

/* ---- extreme ---- */

/* The place of element i: the row, and where in how many it stands. Without a reduction, pieces of
 * 32 elements are rows. */
struct place {
    uint64_t row, at, length;
};

static struct place place_of(const struct filling *f, uint64_t i)
{
    struct place p = {0, 0, 1};
    uint64_t rows = 1;
    if (!f->use->reduced)
        return (struct place){i / 32, i % 32, 32};
    for (uint32_t d = f->b->rank; d-- > 0;) {
        uint64_t n = f->b->dim[d] ? f->b->dim[d] : 1, x = i % n;
        i /= n;
        if (f->use->reduced >> d & 1) {
            p.at += x * p.length;
            p.length *= n;
        } else {
            p.row += x * rows;
            rows *= n;
        }
    }
    return p;
}

static double extreme_value(const struct filling *f, uint64_t i, struct words r)
{
    enum dtype t = f->b->type;
    struct place p = place_of(f, i);
    /* a row's own words, far from the elements'; KINDS rows in a row have all kinds */
    enum { KINDS = 20, STEP = 7 };
    struct words w = random_words(f->seed, ~f->stream, p.row),
                 first = random_words(f->seed, ~f->stream, ~p.length);
    double z = normal_from_word(r.w[0]), c = normal_from_word(w.w[1]), most = dtype_max(t);
    double part = 0.25 + 0.75 * ((double)(r.w[1] >> 8) * 0x1p-24);
    uint64_t one = w.w[2] % p.length; /* the place of the odd one */
    bool odd = p.at == one;
    switch ((first.w[0] % KINDS + p.row % KINDS * STEP) % KINDS) {
    case 0: return c;
    case 1: return c * (1 + 4 * dtype_roundoff(t) * (double)(r.w[1] % 3));
    case 2: return r.w[1] & 1 ? -0.0 : 0.0;
    case 3: return -INFINITY;
    case 4: return NAN;
    case 5: return odd ? NAN : z;
    case 6: return odd ? INFINITY : z;
    case 7: return odd ? -INFINITY : z;
    case 8: return dtype_smallest(t) * (double)(r.w[1] % 64) * (r.w[2] & 1 ? -1 : 1);
    case 9: return most * part;
    case 10: return r.w[2] & 1 ? -most * part : most * part;
    case 11: return 20 * ((double)p.at / (double)p.length) - 10;
    case 12: return 10 - 20 * ((double)p.at / (double)p.length);
    case 13: return odd ? sqrt(most) : z;
    case 14: return p.at < p.length / 2 ? -INFINITY : z;
    case 15: return p.at < p.length / 2 ? z : -INFINITY;
    case 16: return 512 * (c < 0 ? -1 : 1) + z;
    case 17: return r.w[1] & 1 ? 0 : -INFINITY;
    default: return z;
    }
}

static double float_value(const struct filling *f, uint64_t i, struct words r)
{
    enum dtype t = f->b->type;
    double v;
    switch (f->kind) {
    case FILL_EXACT:
        v = (double)((int64_t)(r.w[0] % (uint32_t)(2 * f->limit + 1)) - f->limit);
        break;
    case FILL_UNIFORM: v = (double)(r.w[0] >> 8) * 0x1p-24; break;
    case FILL_NORMAL: v = normal_from_word(r.w[0]); break;
    case FILL_EXTREME:
        v = extreme_value(f, i, r);
        if (!isfinite(v))
            return v;
        break;
    default:
        if (r.w[1] % (f->terms > 1 ? 4 * f->terms : 4) == 0)
            return special_value(t, r.w[2]);
        v = ldexp(1 + (double)(r.w[0] >> 8) * 0x1p-24, (int)(r.w[3] % 20) - 12);
        return r.w[3] >> 31 ? -v : v;
    }
    return fabs(v) > dtype_max(t) ? copysign(dtype_max(t), v) : v;
}

static int64_t whole_number(enum fill_kind kind, enum dtype t, const struct fill_use *use,
                            struct words r)
{
    bool is_signed = dtype_class(t) == DTC_I;
    uint64_t u = (uint64_t)r.w[0] << 32 | r.w[1];
    if (t == DT_BOOL)
        return r.w[0] & 1;
    if (use->subscript && use->padded && r.w[2] % 8 == 0) {
        int64_t outside[] = {(int64_t)use->extent, -1, (int64_t)dtype_imax(t), dtype_imin(t)};
        return outside[r.w[3] % (is_signed ? 4 : 1)];
    }
    if (use->subscript)
        return (int64_t)(u % use->extent);
    if (use->shift)
        return (int64_t)(u % (dtype_bits(t) < 32 ? 32 : dtype_bits(t)));
    int64_t lo = is_signed ? -1000 : 0, hi = 1000;
    lo = lo < dtype_imin(t) ? dtype_imin(t) : lo;
    hi = (uint64_t)hi > dtype_imax(t) ? (int64_t)dtype_imax(t) : hi;
    int64_t v = lo + (int64_t)(u % (uint64_t)(hi - lo + 1));
    if (kind == FILL_UNIFORM)
        v = (int64_t)u;
    if (kind >= FILL_EDGE && r.w[2] % 4 == 0) {
        int64_t special[] = {dtype_imin(t), (int64_t)dtype_imax(t), 0, 1, is_signed ? -1 : 2};
        v = special[r.w[3] % 5];
    }
    if (use->divisor && v == 0)
        v = 1;
    return v;
}

static void fill_chunk(void *ctx, uint64_t k, uint64_t begin, uint64_t end)
{
    const struct filling *f = ctx;
    enum dtype t = f->b->type;
    (void)k;
    for (uint64_t i = begin; i < end; i++) {
        struct words r = random_words(f->seed, f->stream, i);
        if (dtype_is_float(t))
            dtype_set(t, f->b->data, (size_t)i, float_value(f, i, r));
        else
            dtype_set_int(t, f->b->data, (size_t)i, whole_number(f->kind, t, f->use, r));
    }
}

void fill_buffer(enum fill_kind kind, uint64_t seed, const char *name, const struct fill_use *use,
                 uint64_t terms, struct buffer *b)
{
    enum { CHUNK = 1 << 18 }; /* even: two packed elements share a byte */
    struct filling f = {kind, seed, name_hash(name), terms, use, exact_limit(b->type, terms), b};
    ref_parallel(0, b->count, CHUNK, fill_chunk, &f);
}

bool fill_makes_nan(const struct ref *r)
{
    uint64_t nan = 0, all = 0;
    for (size_t k = 0; k < ref_noutput(r); k++) {
        const struct ref_output *o = ref_output(r, k);
        for (uint64_t i = 0; o->v && i < o->n; i++)
            nan += isnan(o->v[i]) != 0;
        all += o->n;
    }
    return nan * 4 > all;
}
