#include <config.h>

#include "spec/spec_int.h"

enum key {
    K_KERNEL,
    K_PROGRAM,
    K_DOC,
    K_TYPES,
    K_DIMS,
    K_PARAMS,
    K_REQUIRE,
    K_COMPUTE,
    K_BODY,
    K_FUNCTIONS,
    K_GRID,
    K_BLOCK,
    K_CLUSTER,
    K_SHARED,
    K_TEMPS,
    K_DEPTH,
    K_REFERENCE,
    K_CASES,
    K_SCHEDULE,
    K_MATH,
    K_USE,
    K_STEPS,
    K_COUNT,
};

static const char *const key_names[] = {
    "kernel",    "program",   "doc",      "types", "dims",    "params", "require", "compute",
    "body",      "functions", "grid",     "block", "cluster", "shared", "temps",   "depth",
    "reference", "cases",     "schedule", "math",  "use",     "steps",  NULL};

struct document {
    struct yaml_value *root;
    struct yaml_value *key[K_COUNT], *value[K_COUNT]; /* NULL: absent */
};

static bool sort_keys(struct spec_reader *r, struct document *doc)
{
    bool good = true;
    for (size_t i = 0; i < doc->root->n; i++) {
        struct yaml_value *key = doc->root->pair[i].key;
        size_t k = 0;
        while (k < K_COUNT && strcmp(key->text, key_names[k]) != 0)
            k++;
        if (k < K_COUNT) {
            doc->key[k] = key;
            doc->value[k] = doc->root->pair[i].value;
            continue;
        }
        const char *near = diag_nearest(key->text, key->len, key_names);
        if (strcmp(key->text, "pipeline") == 0)
            near = "program";
        if (near)
            good = diag_error(r->d, key->span, "unknown key '%s'; did you mean '%s'?", key->text,
                              near);
        else
            good = diag_error(r->d, key->span,
                              "unknown key '%.60s'; a kernel has kernel, doc, types, dims, params, "
                              "require, compute or body, functions, grid, block, "
                              "cluster, shared, temps, depth, reference, cases, schedule and "
                              "math; a program has program, use and steps",
                              key->text);
    }
    return good;
}

static bool read_name(struct spec_reader *r, const struct document *doc)
{
    struct spec *s = r->spec;
    const enum key key = doc->key[K_PROGRAM] ? K_PROGRAM : K_KERNEL;
    const char *what = key_names[key];
    struct yaml_value *v = doc->value[key];
    if (!v)
        return diag_error(r->d, doc->root->span,
                          "the kernel has no name; begin with 'kernel: NAME'");
    s->name = v->kind == YAML_SCALAR ? v->text : "";
    s->name_span = v->span;
    if (v->kind == YAML_SCALAR && v->len == 0)
        return diag_error(r->d, doc->key[key]->span, "the %s's name is missing after '%s:'", what,
                          what);
    if (!check_identifier(v, arena_printf(r->a, "a %s", what), r->d))
        return false;
    if (strcmp(v->text, "WARP_SZ") == 0)
        return diag_error(r->d, v->span,
                          "'WARP_SZ' is a constant of PTX and can't be the name of a %s", what);
    return true;
}

static bool read_doc(struct spec_reader *r, const struct yaml_value *v)
{
    r->spec->doc = "";
    if (!v)
        return true;
    if (v->kind != YAML_SCALAR)
        return diag_error(r->d, v->span, "'doc' is a text");
    r->spec->doc = v->text;
    return true;
}

static bool read_math(struct spec_reader *r, const struct yaml_value *v)
{
    static const char *const names[] = {"default", "strict", "fast", NULL};
    for (int i = 0; v && v->kind == YAML_SCALAR && names[i]; i++)
        if (strcmp(v->text, names[i]) == 0) {
            r->spec->math = (enum spec_math)i;
            return true;
        }
    return !v || diag_error(r->d, v->span, "'math' is default, strict or fast");
}

