#include <config.h>

#include "lower/lower.h"

#include "base/internal.h"
#include "lower/cg/library.h"
#include "lower/explain.h"
#include "lower/stage.h"
#include "lower/strategy.h"

#include <stdio.h>

bool lower_lacks(struct buf *why, struct span s, const char *fmt, ...)
{
    if (!why)
        return false;
    va_list ap;
    va_start(ap, fmt);
    buf_printf(why, "line %zu: %s", span_line_col(s).line, arena_vprintf(why->arena, fmt, ap));
    va_end(ap);
    return false;
}

/* Has another kernel the name, or an entry of another stage, which may be one that waits for
 * this? */
static bool is_taken(const struct cg *g, const char *name)
{
    for (size_t i = 0; i < g->entries.n; i++)
        if (strcmp(g->entries.v[i], name) == 0)
            return true;
    for (size_t i = 0; i < g->nspecs; i++)
        if (strcmp(g->specs[i]->name, name) == 0)
            return true;
    return ptx_find_entry(g->module, name) != NULL;
}

const char *lower_entry_name(struct cg *g, const char *part)
{
    const char *name = arena_printf(g->a, "%s_%s", g->spec->name, part);
    while (is_taken(g, name))
        name = arena_printf(g->a, "%s_", name);
    return name;
}

static void explain_types(struct cg *g)
{
    const struct spec *s = g->spec;
    for (size_t i = 0; i < s->types.n; i++)
        lower_explain(g, "%s: type %s is %s, of %s\n", s->name, s->types.v[i].name,
                      dtype_name(s->types.v[i].chosen), spec_type_text(g->a, &s->types.v[i]));
}

/* Of v[0] to v[n - 1]; by halves, since expressions may only be so deep. */
static struct lang_expr *largest_of(struct arena *a, struct lang_expr *const *v, size_t n)
{
    return n == 1 ? v[0] : lx_max(a, largest_of(a, v, n / 2), largest_of(a, v + n / 2, n - n / 2));
}

static struct lang_expr *largest(struct cg *g, struct cg_largest *l, struct lang_expr *e)
{
    bool known = false;
    for (size_t i = 0; i < l->v.n; i++)
        known |= lx_same(l->v.v[i], e);
    if (!known)
        *VEC_PUSH(g->a, &l->v) = e;
    return largest_of(g->a, l->v.v, l->v.n);
}

void lower_depth(struct cg *g, struct lang_expr *e)
{
    g->depth_told = true;
    g->depth_unknown |= !e;
    g->contract->depth = g->depth_unknown ? NULL : largest(g, &g->sum_depth, e);
}

void lower_truncation(struct cg *g, struct lang_expr *e)
{
    g->contract->truncation = largest(g, &g->sum_truncation, e);
}

void lower_products(struct cg *g, struct lang_expr *e)
{
    g->contract->products = largest(g, &g->sum_products, e);
}

void lower_weights(struct cg *g, struct lang_expr *e)
{
    g->contract->weights = e;
}

/* The launch refuses them; it is better known now. */
static void warn_ruled_out(struct cg *g)
{
    const struct lang_expr *no = spec_ruled_out(g->spec);
    if (no)
        diag_warning(g->d, no->span, "no launch will do: %s", spec_ruled_out_text(g->a, no));
}

static bool lower_one(struct cg *g)
{
    const struct spec *s = g->spec;
    report_kernel(g);
    warn_ruled_out(g);
    explain_types(g);
    if (!s->has_compute) {
        if (s->schedule.n)
            return cg_error(g, s->schedule.v[0].key_span,
                            "a schedule is for compute:; a body: says itself how it runs");
        lower_explain(g, "%s: body, as written\n", s->name);
        report_part(g, s->name, "body", false);
        report_part_end(g);
        return body_lower(g);
    }
    return stages_lower(g);
}

static bool check_names(struct spec *const *specs, size_t n, struct diags *d)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(specs[i]->name, specs[k]->name) == 0) {
                diag_error(d, specs[i]->name_span, "a second kernel named '%s'", specs[i]->name);
                diag_note(d, specs[k]->name_span, "the first one is here");
                return false;
            }
    return true;
}

/* The number of a source in .loc, which is named once; files: those of the specs before it, 0 where
 * there is no .loc. */
