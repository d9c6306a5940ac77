/* Expressions that a contract says by a name, under where:
 *
 *     //@ where:
 *     //@   fits_small: m <= 64 && k % 8 == 0
 *     //@   v1: clamp(ceil_div(528, max(1, ceil_div(m, 4))), 1, 32)
 *     //@ depth: 'fits_small ? v1 + 49 : 8'
 *
 * A name stands for its expression wherever one may be, in those below it too. The reader puts the
 * expression in its place, so that nothing behind it knows of names; a contract of few names could
 * become an expression without end, so what they become together is bounded. The writer finds by
 * itself what occurs more than once: it numbers all subexpressions so that equal ones have one
 * number, counts where each is an operand, and names those of two places and of some length. */
#include <config.h>

#include "spec/contract_int.h"

#include "lang/launch.h"

/* ---- reading --------------------------------------------------------------------------------- */

enum { MOST_NAMES = 256, MOST_NODES = 1 << 16 };

static const struct contract_name *find(const struct contract_reader *r, const char *name)
{
    for (size_t i = 0; i < r->names.n; i++)
        if (strcmp(r->names.v[i].name, name) == 0)
            return &r->names.v[i];
    return NULL;
}

static struct lang_expr *copy(struct contract_reader *r, const struct lang_expr *e)
{
    struct lang_expr *c = ARENA_NEW(r->a, struct lang_expr);
    *c = *e;
    r->nodes++;
    if (e->nargs)
        c->args = ARENA_ARRAY(r->a, e->nargs, struct lang_expr *);
    for (uint32_t i = 0; i < e->nargs && r->nodes < MOST_NODES; i++)
        c->args[i] = copy(r, e->args[i]);
    return c;
}

static bool expand(struct contract_reader *r, struct lang_expr **place)
{
    struct lang_expr *e = *place;
    const struct contract_name *n = e->kind == E_NAME ? find(r, e->name) : NULL;
    if (n) {
        *place = copy(r, n->e);
        return r->nodes < MOST_NODES ||
               diag_error(r->d, e->span, "what the names under 'where' stand for is too long");
    }
    e->height = 1;
    for (uint32_t i = 0; i < e->nargs; i++) {
        if (!expand(r, &e->args[i]))
            return false;
        if (e->args[i]->height >= e->height)
            e->height = e->args[i]->height + 1;
    }
    return e->height <= LANG_MAX_HEIGHT ||
           diag_error(r->d, e->span,
                      "with what the names under 'where' stand for this is nested "
                      "too deep");
}

bool contract_expand(struct contract_reader *r, struct lang_expr **e)
{
    return r->names.n == 0 || expand(r, e);
}

static bool read_name(struct contract_reader *r, const struct yaml_pair *pair)
{
    const char *name = pair->key->text, *why = lang_reserved(name, NULL);
    struct span text;
    if (why)
        return diag_error(r->d, pair->key->span, "'%s' is %s, which can't be a name", name, why);
    if (lang_find(&r->c->scope, name))
        return diag_error(r->d, pair->key->span, "'%s' is a parameter or a dimension", name);
    if (!text_span(pair->value, name, &text, r->d))
        return false;
    struct lang_expr *e = lang_parse_expr(r->a, text, NULL, r->d);
    if (!e || !contract_expand(r, &e))
        return false;
    *VEC_PUSH(r->a, &r->names) = (struct contract_name){name, e};
    struct lang_expr *checked = copy(r, e); /* an error is told here, where it is */
    return contract_check(r, checked, DT_VOID, true);
}

bool contract_read_where(struct contract_reader *r, const struct yaml_value *map)
{
    const struct yaml_value *v = yaml_get(map, "where");
    bool good = true;
    if (!v)
        return true;
    if (v->kind != YAML_MAP || v->n > MOST_NAMES)
        return diag_error(r->d, v->span,
                          "'where' is a map of at most %d names and their expressions", MOST_NAMES);
    for (size_t i = 0; i < v->n && good; i++)
        good = read_name(r, &v->pair[i]);
    return good;
}

/* ---- writing: equal subexpressions have one number ------------------------------------------- */