/* What a program may have. */
static bool check_program_keys(struct spec_reader *r, const struct document *doc)
{
    static const enum key allowed[] = {K_PROGRAM, K_DOC,   K_TYPES, K_DIMS,  K_PARAMS,   K_REQUIRE,
                                       K_TEMPS,   K_CASES, K_USE,   K_STEPS, K_FUNCTIONS};
    bool good = true;
    for (size_t k = 0; k < K_COUNT; k++) {
        bool is_allowed = !doc->key[k];
        for (size_t i = 0; i < sizeof allowed / sizeof *allowed && !is_allowed; i++)
            is_allowed = allowed[i] == (enum key)k;
        if (!is_allowed)
            good = diag_error(r->d, doc->key[k]->span,
                              k == K_KERNEL ? "a document is a kernel or a program, not both"
                                            : "'%s' belongs to a kernel; a program has steps, and "
                                              "calls kernels",
                              key_names[k]);
    }
    if (!doc->value[K_PARAMS])
        good = diag_error(r->d, r->spec->name_span, "the program has no 'params'");
    if (!doc->value[K_STEPS])
        good = diag_error(r->d, r->spec->name_span, "the program has no 'steps'");
    return good;
}

/* Which keys go together. */
static bool check_keys(struct spec_reader *r, const struct document *doc)
{
    static const enum key body_only[] = {K_GRID, K_BLOCK, K_CLUSTER, K_SHARED, K_TEMPS, K_DEPTH};
    struct diags *d = r->d;
    bool good = true;
    for (enum key k = K_USE; k <= K_STEPS; k++)
        if (doc->key[k])
            good = diag_error(d, doc->key[k]->span,
                              "'%s' belongs to a program; begin with 'program: NAME'",
                              key_names[k]);
    if (!doc->value[K_PARAMS])
        good = diag_error(d, r->spec->name_span, "the kernel has no 'params'");
    if (!doc->value[K_COMPUTE] && !doc->value[K_BODY])
        return diag_error(d, r->spec->name_span,
                          "the kernel says nothing to do; write 'compute' (equations) "
                          "or 'body' (statements)");
    if (doc->value[K_COMPUTE] && doc->value[K_BODY]) {
        diag_error(d, doc->key[K_BODY]->span, "a kernel has 'compute' or 'body', not both");
        diag_note(d, doc->key[K_COMPUTE]->span,
                  "to check a body against equations, call them 'reference'");
        return false;
    }
    for (size_t i = 0; i < sizeof body_only / sizeof *body_only; i++) {
        enum key k = body_only[i];
        if (doc->value[K_COMPUTE] && doc->key[k])
            good = diag_error(d, doc->key[k]->span, "'%s' belongs to a body; for equations %s",
                              key_names[k],
                              k == K_TEMPS ? "kaio-emit makes the buffers that its launches need"
                                           : "the launch is chosen by the schedule");
        if (doc->value[K_BODY] && !doc->key[k] && k <= K_BLOCK)
            good = diag_error(d, doc->key[K_BODY]->span, "a body needs '%s'; write %s",
                              key_names[k],
                              k == K_GRID ? "the number of blocks, as in 'grid: ceil_div(n, 256)'"
                                          : "the threads of a block, as in 'block: 256'");
    }
    if (doc->value[K_BODY] && doc->key[K_SCHEDULE])
        good = diag_error(d, doc->key[K_SCHEDULE]->span,
                          "'schedule' belongs to compute; a body is its own "
                          "schedule");
    return good;
}

/* ---- launch expressions ---------------------------------------------------------------------- */

struct lang_expr *read_launch_expr(struct spec_reader *r, struct span text, enum dtype want,
                                   bool grid)
{
    const struct lang_options options = {.grid = grid};
    struct lang_expr *e = lang_parse_expr(r->a, text, &r->spec->names, r->d);
    if (!e || !lang_check_expr(r->a, &r->spec->params_scope, &options, e, want, r->d))
        return NULL;
    if (want == DT_VOID && !dtype_is_int(e->type)) {
        diag_error(r->d, e->span, "an integer is needed here, not %s",
                   e->type == DT_VOID ? "nothing" : dtype_name(e->type));
        return NULL;
    }
    return e;
}

