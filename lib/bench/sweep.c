#include <config.h>

#include "bench/sweep.h"

#include <ctype.h>
#include <inttypes.h>

#include "base/num.h"
#include "bench/work.h"

/* ---- reading ---- */

static bool parse_value(struct arena *a, const char *s, size_t len, struct bench_value *v)
{
    *v = (struct bench_value){.text = arena_strndup(a, s, len), .type = DT_VOID};
    if (num_int(s, len, INT64_MIN, INT64_MAX, &v->i) == NUM_OK) {
        v->whole = true;
        v->f = (double)v->i;
        v->text = arena_printf(a, "%" PRId64, v->i);
        return true;
    }
    if (num_double(s, len, &v->f) == NUM_OK)
        return true;
    if (strcmp(v->text, "true") == 0 || strcmp(v->text, "false") == 0) {
        v->whole = true;
        v->f = (double)(v->i = v->text[0] == 't');
        v->text = v->i ? "1" : "0"; /* as a bool is given, too */
        return true;
    }
    return dtype_parse(s, len, &v->type) && (v->text = dtype_name(v->type));
}

static const char *find(const char *s, size_t len, const char *what)
{
    return memmem(s, len, what, strlen(what));
}

static bool push(struct arena *a, struct sweep_axis *x, struct bench_value v, const char *word,
                 struct diags *d)
{
    if (x->values.n == SWEEP_POINTS_MOST)
        return diag_error(d, SPAN_NONE, "'%s' has more than %d values", word, SWEEP_POINTS_MOST);
    *VEC_PUSH(a, &x->values) = v;
    return true;
}

/* "256..8192*2" */
static bool add_range(struct arena *a, struct sweep_axis *x, const char *s, size_t len,
                      const char *word, struct diags *d)
{
    const char *dots = find(s, len, ".."), *end = s + len;
    const char *step = dots;
    int64_t lo, hi, by;
    while (step < end && *step != '*' && *step != '+')
        step++;
    if (step == end)
        return diag_error(d, SPAN_NONE,
                          "'%.*s' does not say how to go on: 256..8192*2 doubles, 0..100+10 adds",
                          (int)len, s);
    if (num_int(s, (size_t)(dots - s), 0, UINT32_MAX, &lo) != NUM_OK ||
        num_int(dots + 2, (size_t)(step - dots - 2), 0, UINT32_MAX, &hi) != NUM_OK ||
        num_int(step + 1, (size_t)(end - step - 1), 1, UINT32_MAX, &by) != NUM_OK || lo > hi)
        return diag_error(d, SPAN_NONE, "'%.*s' is no range such as 256..8192*2 or 0..100+10",
                          (int)len, s);
    if (*step == '*' && (by < 2 || lo == 0))
        return diag_error(d, SPAN_NONE, "'%.*s' never gets on", (int)len, s);
    for (int64_t i = lo; i <= hi; i = *step == '*' ? i * by : i + by) {
        struct bench_value v = {.text = arena_printf(a, "%" PRId64, i),
                                .type = DT_VOID,
                                .whole = true,
                                .i = i,
                                .f = (double)i};
        if (!push(a, x, v, word, d))
            return false;
    }
    return true;
}

static bool add_names(struct arena *a, struct sweep *s, struct sweep_axis *x, const char *word,
                      const char *eq, struct diags *d)
{
    for (const char *p = word; p < eq;) {
        size_t len = 0;
        while (p + len < eq && p[len] != ',')
            len++;
        bool good = len > 0 && !isdigit((unsigned char)p[0]);
        for (size_t i = 0; i < len; i++)
            good = good && (isalnum((unsigned char)p[i]) || p[i] == '_');
        if (!good)
            return diag_error(d, SPAN_NONE, "'%s' is no NAME=VALUES, as in n=256..8192*2", word);
        const char *name = arena_strndup(a, p, len);
        for (size_t i = 0; i <= s->axes.n; i++) {
            const struct sweep_axis *y = i < s->axes.n ? &s->axes.v[i] : x;
            for (size_t k = 0; k < y->names.n; k++)
                if (strcmp(y->names.v[k], name) == 0)
                    return diag_error(d, SPAN_NONE, "'%s' is given twice", name);
        }
        *VEC_PUSH(a, &x->names) = name;
        p += len + 1;
    }
    return true;
}

