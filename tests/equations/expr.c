#include <config.h>

#include "equations/gen.h"

#include <inttypes.h>
#include <string.h>

bool gen_one_in(struct gen *g, unsigned n)
{
    return random_one_in(&g->r, n);
}

unsigned gen_below(struct gen *g, unsigned n)
{
    return random_below(&g->r, n);
}

unsigned gen_index_push(struct gen *g, unsigned dim)
{
    static const char *const letters[] = {"i", "j", "k", "l"};
    unsigned n = g->names++;
    const char *name = n < 4 ? letters[n] : arena_printf(g->a, "p%u", n);
    g->index[g->nindex] = (struct index){.name = name, .dim = dim};
    return g->nindex++;
}

static const char *pick_text(struct gen *g, const char *const *list, unsigned n)
{
    return list[gen_below(g, n)];
}
#define PICK(g, ...)                                   \
    pick_text((g), (const char *const[]){__VA_ARGS__}, \
              sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* ---- subscripts ------------------------------------------------------------------------------ */

/* Something that selects an element: its text, and the least and greatest value that it has. */
struct subscript {
    const char *text;
    int64_t least, most;
};

static struct index *find_index(struct gen *g, unsigned dim, unsigned taken)
{
    struct index *fit[MOST_INDICES];
    unsigned n = 0;
    for (unsigned i = 0; i < g->nindex; i++)
        if (g->index[i].dim == dim && !(taken >> i & 1))
            fit[n++] = &g->index[i];
    return n ? fit[gen_below(g, n)] : NULL;
}

static const struct tensor *find_ids(struct gen *g)
{
    for (unsigned i = 0; i < g->ntensor; i++)
        if (strcmp(g->tensor[i].name, "ids") == 0)
            return &g->tensor[i];
    return NULL;
}

/* An index of the scope in some form, for a dimension of n elements. */
static struct subscript form_of(struct gen *g, unsigned dim)
{
    struct index *x = find_index(g, dim, 0);
    const int64_t n = g->dim[dim].value;
    if (!x || gen_one_in(g, 4))
        x = &g->index[gen_below(g, g->nindex)];
    const int64_t top = g->dim[x->dim].value - 1, c = 1 + gen_below(g, 4);
    const char *i = x->name;
    switch (gen_below(g, 8)) {
    case 0: return (struct subscript){arena_printf(g->a, "%s + %" PRId64, i, c), c, top + c};
    case 1: return (struct subscript){arena_printf(g->a, "%s - %" PRId64, i, c), -c, top - c};
    case 2: return (struct subscript){arena_printf(g->a, "%s / %" PRId64, i, c), 0, top / c};
    case 3:
        return (struct subscript){arena_printf(g->a, "%s * 2 + %" PRId64, i, c - 1), c - 1,
                                  2 * top + c - 1};
    case 4:
        return (struct subscript){arena_printf(g->a, "%s %% %" PRId64, i, c), 0,
                                  top < c - 1 ? top : c - 1};
    case 5: /* backwards */
        return (struct subscript){arena_printf(g->a, "%s - 1 - %s", g->dim[dim].text, i),
                                  n - 1 - top, n - 1};
    case 6: {
        const struct index *y = &g->index[gen_below(g, g->nindex)];
        return (struct subscript){arena_printf(g->a, "%s + %s", i, y->name), 0,
                                  top + g->dim[y->dim].value - 1};
    }
    default:
        if (n > 0 && gen_one_in(g, 2)) {
            int64_t at = gen_one_in(g, 2) ? 0 : n - 1;
            return (struct subscript){arena_printf(g->a, "%" PRId64, at), at, at};
        }
        return (struct subscript){arena_printf(g->a, "%s * 3 / 2 - %" PRId64, i, c), -c,
                                  top * 3 / 2 - c};
    }
}

/* A table's subscript for a dimension: it is filled so that it fits. NULL: not all of the table's
 * indices are in scope. */
static const char *gather(struct gen *g, unsigned dim)
{
    const struct tensor *ids = find_ids(g);
    struct buf b = buf_in(g->a);
    for (unsigned d = 0; ids && d < ids->rank; d++)
        if (!find_index(g, ids->dim[d], 0))
            return NULL;
    if (!ids || g->dim[dim].value == 0)
        return NULL;
    for (unsigned d = 0; d < ids->rank; d++) {
        struct index *x = find_index(g, ids->dim[d], 0);
        x->bare = true;
        buf_printf(&b, "%s%s", d ? ", " : "ids[", x->name);
    }
    const char *n = g->dim[dim].text, *at = arena_printf(g->a, "%s]", buf_text(&b));
    switch (gen_below(g, 8)) {
    case 0: return arena_printf(g->a, "%s - 1 - %s", n, at);
    case 1: return arena_printf(g->a, "clamp(%s, 0, %s - 1)", at, n);
    default: return at;
    }
}

/* Which dimension of an otherwise plain read a table names, rows more often than columns;
 * MOST_RANK: none. */
static unsigned gathered_axis(struct gen *g, const struct tensor *t)
{
    if (t == g->own || t->rank == 0 || !find_ids(g) || gen_one_in(g, 2))
        return MOST_RANK;
    return gen_one_in(g, 3) ? gen_below(g, t->rank) : 0;
}

/* What to write where the subscripts may lie outside: a guard in front, or pad(). */
static void print_read(struct gen *g, const struct tensor *t, const char *read, const char *guard,
                       struct buf *b)
{
    const char *other = t->sort == SORT_FLOAT  ? PICK(g, "0", "-1.5", "1")
                        : t->sort == SORT_BOOL ? PICK(g, "false", "true")
                                               : PICK(g, "0", "3");
    if (!*guard)
        buf_puts(b, read);
    else if (gen_one_in(g, 2) && t->role != ROLE_INTERMEDIATE)
        buf_printf(b, "pad(%s, %s)", read, t->sort == SORT_FLOAT ? PICK(g, "0", "1") : other);
    else if (t->sort == SORT_FLOAT)
        buf_printf(b, "(%s ? %s : %s)", guard,
                   t->type == DT_F64 ? read : arena_printf(g->a, "f32(%s)", read),
                   strchr(other, '.') ? other : arena_printf(g->a, "%s.0", other));
    else
        buf_printf(b, "(%s ? %s : %s)", guard, read, other);
}

void gen_read(struct gen *g, const struct tensor *t, struct buf *b)
{
    struct buf read = buf_in(g->a), guard = buf_in(g->a);
    unsigned taken = 0;
    const bool plain = t == g->own || !gen_one_in(g, 4);
    const unsigned gathered = plain ? gathered_axis(g, t) : MOST_RANK;
    buf_puts(&read, t->name);
    for (unsigned d = 0; d < t->rank; d++) {
        const struct extent *e = &g->dim[t->dim[d]];
        const bool wanted = d == gathered || (!plain && gen_one_in(g, 2));
        const char *ids = wanted ? gather(g, t->dim[d]) : NULL;
        struct index *x = plain && !ids ? find_index(g, t->dim[d], taken) : NULL;
        buf_puts(&read, d ? ", " : "[");
        if (x) {
            taken |= 1u << (x - g->index);
            x->bare = true;
            buf_puts(&read, x->name);
            continue;
        }
        if (ids) {
            buf_puts(&read, ids);
            continue;
        }
        struct subscript s = {"0", 0, 0};
        if (g->nindex)
            s = form_of(g, t->dim[d]);
        bool inside = s.least >= 0 && s.most < e->value;
        buf_puts(&read, s.text);
        if (inside && !gen_one_in(g, 4))
            continue;
        buf_printf(&guard, "%s%s >= 0 && %s < %s", guard.len ? " && " : "", s.text, s.text,
                   e->text);
    }
    if (t->rank)
        buf_puts(&read, "]");
    print_read(g, t, buf_text(&read), buf_text(&guard), b);
}

/* ---- reductions ------------------------------------------------------------------------------ */

enum { WORK_MOST = 20000 };

static const struct tensor *pick_tensor(struct gen *g, enum sort s)
{
    const struct tensor *fit[MOST_TENSORS];
    unsigned n = 0;
    for (unsigned i = 0; i < g->ntensor; i++) {
        const struct tensor *t = &g->tensor[i];
        if (t->readable && t->sort == s && strcmp(t->name, "ids") != 0)
            fit[n++] = t;
    }
    return n ? fit[gen_below(g, n)] : NULL;
}

static bool reduces_axis(struct gen *g, unsigned dim)
{
    for (unsigned i = 0; i < g->nbase; i++)
        if (g->base[i] == dim)
            return !g->kept[i];
    return gen_one_in(g, 3);
}

/* Pushes indices for the axes of t that are to be reduced; how many. */
static unsigned push_axes(struct gen *g, const struct tensor *t, unsigned most)
{
    unsigned n = 0;
    for (unsigned d = 0; d < t->rank && n < most && g->nindex < MOST_INDICES - 1; d++) {
        double more = g->work * (double)g->dim[t->dim[d]].value;
        bool known = find_index(g, t->dim[d], 0) != NULL;
        bool wanted = known ? gen_one_in(g, 8) : reduces_axis(g, t->dim[d]) || gen_one_in(g, 4);
        if (!wanted || more > WORK_MOST)
            continue;
        gen_index_push(g, t->dim[d]);
        g->work = more;
        n++;
    }
    return n;
}

static const char *reduction_name(struct gen *g, enum sort s, enum sort *of, unsigned *axes)
{
    *axes = MOST_RANK;
    *of = s;
    if (s == SORT_BOOL) {
        *of = SORT_BOOL;
        return PICK(g, "any", "all");
    }
    if (s == SORT_INT && gen_one_in(g, 2)) {
        *axes = 1;
        *of = gen_one_in(g, 4) ? SORT_INT : SORT_FLOAT;
        return PICK(g, "argmax", "argmin");
    }
    if (s == SORT_FLOAT && gen_one_in(g, 12))
        return "logsumexp";
    return PICK(g, "sum", "sum", "sum", "max", "max", "min", "prod");
}

/* The operand: around a read of t, in which the new indices stand. */
static void operand(struct gen *g, const struct tensor *t, enum sort of, const char *name,
                    struct buf *b)
{
    bool prod = strcmp(name, "prod") == 0 && of == SORT_FLOAT;
    struct buf read = buf_in(g->a);
    gen_read(g, t, &read);
    const char *r = buf_text(&read);
    if (prod) { /* near one */
        buf_printf(b, "1 + 0.01 * clamp(%s, -1.0, 1.0)", r);
    } else if (of == SORT_BOOL) {
        buf_printf(b, "%s %s ", r, PICK(g, "&&", "||"));
        gen_expr(g, SORT_BOOL, b);
    } else if (of == SORT_INT || gen_one_in(g, 3)) {
        buf_puts(b, r);
    } else {
        const char *form = PICK(g, "abs(%s)", "%s * 0.5", "exp(clamp(%s, -4.0, 4.0))",
                                "sqrt(abs(%s))", "f32(%s)", "-%s");
        for (const char *c = form; *c; c++)
            if (*c == '%')
                buf_puts(b, r), c++;
            else
                buf_putc(b, *c);
        if (gen_one_in(g, 2)) {
            buf_puts(b, PICK(g, " * ", " - ", " + "));
            gen_expr(g, SORT_FLOAT, b);
        }
    }
}

static void print_indices(struct gen *g, unsigned from, struct buf *b)
{
    for (unsigned i = from; i < g->nindex; i++) {
        const struct index *x = &g->index[i];
        buf_printf(b, "%s%s", i > from ? ", " : "", x->name);
        if (x->bare && !gen_one_in(g, 5))
            continue;
        const char *n = g->dim[x->dim].text;
        const struct index *outer = from && gen_one_in(g, 3) ? &g->index[gen_below(g, from)] : NULL;
        if (!outer || outer->dim != x->dim)
            buf_printf(b, " < %s", n);
        else if (gen_one_in(g, 2))
            buf_printf(b, " in %s..%s", outer->name, n);
        else
            buf_printf(b, " in 0..%s + 1", outer->name);
    }
}

bool gen_reduction(struct gen *g, enum sort s, struct buf *b)
{
    enum sort of;
    unsigned axes, from = g->nindex;
    const double work = g->work;
    const char *name = reduction_name(g, s, &of, &axes);
    const struct tensor *t = pick_tensor(g, of);
    if (!t || t == g->own || t->rank == 0)
        return false;
    if (!push_axes(g, t, axes)) {
        g->work = work;
        return false;
    }
    struct buf inner = buf_in(g->a), index = buf_in(g->a);
    unsigned room = g->room;
    g->room = room < 6 ? room : 6;
    operand(g, t, of, name, &inner);
    g->room = room > 6 ? room - 6 : 0;
    print_indices(g, from, &index);
    buf_printf(b, "%s[%s](%s)", name, buf_text(&index), buf_text(&inner));
    g->nindex = from;
    g->work = work;
    g->reduces = true;
    return true;
}

/* ---- expressions ----------------------------------------------------------------------------- */

static void two(struct gen *g, enum sort s, const char *before, const char *between, struct buf *b)
{
    buf_puts(b, before);
    gen_expr(g, s, b);
    buf_puts(b, between);
    gen_expr(g, s, b);
    buf_putc(b, ')');
}

static void one(struct gen *g, enum sort s, const char *before, const char *after, struct buf *b)
{
    buf_puts(b, before);
    gen_expr(g, s, b);
    buf_puts(b, after);
}

static void choice(struct gen *g, enum sort s, const char *as, struct buf *b)
{
    buf_putc(b, '(');
    gen_expr(g, SORT_BOOL, b);
    buf_printf(b, " ? %s(", as);
    gen_expr(g, s, b);
    buf_printf(b, ") : %s(", as);
    gen_expr(g, s, b);
    buf_puts(b, "))");
}

static void leaf(struct gen *g, enum sort s, struct buf *b)
{
    const struct tensor *t = pick_tensor(g, s);
    if (t && !gen_one_in(g, 4)) {
        gen_read(g, t, b);
        return;
    }
    const char *index = g->nindex ? g->index[gen_below(g, g->nindex)].name : "1";
    switch (s) {
    case SORT_FLOAT:
        if ((t = pick_tensor(g, SORT_INT)) && gen_one_in(g, 3)) {
            buf_puts(b, "f32(");
            gen_read(g, t, b);
            buf_puts(b, ")");
        } else if (gen_one_in(g, 3)) {
            buf_printf(b, "f32(%s)", index);
        } else {
            buf_puts(b, PICK(g, "s", "0.5", "2.0", "-1.25", "f32(n)"));
        }
        break;
    case SORT_INT:
        if (gen_one_in(g, 2))
            buf_printf(b, "i32(%s)", index);
        else
            buf_puts(b, PICK(g, "n", "3", "-7", "100"));
        break;
    case SORT_BOOL: buf_printf(b, "(%s %% 3 == 1)", index); break;
    }
}

/* A function of an index in scope, over its range or one of its own; false: there is none, or too
 * much to do. */
static bool along_index(struct gen *g, struct buf *b)
{
    if (!g->nindex)
        return false;
    const struct index *x = &g->index[gen_below(g, g->nindex)];
    const struct extent *n = &g->dim[x->dim];
    const double work = g->work;
    if (work * (double)n->value > WORK_MOST)
        return false;
    g->work *= (double)n->value;
    buf_printf(b, "%s[%s", PICK(g, "softmax", "softmax", "log_softmax"), x->name);
    if (gen_one_in(g, 6))
        buf_printf(b, " in %s..%s", PICK(g, "0", "1"), n->text);
    buf_puts(b, "](");
    gen_expr(g, SORT_FLOAT, b);
    buf_putc(b, ')');
    g->work = work;
    g->reduces = true;
    return true;
}

static void float_expr(struct gen *g, struct buf *b)
{
    switch (gen_below(g, 16)) {
    case 0:
    case 1:
    case 2: two(g, SORT_FLOAT, "(", PICK(g, " + ", " - ", " * "), b); break;
    case 3: two(g, SORT_FLOAT, "(", " / (1 + abs(", b), buf_puts(b, "))"); break;
    case 4: two(g, SORT_FLOAT, PICK(g, "min(", "max("), ", ", b); break;
    case 5:
        one(g, SORT_FLOAT, PICK(g, "abs(", "-(", "relu(", "tanh(", "sigmoid(", "silu("), ")", b);
        break;
    case 6: one(g, SORT_FLOAT, PICK(g, "sqrt(abs(", "exp(-abs(", "log(1 + abs("), "))", b); break;
    case 7: one(g, SORT_FLOAT, "exp(clamp(", ", -4.0, 4.0))", b); break;
    case 8: one(g, SORT_FLOAT, "rsqrt(1 + abs(", "))", b); break;
    case 9:
    case 10: choice(g, SORT_FLOAT, "f32", b); break;
    case 11: one(g, SORT_FLOAT, PICK(g, "f16(", "bf16(", "f32(", "f64("), ")", b); break;
    case 12: one(g, SORT_INT, "f32(", ")", b); break;
    case 13:
        if (along_index(g, b))
            break;
        /* fall through */
    default:
        if (!gen_reduction(g, SORT_FLOAT, b))
            leaf(g, SORT_FLOAT, b);
    }
}

static void int_expr(struct gen *g, struct buf *b)
{
    switch (gen_below(g, 12)) {
    case 0:
    case 1: two(g, SORT_INT, "(", PICK(g, " + ", " - ", " * ", " & ", " ^ "), b); break;
    case 2: two(g, SORT_INT, PICK(g, "min(", "max("), ", ", b); break;
    case 3: one(g, SORT_INT, "(", PICK(g, " / 3)", " % 5)", " << 1)", " >> 2)"), b); break;
    case 4: one(g, SORT_FLOAT, "i32(clamp(", ", -100.0, 100.0))", b); break;
    case 5: choice(g, SORT_INT, "i32", b); break;
    case 6: one(g, SORT_INT, PICK(g, "i8(", "u8(", "i64(", "u32("), ")", b); break;
    case 7: one(g, SORT_BOOL, "i32(", ")", b); break;
    default:
        if (!gen_reduction(g, SORT_INT, b))
            leaf(g, SORT_INT, b);
    }
}

static void bool_expr(struct gen *g, struct buf *b)
{
    switch (gen_below(g, 8)) {
    case 0: two(g, SORT_FLOAT, "(", PICK(g, " < ", " > ", " <= "), b); break;
    case 1: two(g, SORT_INT, "(", PICK(g, " == ", " != ", " < "), b); break;
    case 2: two(g, SORT_BOOL, "(", PICK(g, " && ", " || "), b); break;
    case 3: one(g, SORT_BOOL, "!(", ")", b); break;
    case 4: one(g, SORT_FLOAT, "isnan(", ")", b); break;
    default:
        if (!gen_reduction(g, SORT_BOOL, b))
            leaf(g, SORT_BOOL, b);
    }
}

void gen_expr(struct gen *g, enum sort s, struct buf *b)
{
    if (g->room == 0) {
        leaf(g, s, b);
        return;
    }
    g->room--;
    if (s == SORT_FLOAT)
        float_expr(g, b);
    else if (s == SORT_INT)
        int_expr(g, b);
    else
        bool_expr(g, b);
}