struct node {
    const struct lang_expr *e; /* the first of them, without implicit casts */
    uint32_t first, nargs;     /* its operands in `operands`, numbers of nodes */
    uint32_t uses;             /* as an operand of another node, or by itself */
    uint32_t next;             /* in its bucket: number + 1 */
    const char *entry;         /* whose condition it is, NULL: none's */
    const char *name;          /* NULL: none */
    struct lang_expr *shown;   /* with names in the place of what has one */
};
/* An expression that has been numbered: trees share operands, and each is asked for again when it
 * is written. */
struct met {
    const struct lang_expr *e;
    uint32_t node, next; /* next in its bucket: index + 1 */
};
enum { BUCKETS = 256 };
struct contract_names {
    struct arena *a;
    const struct contract *c;
    VEC(struct node) nodes;
    VEC(uint32_t) operands;
    VEC(struct met) met;
    uint32_t bucket[BUCKETS], met_bucket[BUCKETS];
    uint32_t values; /* named so far */
};

static uint32_t hash(const struct lang_expr *e, const uint32_t *operand)
{
    uint32_t h = (uint32_t)e->kind * 31 + (uint32_t)e->op * 17 + (uint32_t)e->ival;
    for (const char *s = e->kind == E_NAME ? e->sym->name : ""; *s; s++)
        h = h * 31 + (unsigned char)*s;
    if (e->kind == E_CALL)
        h = h * 31 + (uint32_t)e->fn;
    for (uint32_t i = 0; i < e->nargs; i++)
        h = h * 1000003 + operand[i];
    return h % BUCKETS;
}

static uint32_t number(struct contract_names *w, const struct lang_expr *e);

/* The number of the first node that is the same, or of a new one. */
static uint32_t node_of(struct contract_names *w, const struct lang_expr *e)
{
    uint32_t *operand = ARENA_ARRAY(w->a, e->nargs, uint32_t);
    for (uint32_t i = 0; i < e->nargs; i++)
        operand[i] = number(w, e->args[i]);
    uint32_t *bucket = &w->bucket[hash(e, operand)];
    for (uint32_t k = *bucket; k; k = w->nodes.v[k - 1].next) {
        const struct node *n = &w->nodes.v[k - 1];
        if (lang_same_node(n->e, e) && (e->nargs == 0 || memcmp(&w->operands.v[n->first], operand,
                                                                e->nargs * sizeof *operand) == 0))
            return k - 1;
    }
    const uint32_t first = (uint32_t)w->operands.n;
    for (uint32_t i = 0; i < e->nargs; i++) {
        *VEC_PUSH(w->a, &w->operands) = operand[i];
        w->nodes.v[operand[i]].uses++;
    }
    *VEC_PUSH(w->a, &w->nodes) =
        (struct node){.e = e, .first = first, .nargs = e->nargs, .next = *bucket};
    *bucket = (uint32_t)w->nodes.n;
    return *bucket - 1;
}

static uint32_t number(struct contract_names *w, const struct lang_expr *e)
{
    e = lx_strip(e);
    uint32_t *bucket = &w->met_bucket[(uintptr_t)e / sizeof *e % BUCKETS];
    for (uint32_t k = *bucket; k; k = w->met.v[k - 1].next)
        if (w->met.v[k - 1].e == e)
            return w->met.v[k - 1].node;
    const uint32_t node = node_of(w, e);
    *VEC_PUSH(w->a, &w->met) = (struct met){e, node, *bucket};
    *bucket = (uint32_t)w->met.n;
    return node;
}

static struct node *use(struct contract_names *w, const struct lang_expr *e)
{
    if (!e)
        return NULL;
    const uint32_t k = number(w, e); /* which may move the nodes */
    w->nodes.v[k].uses++;
    return &w->nodes.v[k];
}

static void use_all(struct contract_names *w, struct lang_expr *const *e, size_t n)
{
    for (size_t i = 0; i < n; i++)
        use(w, e[i]);
}

static void use_args(struct contract_names *w, const struct contract_arg *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        use(w, v[i].expr);
        if (v[i].fields)
            use_args(w, v[i].fields->args.v, v[i].fields->args.n);
        const struct contract_map *m = v[i].map;
        if (!m)
            continue;
        use(w, m->at);
        use_all(w, m->dim, m->rank);
        use_all(w, m->stride, m->rank);
        use_all(w, m->box, m->rank);
        use_all(w, m->step, m->rank);
    }
}