bool read_extents(struct spec_reader *r, const struct yaml_value *v, const char *key,
                  struct lang_expr **out, uint32_t *n)
{
    span_list list = {0};
    if (!text_list(r->a, v, key, &list, r->d))
        return false;
    if (list.n == 0 || list.n > 3)
        return diag_error(r->d, v->span, "'%s' has one to three numbers, not %zu", key, list.n);
    for (size_t i = 0; i < list.n; i++) {
        int64_t size;
        out[i] = read_launch_expr(r, list.v[i], DT_VOID, strcmp(key, "grid") == 0);
        if (!out[i])
            return false;
        if (lang_const_int(out[i], &size) && size < 1)
            return diag_error(r->d, out[i]->span, "'%s' is at least 1 in each direction, not %lld",
                              key, (long long)size);
    }
    *n = (uint32_t)list.n;
    return true;
}

/* What every device allows: 1024 threads, and 64 in z. */
static bool check_block(struct spec_reader *r)
{
    const struct spec *s = r->spec;
    int64_t product = 1;
    bool constant = true;
    for (uint32_t i = 0; i < s->nblock; i++) {
        static const int64_t most[] = {1024, 1024, 64};
        int64_t size;
        if (!lang_const_int(s->block[i], &size)) {
            constant = false;
            continue;
        }
        if (size > most[i])
            return diag_error(r->d, s->block[i]->span,
                              "a block has at most %lld threads in %c, not %lld",
                              (long long)most[i], "xyz"[i], (long long)size);
        product *= size;
    }
    if (constant && product > 1024)
        return diag_error(r->d, span_join(s->block[0]->span, s->block[s->nblock - 1]->span),
                          "a block has at most 1024 threads, not %lld", (long long)product);
    return true;
}

/* What a device may allow at most. */
static bool check_cluster(struct spec_reader *r)
{
    const struct spec *s = r->spec;
    int64_t product = 1, size;
    for (uint32_t i = 0; i < s->ncluster; i++)
        if (!lang_const_int(s->cluster[i], &size) ||
            __builtin_mul_overflow(product, size, &product))
            return true; /* checked at launch */
    return product <= 16 ||
           diag_error(r->d, span_join(s->cluster[0]->span, s->cluster[s->ncluster - 1]->span),
                      "a cluster has at most 16 blocks (8 where the device does not say more), "
                      "not %lld",
                      (long long)product);
}

/* The shared array without a size; an error when there are two. */
static bool find_unsized(struct spec_reader *r, const struct lang_stmt *s,
                         const struct lang_symbol **found)
{
    bool good = true;
    const struct lang_symbol *sym = s->kind == S_DECL ? s->sym : NULL;
    if (sym && sym->kind == SYM_SHARED && sym->rank && !sym->dims[0]) {
        if (*found)
            return diag_error(r->d, sym->span,
                              "'%s' has no size already, and only one array can be without",
                              (*found)->name);
        *found = sym;
    }
    for (uint32_t i = 0; i < s->nbody; i++)
        good &= find_unsized(r, s->body[i], found);
    return good;
}

static bool check_unsized(struct spec_reader *r)
{
    const struct lang_symbol *sym = NULL;
    const struct lang_expr *bytes = r->spec->shared;
    if (!find_unsized(r, r->spec->body, &sym))
        return false;
    if (sym && !bytes)
        return diag_error(r->d, sym->span,
                          "nothing says how large '%s' is; add its bytes to the kernel, as in "
                          "'shared: 4 * n'",
                          sym->name);
    return sym || !bytes ||
           diag_error(r->d, bytes->span,
                      "these bytes are for an array without a size; declare one in the body, as in "
                      "'shared f32 x[];'");
}

static bool read_shared(struct spec_reader *r, const struct yaml_value *v)
{
    struct span text;
    int64_t bytes;
    if (!v)
        return true;
    if (!text_span(v, "shared", &text, r->d))
        return false;
    struct lang_expr *e = r->spec->shared = read_launch_expr(r, text, DT_VOID, false);
    return e && (!lang_const_int(e, &bytes) || bytes > 0 ||
                 diag_error(r->d, e->span, "'shared' is a number of bytes, at least 1, not %lld",
                            (long long)bytes));
}

