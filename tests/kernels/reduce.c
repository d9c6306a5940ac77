#include <config.h>

#include "kernels/reduce.h"

#include "lang/lang.h"

#include <stdlib.h>

struct reduction {
    struct arena *a;
    const char *before, *after; /* of the spec: up to the body's text, and from its end */
    struct lang_stmt *body;
    const char *best; /* the smallest spec that fails */
    reduce_test *fails;
    void *ctx;
    unsigned left; /* tests */
    bool progress;
};

/* ---- the body as text, and back -------------------------------------------------------------- */

static const char *spec_text(struct reduction *r)
{
    struct buf b = buf_in(r->a), lines = buf_in(r->a);
    buf_puts(&b, r->before);
    for (uint32_t i = 0; i < r->body->nbody; i++)
        lang_print_stmt(r->body->body[i], 0, &lines);
    for (const char *s = buf_text(&lines); *s;) {
        const char *end = strchr(s, '\n');
        buf_puts(&b, "  ");
        buf_add(&b, s, (size_t)(end + 1 - s));
        s = end + 1;
    }
    buf_puts(&b, r->after);
    return buf_text(&b);
}

/* Keeps what was just changed if the kernel still fails. */
static bool keeps(struct reduction *r)
{
    if (r->left == 0)
        return false;
    r->left--;
    const char *text = spec_text(r);
    if (!r->fails(r->ctx, text))
        return false;
    r->best = text;
    r->progress = true;
    return true;
}

/* ---- expressions ----------------------------------------------------------------------------- */

static struct lang_expr *literal(struct reduction *r, enum lang_expr_kind kind, unsigned v)
{
    struct lang_expr *e = ARENA_NEW(r->a, struct lang_expr);
    e->kind = kind;
    e->type = kind == E_INT ? DT_I32 : kind == E_BOOL ? DT_BOOL : DT_F32;
    e->ival = v;
    e->fval = v;
    e->height = 1;
    return e;
}

static void shrink_expr(struct reduction *r, struct lang_expr **at)
{
    struct lang_expr *e = *at;
    if (!e || !e->nargs || e->kind == E_ADDRESS)
        return;
    for (unsigned k = 0; k < 5 && r->left; k++) {
        *at = literal(r, k < 2 ? E_INT : k == 2 ? E_FLOAT : E_BOOL, k % 2);
        if (keeps(r))
            return;
    }
    for (uint32_t i = 0; i < e->nargs && r->left; i++) {
        *at = e->args[i];
        if (keeps(r)) {
            shrink_expr(r, at);
            return;
        }
    }
    *at = e;
    for (uint32_t i = 0; i < e->nargs && r->left; i++)
        shrink_expr(r, &e->args[i]);
}

/* ---- statements ------------------------------------------------------------------------------ */

static void shrink_stmt(struct reduction *r, struct lang_stmt **at);

/* Without their own numbers the threads would write over each other. */
static bool numbers_threads(const struct lang_stmt *s)
{
    static const char *const names[] = {"tid", "bid", "within"};
    for (size_t i = 0; i < sizeof names / sizeof *names && s->kind == S_DECL; i++)
        if (strcmp(s->sym->name, names[i]) == 0)
            return true;
    return false;
}

/* Takes runs of statements out, long ones first, from the end. */
static void shrink_list(struct reduction *r, struct lang_stmt *b)
{
    for (uint32_t run = b->nbody; run > 0 && r->left; run /= 2)
        for (uint32_t end = b->nbody; end >= run && r->left;) {
            struct lang_stmt **old = b->body;
            uint32_t n = b->nbody, from = end - run;
            b->body = ARENA_ARRAY(r->a, n + 1, struct lang_stmt *);
            memcpy(b->body, old, from * sizeof *old);
            memcpy(b->body + from, old + end, (n - end) * sizeof *old);
            b->nbody = n - run;
            if (!keeps(r)) {
                b->body = old;
                b->nbody = n;
            }
            end = end - run < b->nbody ? end - run : b->nbody;
        }
    for (uint32_t i = 0; i < b->nbody && r->left; i++)
        shrink_stmt(r, &b->body[i]);
}

static void shrink_stmt(struct reduction *r, struct lang_stmt **at)
{
    struct lang_stmt *s = *at;
    if (numbers_threads(s))
        return;
    if (s->kind == S_BLOCK) {
        shrink_list(r, s);
        return;
    }
    for (uint32_t i = 0; i < s->nbody && s->kind != S_SWITCH; i++) { /* a branch, without the if */
        if (!s->body[i])
            continue;
        *at = s->body[i];
        if (keeps(r)) {
            shrink_stmt(r, at);
            return;
        }
    }
    *at = s;
    if (s->kind == S_IF && s->nbody > 1) {
        s->nbody = 1;
        if (!keeps(r))
            s->nbody = 2;
    }
    shrink_expr(r, &s->cond);
    shrink_expr(r, &s->rhs);
    for (uint32_t i = 0; i < s->nbody && r->left; i++)
        if (s->body[i])
            shrink_stmt(r, &s->body[i]);
}

/* ---- the rest of the spec -------------------------------------------------------------------- */

/* Takes out lines of the head: parameters and functions that are no longer needed. */
static void shrink_head(struct reduction *r)
{
    for (const char *s = r->before; *s && r->left;) {
        const char *end = strchr(s, '\n');
        if (!end)
            return;
        const char *open = end > s && end[-1] == '{' ? strstr(end, "\n  }\n") : NULL;
        const char *next = open ? open + 5 : end + 1, *old = r->before;
        if (s[0] != ' ' || s[2] == ' ') {
            s = end + 1;
            continue;
        }
        size_t at = (size_t)(s - old);
        r->before = arena_printf(r->a, "%.*s%s", (int)at, old, next);
        if (keeps(r)) {
            s = r->before + at;
        } else {
            r->before = old;
            s = next;
        }
    }
}

const char *reduce_kernel(struct arena *a, const char *text, reduce_test *fails, void *ctx,
                          unsigned most)
{
    static const char head[] = "\nbody: |\n", tail[] = "\ncases:";
    const char *from = strstr(text, head), *to = from ? strstr(from, tail) : NULL;
    if (!to)
        return text;
    from += sizeof head - 1;
    const struct source *src = source_new(a, "body", text, strlen(text));
    struct span span = {src, (size_t)(from - text), (size_t)(to + 1 - from)};
    struct reduction r = {.a = a,
                          .before = arena_strndup(a, text, (size_t)(from - text)),
                          .after = to + 1,
                          .best = text,
                          .fails = fails,
                          .ctx = ctx,
                          .left = most};
    r.body = lang_parse_body(a, span, NULL, diags_new(a));
    if (!r.body)
        return text;
    do {
        r.progress = false;
        shrink_list(&r, r.body);
        shrink_head(&r);
    } while (r.progress && r.left);
    return r.best;
}