bool sweep_add(struct arena *a, struct sweep *s, const char *word, struct diags *d)
{
    const char *eq = strchr(word, '=');
    struct sweep_axis x = {0};
    if (!eq || eq == word)
        return diag_error(d, SPAN_NONE, "'%s' is no NAME=VALUES, as in n=256..8192*2", word);
    if (!add_names(a, s, &x, word, eq, d))
        return false;
    for (const char *p = eq + 1;;) {
        size_t len = strcspn(p, ",");
        struct bench_value v;
        if (find(p, len, "..")) {
            if (!add_range(a, &x, p, len, word, d))
                return false;
        } else if (!parse_value(a, p, len, &v)) {
            return diag_error(d, SPAN_NONE, "'%.*s' in '%s' is neither a number nor a type",
                              (int)len, p, word);
        } else if (!push(a, &x, v, word, d)) {
            return false;
        }
        if (!p[len])
            break;
        p += len + 1;
    }
    *VEC_PUSH(a, &s->axes) = x;
    return true;
}

/* ---- multiplying ---- */

const struct bench_value *bench_find(const struct bench_point *p, const char *name)
{
    for (size_t i = 0; i < p->values.n; i++)
        if (strcmp(p->values.v[i].name, name) == 0)
            return &p->values.v[i];
    return NULL;
}

const char *bench_point_text(struct arena *a, const struct bench_point *p)
{
    struct buf b = buf_in(a);
    for (size_t i = 0; i < p->values.n; i++)
        buf_printf(&b, "%s%s=%s", i ? " " : "", p->values.v[i].name, p->values.v[i].text);
    return buf_text(&b);
}

static const struct lang_symbol *find_scalar(const struct spec *s, const char *name)
{
    for (size_t i = 0; i < s->params.n; i++)
        if (s->params.v[i].sym->kind == SYM_SCALAR && strcmp(s->params.v[i].sym->name, name) == 0)
            return s->params.v[i].sym;
    return NULL;
}

static bool is_dim(const struct spec *s, const char *name)
{
    for (size_t i = 0; i < s->dims.n; i++)
        if (strcmp(s->dims.v[i]->name, name) == 0)
            return true;
    return false;
}