static bool read_depth(struct spec_reader *r, const struct yaml_value *v)
{
    struct span text;
    int64_t depth;
    if (!v)
        return true;
    if (!text_span(v, "depth", &text, r->d))
        return false;
    struct lang_expr *e = r->spec->depth = read_launch_expr(r, text, DT_VOID, false);
    return e && (!lang_const_int(e, &depth) || depth >= 0 ||
                 diag_error(r->d, e->span, "'depth' is a number of roundings, not %lld",
                            (long long)depth));
}

/* ---- the kernel's text ----------------------------------------------------------------------- */

static bool read_functions(struct spec_reader *r, const struct yaml_value *v,
                           struct lang_scope *functions, const struct lang_options *opt)
{
    struct span text;
    return text_span(v, "functions", &text, r->d) &&
           lang_functions(r->a, text, functions, opt, r->d);
}

static bool read_equations(struct spec_reader *r, const struct yaml_value *v, const char *key,
                           struct lang_scope *scope, struct lang_options opt,
                           struct lang_equations *out)
{
    struct span text;
    opt.index_is_i64 = true;
    return text_span(v, key, &text, r->d) && lang_equations(r->a, text, scope, &opt, out, r->d);
}

static bool is_multiple_of_32(const struct lang_expr *e)
{
    int64_t v;
    return lang_const_int(e, &v) && v > 0 && v % 32 == 0;
}

/* A multiple of 32 as it stands, by a constant factor, or because a requirement says so: e % 32 ==
 * 0. */
static bool is_whole_warps(struct spec_reader *r, const struct lang_expr *e)
{
    const char *text = lang_expr_text(r->a, e);
    if (is_multiple_of_32(e))
        return true;
    if (e->kind == E_BINARY && e->op == OP_MUL)
        return is_multiple_of_32(e->args[0]) || is_multiple_of_32(e->args[1]);
    for (size_t i = 0; i < r->spec->require.n; i++) {
        const struct lang_expr *q = r->spec->require.v[i], *rest = q->nargs ? q->args[0] : NULL;
        int64_t zero;
        while (rest && rest->kind == E_CAST && rest->is_implicit)
            rest = rest->args[0];
        if (q->kind == E_BINARY && q->op == OP_EQ && rest->kind == E_BINARY && rest->op == OP_MOD &&
            lang_const_int(q->args[1], &zero) && zero == 0 && is_multiple_of_32(rest->args[1]) &&
            strcmp(lang_expr_text(r->a, rest->args[0]), text) == 0)
            return true;
    }
    return false;
}

static bool read_body(struct spec_reader *r, const struct document *doc, struct lang_scope *scope,
                      struct lang_options opt)
{
    struct spec *s = r->spec;
    struct span text;
    int64_t size;
    bool good = read_extents(r, doc->value[K_GRID], "grid", s->grid, &s->ngrid);
    good &= read_extents(r, doc->value[K_BLOCK], "block", s->block, &s->nblock) && check_block(r);
    if (doc->value[K_CLUSTER])
        good &= read_extents(r, doc->value[K_CLUSTER], "cluster", s->cluster, &s->ncluster) &&
                check_cluster(r);
    good &= read_shared(r, doc->value[K_SHARED]);
    good &= read_depth(r, doc->value[K_DEPTH]);
    if (!text_span(doc->value[K_BODY], "body", &text, r->d))
        return false;
    s->body = lang_parse_body(r->a, text, &s->names, r->d);
    for (uint32_t i = 0; i < 3; i++)
        opt.block[i] = i >= s->nblock ? 1 : lang_const_int(s->block[i], &size) ? (uint32_t)size : 0;
    opt.whole_rows = s->whole_rows = s->nblock > 0 && s->block[0] && is_whole_warps(r, s->block[0]);
    if (!s->body || !lang_check_body(r->a, scope, &opt, s->body, r->d) || !check_unsized(r) ||
        !good)
        return false;
    const struct lang_launch launch = {s->grid, s->block, s->require.v, s->require.n};
    lang_warn_unguarded(r->a, s->body, &launch, r->d);
    return true;
}