static void use_launch(struct contract_names *w, const struct contract_launch *l)
{
    struct node *when = use(w, l->when);
    if (when && !when->entry)
        when->entry = l->entry;
    use_all(w, l->grid, 3);
    use_all(w, l->block, 3);
    use_all(w, l->cluster, 3);
    use(w, l->shared);
    for (size_t i = 0; i < l->arrays.n; i++) {
        use(w, l->arrays.v[i].at);
        use_all(w, l->arrays.v[i].extents.v, l->arrays.v[i].extents.n);
    }
    use_args(w, l->args.v, l->args.n);
}

/* ---- writing: names -------------------------------------------------------------------------- */

static bool is_taken(const struct contract_names *w, const char *name)
{
    if (lang_find(&w->c->scope, name) || lang_reserved(name, NULL))
        return true;
    for (size_t i = 0; i < w->nodes.n; i++)
        if (w->nodes.v[i].name && strcmp(w->nodes.v[i].name, name) == 0)
            return true;
    return false;
}

static const char *free_name(const struct contract_names *w, const char *name)
{
    while (is_taken(w, name))
        name = arena_printf(w->a, "%s_", name);
    return name;
}

/* The node's expression, of names where its operands have them. */
static struct lang_expr *shown(struct contract_names *w, uint32_t k)
{
    struct node *n = &w->nodes.v[k];
    if (n->shown)
        return n->shown;
    struct lang_expr *e = ARENA_NEW(w->a, struct lang_expr);
    *e = *n->e;
    if (n->nargs)
        e->args = ARENA_ARRAY(w->a, n->nargs, struct lang_expr *);
    n->shown = e;
    for (uint32_t i = 0; i < n->nargs; i++) {
        const uint32_t operand = w->operands.v[n->first + i];
        struct lang_expr *x = shown(w, operand);
        if (w->nodes.v[operand].name) {
            x = ARENA_NEW(w->a, struct lang_expr);
            *x = (struct lang_expr){.kind = E_NAME, .name = w->nodes.v[operand].name, .height = 1};
        }
        e->args[i] = x;
    }
    return e;
}

/* fits_PART for the condition of the entry KERNEL_PART, fits for that of KERNEL. */
static const char *condition_name(const struct contract_names *w, const char *entry)
{
    const size_t kernel = strlen(w->c->kernel);
    const char *part = strncmp(entry, w->c->kernel, kernel) == 0 ? entry + kernel : "";
    const bool is_word = part[0] == '_' && !strpbrk(part, "$%");
    return is_word ? arena_printf(w->a, "fits%s", part) : "fits";
}

/* What is said twice, and takes some room; operands, which have lower numbers, are short by
 * then. */
static void give_names(struct contract_names *w)
{
    enum { LENGTH = 16 };
    for (uint32_t k = 0; k < w->nodes.n; k++) {
        struct node *n = &w->nodes.v[k];
        if (n->uses < 2 || n->nargs == 0 || strlen(lang_expr_text(w->a, shown(w, k))) < LENGTH)
            continue;
        const char *name = n->entry ? condition_name(w, n->entry)
                                    : arena_printf(w->a, "v%u", (unsigned)++w->values);
        n->name = free_name(w, name);
    }
}

struct contract_names *contract_name(struct arena *a, const struct contract *c)
{
    struct contract_names *w = ARENA_NEW(a, struct contract_names);
    *w = (struct contract_names){.a = a, .c = c};
    use(w, c->depth);
    use(w, c->truncation);
    use(w, c->products);
    use(w, c->weights);
    for (size_t i = 0; i < c->temps.n; i++)
        use_all(w, c->temps.v[i].sym->dims, c->temps.v[i].sym->rank);
    for (size_t i = 0; i < c->launches.n; i++)
        use_launch(w, &c->launches.v[i]);
    give_names(w);
    return w;
}

const char *contract_text(struct contract_names *w, const struct lang_expr *e)
{
    const uint32_t k = number(w, e);
    return w->nodes.v[k].name ? w->nodes.v[k].name : lang_expr_text(w->a, shown(w, k));
}

void contract_write_where(struct contract_names *w, struct buf *out)
{
    bool any = false;
    for (uint32_t k = 0; k < w->nodes.n; k++) { /* operands have lower numbers */
        if (!w->nodes.v[k].name)
            continue;
        buf_printf(out, "%s  %s: ", any ? "" : "where:\n", w->nodes.v[k].name);
        contract_write_text(lang_expr_text(w->a, shown(w, k)), out);
        buf_putc(out, '\n');
        any = true;
    }
}