static bool unknown_name(struct arena *a, const struct spec *s, const char *name, struct diags *d)
{
    VEC(const char *) names = {0};
    struct buf list = buf_in(a);
    for (size_t i = 0; i < s->types.n; i++)
        *VEC_PUSH(a, &names) = s->types.v[i].name;
    for (size_t i = 0; i < s->dims.n; i++)
        *VEC_PUSH(a, &names) = s->dims.v[i]->name;
    for (size_t i = 0; i < s->params.n; i++)
        if (s->params.v[i].sym->kind == SYM_SCALAR)
            *VEC_PUSH(a, &names) = s->params.v[i].sym->name;
    for (size_t i = 0; i < names.n; i++)
        buf_printf(&list, "%s%s", i ? ", " : "", names.v[i]);
    *VEC_PUSH(a, &names) = NULL;
    const char *near = diag_nearest(name, strlen(name), names.v);
    diag_error(d, SPAN_NONE, "'%s' has no dimension, type or scalar '%s'%s%s%s", s->name, name,
               near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    if (names.n > 1)
        diag_note(d, SPAN_NONE, "it has %s", buf_text(&list));
    return false;
}

/* Whether the value is one that the name can have. */
static bool check_value(struct arena *a, const struct spec *s, const char *name,
                        const struct bench_value *v, struct diags *d)
{
    const struct spec_type *t = spec_find_type(s, name);
    const struct lang_symbol *scalar = find_scalar(s, name);
    if (!t && !scalar && !is_dim(s, name))
        return unknown_name(a, s, name, d);
    if (t && v->type == DT_VOID)
        return diag_error(d, SPAN_NONE, "'%s' is a type, one of %s, not '%s'", name,
                          spec_type_text(a, t), v->text);
    if (t && !spec_type_allows(t, v->type))
        return diag_error(d, SPAN_NONE, "'%s' is for %s=%s, not %s", s->name, name,
                          spec_type_text(a, t), v->text);
    if (!t && v->type != DT_VOID)
        return diag_error(d, SPAN_NONE, "'%s' is a number; '%s' is none", name, v->text);
    if (!t && !scalar && (!v->whole || v->i < 0 || v->i > UINT32_MAX))
        return diag_error(d, SPAN_NONE,
                          "dimension '%s' is a whole number from 0 to 4294967295, not '%s'", name,
                          v->text);
    if (scalar && !dtype_is_float(scalar->type) && !v->whole)
        return diag_error(d, SPAN_NONE, "'%s' takes a value of type %s; '%s' is not", name,
                          dtype_name(scalar->type), v->text);
    return true;
}

static bool check_axes(struct arena *a, const struct sweep *sweep, const struct spec *s,
                       struct diags *d)
{
    for (size_t i = 0; i < sweep->axes.n; i++) {
        const struct sweep_axis *x = &sweep->axes.v[i];
        for (size_t k = 0; k < x->names.n; k++)
            for (size_t n = 0; n < x->values.n; n++)
                if (!check_value(a, s, x->names.v[k], &x->values.v[n], d))
                    return false;
    }
    return true;
}

/* The value of a name at one combination of the axes' values, or in the case; NULL: neither says
 * it. */
static const struct bench_value *value_at(struct arena *a, const struct sweep *sweep,
                                          const size_t *at, const struct spec_case *c,
                                          const char *name)
{
    for (size_t i = 0; i < sweep->axes.n; i++)
        for (size_t k = 0; k < sweep->axes.v[i].names.n; k++)
            if (strcmp(sweep->axes.v[i].names.v[k], name) == 0)
                return &sweep->axes.v[i].values.v[at[i]];
    for (size_t i = 0; c && i < c->bind.n; i++) {
        const struct spec_binding *b = &c->bind.v[i];
        char number[32];
        if (strcmp(b->name, name) != 0)
            continue;
        struct bench_value *v = ARENA_NEW(a, struct bench_value);
        *v = (struct bench_value){.type = b->type, .whole = b->is_int, .i = b->i, .f = b->f};
        v->text = b->type != DT_VOID ? dtype_name(b->type)
                  : b->is_int        ? arena_printf(a, "%" PRId64, b->i)
                                     : arena_strdup(a, num_print(b->f, number));
        return v;
    }
    return NULL;
}

static void bind(struct arena *a, struct bench_point *p, const char *name,
                 const struct bench_value *v)
{
    struct bench_value *to = VEC_PUSH(a, &p->values);
    *to = *v;
    to->name = name;
}

/* The dimensions of a point; one of them may follow from the bytes wanted. */
static bool bind_dims(struct arena *a, const struct sweep *sweep, const struct spec *s,
                      const size_t *at, const struct spec_case *c, struct bench_point *p,
                      struct diags *d)
{
    const char *free_dim = NULL;
    size_t where = 0;
    for (size_t i = 0; i < s->dims.n; i++) {
        const char *name = s->dims.v[i]->name;
        const struct bench_value *v = value_at(a, sweep, at, c, name);
        if (v) {
            bind(a, p, name, v);
        } else if (sweep->bytes && !free_dim) {
            free_dim = name;
            where = p->values.n;
            bind(a, p, name, &(struct bench_value){.type = DT_VOID, .whole = true});
        } else {
            return diag_error(d, SPAN_NONE, "dimension '%s' has no value; give %s=N%s%s", name,
                              name,
                              free_dim ? "; --bytes chooses one only, here " : " or --bytes=N",
                              free_dim ? free_dim : "");
        }
    }
    if (!sweep->bytes)
        return true;
    if (!free_dim)
        return diag_error(d, SPAN_NONE,
                          "--bytes has nothing to choose: every dimension of '%s' has a value",
                          s->name);
    /* the types of this point say how large an element is */
    VEC(struct spec_define) types = {0};
    for (size_t i = 0; i < s->types.n; i++)
        *VEC_PUSH(a, &types) = (struct spec_define){p->values.v[i].name, 0, p->values.v[i].type};
    struct spec_file *f = types.n ? spec_read(a, s->src, types.v, types.n, diags_new(a)) : NULL;
    const struct spec *typed = f ? spec_find(f, s->name) : s;
    return work_choose(a, typed, p, where, sweep->bytes, d);
}

static bool add_point(struct arena *a, const struct sweep *sweep, const struct spec *s,
                      const size_t *at, const struct spec_case *c, struct sweep_points *out,
                      struct diags *d)
{
    if (out->v.n == SWEEP_POINTS_MOST)
        return diag_error(d, SPAN_NONE, "that makes more than %d problems", SWEEP_POINTS_MOST);
    struct bench_point p = {.case_name = c ? c->name : NULL};
    for (size_t i = 0; i < s->types.n; i++) {
        const struct bench_value *v = value_at(a, sweep, at, c, s->types.v[i].name);
        enum dtype chosen = s->types.v[i].chosen;
        bind(a, &p, s->types.v[i].name,
             v ? v : &(struct bench_value){.text = dtype_name(chosen), .type = chosen});
    }
    if (!bind_dims(a, sweep, s, at, c, &p, d))
        return false;
    for (size_t i = 0; i < s->params.n; i++) {
        const struct lang_symbol *sym = s->params.v[i].sym;
        const struct bench_value *v = sym->kind == SYM_SCALAR ? value_at(a, sweep, at, c, sym->name)
                                                              : NULL;
        if (v)
            bind(a, &p, sym->name, v);
    }
    *VEC_PUSH(a, &out->v) = p;
    return true;
}

/* Every combination of the axes' values, of one case or of none. */
static bool add_all(struct arena *a, const struct sweep *sweep, const struct spec *s,
                    const struct spec_case *c, struct sweep_points *out, struct diags *d)
{
    size_t *at = ARENA_ARRAY(a, sweep->axes.n, size_t);
    for (;;) {
        if (!add_point(a, sweep, s, at, c, out, d))
            return false;
        size_t i = sweep->axes.n;
        while (i > 0 && ++at[i - 1] == sweep->axes.v[i - 1].values.n)
            at[--i] = 0;
        if (i == 0)
            return true;
    }
}

bool sweep_multiply(struct arena *a, const struct sweep *sweep, const struct spec *s,
                    struct sweep_points *out, struct diags *d)
{
    *out = (struct sweep_points){0};
    if (!check_axes(a, sweep, s, d))
        return false;
    for (size_t i = 0; i < sweep->cases.n; i++) {
        const struct spec_case *c = NULL;
        for (size_t k = 0; k < s->cases.n; k++)
            if (strcmp(s->cases.v[k].name, sweep->cases.v[i]) == 0)
                c = &s->cases.v[k];
        if (!c)
            return diag_error(d, SPAN_NONE, "'%s' has no case '%s'", s->name, sweep->cases.v[i]);
        if (!add_all(a, sweep, s, c, out, d))
            return false;
    }
    if (sweep->cases.n)
        return true;
    if (sweep->axes.n || sweep->bytes)
        return add_all(a, sweep, s, NULL, out, d);
    for (size_t k = 0; k < s->cases.n; k++)
        if (!add_all(a, sweep, s, &s->cases.v[k], out, d))
            return false;
    return out->v.n
               ? true
               : diag_error(d, s->name_span,
                            "'%s' has no cases; give its dimensions, as in n=256..8192*2", s->name);
}