/* has_reference: what is only used there is used, too. */
static void warn_unused(struct spec_reader *r, bool has_reference)
{
    for (size_t i = 0; i < r->spec->temps.n; i++)
        if (!r->spec->temps.v[i].sym->used)
            diag_warning(r->d, r->spec->temps.v[i].sym->span, "'%s' is never used",
                         r->spec->temps.v[i].sym->name);
    for (size_t i = 0; i < r->spec->names.n; i++)
        if (!r->spec->names.v[i].used)
            diag_warning(r->d, r->spec->types.v[i].span, "'%s' is never used",
                         r->spec->names.v[i].name);
    for (size_t i = 0; i < r->spec->params.n; i++) {
        const struct lang_symbol *sym = r->spec->params.v[i].sym;
        bool output = sym->kind == SYM_BUFFER && sym->mode != MODE_IN;
        if (!sym->used && !(output && r->spec->has_compute))
            diag_warning(r->d, sym->span, output ? "'%s' is never written" : "'%s' is never used",
                         sym->name);
    }
    for (size_t i = 0; i < r->spec->derived.n && !has_reference; i++)
        if (!r->spec->derived.v[i]->used)
            diag_warning(r->d, r->spec->derived.v[i]->span, "'%s' is never used",
                         r->spec->derived.v[i]->name);
}

static bool read_text(struct spec_reader *r, const struct document *doc)
{
    struct spec *s = r->spec;
    struct lang_options opt = {.types = &s->names,
                               .fast_math = s->math == MATH_FAST,
                               .mark_rounded = s->math != MATH_STRICT,
                               .rounded_calls = s->rounded_calls};
    struct lang_scope *scope = &s->temps_scope, *functions = NULL;
    bool good = true;
    if (doc->value[K_FUNCTIONS]) {
        functions = ARENA_NEW(r->a, struct lang_scope);
        functions->up = scope;
        scope = functions;
        if (!read_functions(r, doc->value[K_FUNCTIONS], functions, &opt))
            return false;
    }
    s->has_compute = doc->value[K_COMPUTE] != NULL;
    good = s->has_compute
               ? read_equations(r, doc->value[K_COMPUTE], "compute", scope, opt, &s->compute)
               : read_body(r, doc, scope, opt);
    s->has_reference = doc->value[K_REFERENCE] != NULL;
    if (good)
        warn_unused(r, s->has_reference);
    s->reference = s->compute;
    if (!s->has_reference)
        return good;
    /* the reference calls the functions, but knows none of the body's own buffers */
    scope = functions ? functions : &s->params_scope;
    if (functions)
        functions->up = &s->params_scope;
    opt.allow_recurrence = true;
    opt.fast_math = false;
    opt.rounded_calls = NULL;
    good &= read_equations(r, doc->value[K_REFERENCE], "reference", scope, opt, &s->reference);
    for (size_t i = 0; i < s->compute.n; i++) /* a buffer's definition is the kernel's own */
        s->compute.v[i]->sym->def = s->compute.v[i];
    return good;
}

/* Sizes that the kernel is not for are told in the place of what else they make wrong. */
static bool read_allowed(struct spec_reader *r, struct document *doc)
{
    struct diags *const d = r->d;
    const struct lang_expr *no = spec_ruled_out(r->spec);
    if (!no)
        return read_text(r, doc);
    r->d = diags_new(r->a);
    const bool good = read_text(r, doc);
    if (good)
        diags_append(d, r->d);
    r->d = d;
    return good || diag_error(d, no->span, "%s", spec_ruled_out_text(r->a, no));
}