static uint32_t file_number(struct arena *a, struct ptx_module *m, struct spec *const *specs,
                            const uint32_t *files, size_t i)
{
    uint32_t n = 1;
    for (size_t k = 0; k < i; k++) {
        if (files[k] && specs[k]->src == specs[i]->src)
            return files[k];
        n = n > files[k] ? n : files[k] + 1;
    }
    struct buf b = buf_in(a);
    buf_printf(&b, ".file %u \"", (unsigned)n);
    for (const char *c = specs[i]->src->name; *c; c++) {
        if (*c == '"' || *c == '\\')
            buf_putc(&b, '\\');
        buf_putc(&b, (unsigned char)*c < ' ' ? '?' : *c);
    }
    buf_putc(&b, '"');
    struct ptx_item *file = VEC_PUSH(a, &m->items);
    file->kind = PTX_I_TEXT;
    file->text = buf_text(&b);
    return n;
}

/* The names of the functions that .loc mentions, where debuggers look for them. */
static void name_inlined(struct ptx_module *m, const struct cg_inlined *inlined)
{
    enum { WITH_INLINED = 72 }; /* the PTX version that has function_name and inlined_at */
    struct buf b = buf_in(m->arena);
    if (inlined->v.n == 0)
        return;
    buf_puts(&b, ".section .debug_str\n{");
    for (size_t i = 0; i < inlined->v.n; i++) {
        const char *name = inlined->v.v[i];
        buf_printf(&b, "\n$fn_%s:\n\t.b8 ", name);
        for (const char *c = name; *c; c++)
            buf_printf(&b, "%d, ", *c);
        buf_puts(&b, "0");
    }
    buf_puts(&b, "\n}");
    struct ptx_item *it = VEC_PUSH(m->arena, &m->items);
    *it = (struct ptx_item){.kind = PTX_I_TEXT, .text = buf_text(&b)};
    m->version = m->version < WITH_INLINED ? WITH_INLINED : m->version;
}

/* What the emitter wrote must be valid: anything else is a bug in it, told where it would be
 * seen. */
static void validate(struct arena *a, const struct ptx_module *m)
{
    struct diags *d = diags_new(a);
    if (ptx_validate(m, d))
        return;
    struct buf b = buf_in(a);
    diags_format(d, "kaio", false, &b);
    INTERNAL_ERROR("what the emitter wrote is not valid:\n%s", buf_text(&b));
}

struct ptx_module *lower_specs(struct arena *a, struct spec *const *specs, size_t n,
                               const struct ptx_target *target, const struct lower_options *opt,
                               struct diags *d)
{
    static const struct lower_options none;
    struct ptx_module *m = ptx_module_new(a, target);
    struct library *library = library_new(a);
    struct buf header = buf_in(a);
    struct cg_inlined inlined = {0};
    struct cg_spare spare = {0};
    int32_t *bucket = ARENA_ARRAY(a, CG_BUCKETS, int32_t); /* all 0 again after each kernel */
    if (!check_names(specs, n, d))
        return NULL;
    struct cg_text *interned = ARENA_ARRAY(a, CG_INTERNED, struct cg_text);
    uint32_t *files = ARENA_ARRAY(a, n, uint32_t);
    bool good = true;
    VEC_RESERVE(a, &spare.numbers, CG_NUMBERS);
    VEC_RESERVE(a, &spare.key_words, CG_KEY_WORDS);
    for (size_t i = 0; i < n; i++) {
        struct cg *g = ARENA_NEW(a, struct cg);
        *g = (struct cg){.a = a,
                         .d = d,
                         .target = target,
                         .opt = opt ? opt : &none,
                         .spec = specs[i],
                         .specs = specs,
                         .nspecs = n,
                         .module = m,
                         .library = library,
                         .bucket = bucket,
                         .reducing = ARENA_NEW(a, struct cg_reducing),
                         .inlined = &inlined,
                         .spare = &spare,
                         .interned = interned,
                         .contract_fma = specs[i]->math != MATH_STRICT,
                         .fast = specs[i]->math == MATH_FAST,
                         .contract = contract_of_spec(a, specs[i], target->name)};
        g->numbers.v = spare.numbers.v;
        g->numbers.cap = spare.numbers.cap;
        g->key_words.v = spare.key_words.v;
        g->key_words.cap = spare.key_words.cap;
        g->calls = g->opt->lines == LOWER_LINES_ALL;
        g->lines = g->calls || (g->opt->lines == LOWER_LINES_BODY && !specs[i]->has_compute);
        if (g->lines)
            g->file = files[i] = file_number(a, m, specs, files, i);
        good = lower_one(g) && good;
        cg_scope_close(g, 0);
        if (good) {
            report_launches(g);
            contract_write(g->contract, &header);
        }
    }
    if (!good)
        return NULL;
    m->header = buf_text(&header);
    ptx_settle_version(m);
    name_inlined(m, &inlined);
    validate(a, m);
    return m;
}