static bool read_document(struct spec_reader *r, struct yaml_value *root)
{
    struct document doc = {.root = root};
    if (root->kind != YAML_MAP)
        return diag_error(r->d, root->span, "a kernel is a map that begins with 'kernel: NAME'");
    if (!sort_keys(r, &doc))
        return false;
    bool good = read_name(r, &doc);
    good &= read_doc(r, doc.value[K_DOC]);
    good &= read_math(r, doc.value[K_MATH]);
    const bool is_program = doc.key[K_PROGRAM] != NULL;
    if (is_program)
        r->spec->program = ARENA_NEW(r->a, struct spec_program);
    good &= is_program ? check_program_keys(r, &doc) : check_keys(r, &doc);
    if (doc.value[K_TYPES] && !read_types(r, doc.value[K_TYPES]))
        return false;
    if (!doc.value[K_PARAMS] || !read_params(r, doc.value[K_PARAMS], doc.value[K_DIMS]))
        return false;
    r->spec->temps_scope.up = &r->spec->params_scope;
    if (doc.value[K_TEMPS] && !read_body_temps(r, doc.value[K_TEMPS]))
        return false;
    if (doc.value[K_REQUIRE])
        good &= read_requires(r, doc.value[K_REQUIRE]);
    if (doc.value[K_CASES])
        good &= read_cases(r, doc.value[K_CASES]);
    if (doc.value[K_SCHEDULE])
        good &= read_schedule(r, doc.value[K_SCHEDULE]);
    if (is_program)
        return read_program_parts(r, doc.value[K_USE], doc.value[K_FUNCTIONS],
                                  doc.value[K_STEPS]) &&
               good;
    return good && read_allowed(r, &doc);
}

/* The kernel that a document says it is; NULL: it says none. */
static const char *name_of(const struct yaml_value *root)
{
    const struct yaml_value *name = root->kind == YAML_MAP ? yaml_get(root, "kernel") : NULL;
    if (!name && root->kind == YAML_MAP)
        name = yaml_get(root, "program");
    return name && name->kind == YAML_SCALAR ? name->text : NULL;
}

static bool add_spec(struct spec_reader *r, struct spec_file *f, const struct source *src,
                     struct yaml_value *root)
{
    struct spec *s = r->spec = ARENA_NEW(r->a, struct spec);
    const char *name = name_of(root);
    s->src = src;
    if (r->only && !(name && strcmp(name, r->only) == 0))
        return true;
    if (!read_document(r, root))
        return false;
    const struct spec *other = spec_find(f, s->name);
    if (other) {
        diag_error(r->d, s->name_span, "there are two kernels called '%s'", s->name);
        diag_note(r->d, other->name_span, "the first one is here");
        return false;
    }
    *VEC_PUSH(r->a, &f->specs) = s;
    return true;
}

static bool check_defines(const struct spec_reader *r)
{
    bool good = true;
    for (size_t i = 0; i < r->ndefine; i++)
        if (!r->define_used[i])
            good = diag_error(r->d, SPAN_NONE, "no kernel has a %s called '%s'",
                              r->defines[i].type == DT_VOID ? "dimension" : "type",
                              r->defines[i].name);
    return good;
}

static bool say_empty(const struct spec_reader *r, const struct source *src)
{
    return diag_error(r->d, (struct span){src, 0, 0},
                      "the input is empty; a kernel begins with 'kernel: NAME'");
}

static struct spec_file *read_stream(struct spec_reader *r, const struct source *src)
{
    struct spec_file *f = ARENA_NEW(r->a, struct spec_file);
    struct yaml_stream *stream = yaml_read(r->a, src, r->d);
    bool good = true;
    if (!stream)
        return NULL;
    r->define_used = ARENA_ARRAY(r->a, r->ndefine, bool);
    for (size_t i = 0; i < stream->docs.n; i++)
        if (stream->docs.v[i])
            good &= add_spec(r, f, src, stream->docs.v[i]);
    if (good && f->specs.n == 0)
        good = r->only ? diag_error(r->d, (struct span){src, 0, 0}, "no kernel here is called '%s'",
                                    r->only)
                       : say_empty(r, src);
    return good && (r->only || check_defines(r)) ? f : NULL;
}

struct spec_parts *spec_read_parts(struct arena *a, const struct source *src,
                                   const struct spec_define *defines, size_t ndefine,
                                   struct diags *d)
{
    struct spec_reader r = {.a = a, .d = d, .defines = defines, .ndefine = ndefine};
    struct spec_parts *parts = ARENA_NEW(a, struct spec_parts);
    struct spec_file all = {0};
    struct yaml_stream *stream = yaml_read(a, src, d);
    bool good = true;
    if (!stream)
        return NULL;
    r.define_used = ARENA_ARRAY(a, ndefine, bool);
    for (size_t i = 0; i < stream->docs.n; i++) {
        if (!stream->docs.v[i])
            continue;
        struct spec_part *part = VEC_PUSH(a, &parts->v);
        *part = (struct spec_part){.name = name_of(stream->docs.v[i]), .d = diags_new(a)};
        r.d = part->d;
        if (add_spec(&r, &all, src, stream->docs.v[i]))
            part->spec = all.specs.v[all.specs.n - 1];
        good &= part->spec != NULL;
    }
    r.d = d;
    if (parts->v.n == 0)
        good = say_empty(&r, src);
    else /* a kernel that is wrong might have had the name */
        good = !good || check_defines(&r);
    return good ? parts : NULL;
}

struct spec_file *spec_read(struct arena *a, const struct source *src,
                            const struct spec_define *defines, size_t ndefine, struct diags *d)
{
    struct spec_reader r = {.a = a, .d = d, .defines = defines, .ndefine = ndefine};
    return read_stream(&r, src);
}

/* The name of the only kernel of a stream; NULL with an error. */
static const char *only_name(struct arena *a, const struct source *src, struct diags *d)
{
    const struct yaml_stream *stream = yaml_read(a, src, d);
    const char *only = NULL;
    struct buf names = buf_in(a);
    size_t n = 0;
    for (size_t i = 0; stream && i < stream->docs.n; i++) {
        const struct yaml_value *doc = stream->docs.v[i];
        const char *name = doc ? name_of(doc) : NULL;
        if (!name || yaml_get(doc, "program"))
            continue;
        buf_printf(&names, "%s%s", n++ ? ", " : "", name);
        only = name;
    }
    if (n == 1 || !stream)
        return only;
    diag_error(d, (struct span){src, 0, 0},
               n ? "there are %zu kernels here (%s); choose one" : "there are %zu kernels here%s",
               n, buf_text(&names));
    return NULL;
}

struct spec *spec_read_one(struct arena *a, const struct source *src, const char *name,
                           const struct spec_define *defines, size_t ndefine, struct diags *d)
{
    struct spec_reader r = {.a = a, .d = d, .defines = defines, .ndefine = ndefine};
    r.only = name ? name : only_name(a, src, d);
    const struct spec_file *f = r.only ? read_stream(&r, src) : NULL;
    return f ? f->specs.v[0] : NULL;
}

struct spec *spec_read_case(struct arena *a, const struct spec *s, const struct spec_case *c,
                            const struct spec_define *defines, size_t ndefine, struct diags *d)
{
    VEC(struct spec_define) all = {0};
    struct diags *own = diags_new(a);
    for (size_t i = 0; i < ndefine; i++)
        *VEC_PUSH(a, &all) = defines[i];
    const struct spec_binding *conflict = spec_case_conflict(c, defines, ndefine);
    if (conflict) {
        diag_error(d, conflict->span, "the case '%s' says %s=%s, which was defined otherwise",
                   c->name, conflict->name, dtype_name(conflict->type));
        return NULL;
    }
    for (size_t i = 0; i < c->bind.n; i++)
        if (c->bind.v[i].type != DT_VOID)
            *VEC_PUSH(a, &all) = (struct spec_define){c->bind.v[i].name, 0, c->bind.v[i].type};
    struct spec_reader r = {.a = a, .d = own, .defines = all.v, .ndefine = all.n, .only = s->name};
    struct spec_file *f = read_stream(&r, s->src);
    for (size_t i = 0; !f && i < own->list.n; i++)
        *VEC_PUSH(d->arena, &d->list) = own->list.v[i];
    d->nerror += f ? 0 : own->nerror;
    d->nwarning += f ? 0 : own->nwarning;
    return f ? f->specs.v[0] : NULL;
}

struct spec *spec_find(struct spec_file *f, const char *name)
{
    for (size_t i = 0; i < f->specs.n; i++)
        if (strcmp(f->specs.v[i]->name, name) == 0)
            return f->specs.v[i];
    return NULL;
}

const struct lang_equations *spec_oracle(const struct spec *s)
{
    if (s->has_reference)
        return &s->reference;
    return s->has_compute ? &s->compute : NULL;
}
