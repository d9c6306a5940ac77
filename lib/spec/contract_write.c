#include <config.h>

#include "spec/contract_int.h"

/* May the text stand in YAML as it is, also inside [ ]? A comma may: the reader splits outside of
 * brackets only. */
static bool is_plain(const char *s)
{
    static const char *const words[] = {"", "~", "null", "true", "false", "yes", "no", NULL};
    for (int i = 0; words[i]; i++)
        if (strcmp(s, words[i]) == 0)
            return false;
    bool first = (*s >= '0' && *s <= '9') || (*s >= 'A' && *s <= 'Z') || (*s >= 'a' && *s <= 'z') ||
                 *s == '_' || *s == '(' || *s == '.' || *s == '/' || *s == '$';
    for (const char *p = s; *p; p++)
        if (*p < 0x20 || *p > 0x7e || strchr("?:#'\"\\{}", *p))
            return false;
    return first && s[strlen(s) - 1] != ' ';
}

/* The code point at s in UTF-8 and its bytes; what is not UTF-8 counts as one byte of '?'. */
static uint32_t code_point(const unsigned char *s, size_t *n)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    *n = *s < 0x80 ? 1 : *s >= 0xf0 ? 4 : *s >= 0xe0 ? 3 : 2;
    uint32_t v = *n == 1 ? *s : *s & (0x7fu >> *n);
    for (size_t i = 1; i < *n; i++) {
        if ((s[i] & 0xc0) != 0x80) /* also where the text ends */
            return *n = 1, '?';
        v = v << 6 | (s[i] & 0x3f);
    }
    if (v < least[*n] || v > 0x10ffff || (v >= 0xd800 && v < 0xe000))
        return *n = 1, '?';
    return v;
}

/* A text as a double-quoted YAML scalar, in ASCII. */
static void quoted(const char *text, struct buf *out)
{
    const unsigned char *s = (const unsigned char *)text;
    buf_putc(out, '"');
    for (size_t n; *s; s += n) {
        uint32_t c = code_point(s, &n);
        if (c == '"' || c == '\\')
            buf_printf(out, "\\%c", (char)c);
        else if (c == '\n')
            buf_puts(out, "\\n");
        else if (c == '\t')
            buf_puts(out, "\\t");
        else if (c < 0x20 || c == 0x7f)
            buf_printf(out, "\\x%02x", c);
        else if (c < 0x80)
            buf_putc(out, (char)c);
        else
            buf_printf(out, c > 0xffff ? "\\U%08x" : "\\u%04x", c);
    }
    buf_putc(out, '"');
}

/* A text of the language, which holds neither quotes nor backslashes. */
void contract_write_text(const char *s, struct buf *out)
{
    if (is_plain(s))
        buf_puts(out, s);
    else
        buf_printf(out, "'%s'", s);
}

static void expression(const struct lang_expr *e, struct contract_names *w, struct buf *out)
{
    contract_write_text(contract_text(w, e), out);
}

void contract_write_expr(const struct lang_expr *e, struct contract_names *w, bool in_map,
                         struct buf *out)
{
    const char *s = contract_text(w, e);
    if (in_map && strchr(s, ','))
        buf_printf(out, "'%s'", s);
    else
        contract_write_text(s, out);
}

/* f32[n, 2 * k] */
static void type_text(const struct lang_symbol *s, struct buf *out)
{
    buf_puts(out, dtype_name(s->type));
    lang_print_shape(s, out);
}

static void declared(const char *name, const char *as, struct buf *out)
{
    /* in a block a bracket is as good as any character */
    buf_printf(out, strpbrk(as, "?:#") ? "  %s: '%s'\n" : "  %s: %s\n", name, as);
}

static void declaration(const struct spec_param *p, struct buf *out)
{
    static const char *const modes[] = {"in", "out", "inout"};
    const struct lang_symbol *s = p->sym;
    struct buf b = buf_in(out->arena);
    if (s->kind == SYM_BUFFER) {
        buf_printf(&b, "%s ", p->is_state ? "state" : modes[s->mode]);
        type_text(s, &b);
    } else {
        buf_puts(&b, dtype_name(s->type));
        if (p->value) {
            buf_puts(&b, " = ");
            lang_print_expr(p->value, &b);
        }
    }
    declared(s->name, buf_text(&b), out);
}

static void extents(const char *key, struct lang_expr *const *e, struct contract_names *w,
                    struct buf *out)
{
    if (!e[0])
        return;
    buf_printf(out, "    %s: [", key);
    for (int i = 0; i < 3 && e[i]; i++) {
        buf_puts(out, i ? ", " : "");
        expression(e[i], w, out);
    }
    buf_puts(out, "]\n");
}

static void argument(const struct contract_arg *a, struct contract_names *w, struct buf *out)
{
    if (a->fields) {
        buf_puts(out, "{struct: [");
        for (size_t i = 0; i < a->fields->args.n; i++) {
            buf_puts(out, i ? ", " : "");
            argument(&a->fields->args.v[i], w, out);
        }
        buf_puts(out, "]}");
    } else if (a->map)
        contract_write_map(a->map, w, out);
    else
        contract_write_text(a->is_messages ? CONTRACT_MESSAGES
                            : a->sym       ? a->sym->name
                                           : arena_printf(out->arena, "%s %s", dtype_name(a->type),
                                                          contract_text(w, a->expr)),
                            out);
}

/* In one line; a line each where one is a map or a struct. */
static void arguments(const struct contract_launch *l, struct contract_names *w, struct buf *out)
{
    bool lines = false;
    for (size_t i = 0; i < l->args.n; i++)
        lines |= l->args.v[i].map || l->args.v[i].fields;
    buf_puts(out, lines ? "    args:\n" : "    args: [");
    for (size_t i = 0; i < l->args.n; i++) {
        buf_puts(out, lines ? "      - " : i ? ", " : "");
        argument(&l->args.v[i], w, out);
        buf_puts(out, lines ? "\n" : "");
    }
    buf_puts(out, lines ? "" : "]\n");
}

static void arrays(const struct contract_launch *l, struct contract_names *w, struct buf *out)
{
    if (l->arrays.n)
        buf_puts(out, "    arrays:\n");
    for (size_t i = 0; i < l->arrays.n; i++) {
        const struct contract_array *a = &l->arrays.v[i];
        buf_printf(out, "      - name: %s\n        type: %s\n        at: ", a->name,
                   dtype_name(a->type));
        expression(a->at, w, out);
        buf_puts(out, "\n        extents: [");
        for (size_t k = 0; k < a->extents.n; k++) {
            buf_puts(out, k ? ", " : "");
            expression(a->extents.v[k], w, out);
        }
        buf_puts(out, "]\n");
    }
}

static void launch(const struct contract_launch *l, struct contract_names *w, struct buf *out)
{
    buf_puts(out, "  - entry: ");
    if (is_plain(l->entry))
        buf_puts(out, l->entry);
    else
        quoted(l->entry, out);
    buf_putc(out, '\n');
    if (l->step)
        buf_printf(out, "    step: %u\n", (unsigned)l->step);
    if (l->when) {
        buf_puts(out, "    when: ");
        expression(l->when, w, out);
        buf_putc(out, '\n');
    }
    extents("grid", l->grid, w, out);
    extents("block", l->block, w, out);
    extents("cluster", l->cluster, w, out);
    if (l->shared) {
        buf_puts(out, "    shared: ");
        expression(l->shared, w, out);
        buf_putc(out, '\n');
    }
    arrays(l, w, out);
    arguments(l, w, out);
}

static void fixed_dims(const struct contract *c, struct buf *out)
{
    size_t n = 0;
    for (size_t i = 0; i < c->dims.n; i++)
        if (c->dims.v[i]->has_value)
            buf_printf(out, "%s%s: %llu", n++ ? ", " : "dims: {", c->dims.v[i]->name,
                       (unsigned long long)c->dims.v[i]->value);
    if (n)
        buf_puts(out, "}\n");
}

static void derived_dims(const struct contract *c, struct buf *out)
{
    struct buf b = buf_in(out->arena);
    if (c->derived.n)
        buf_puts(out, "derived:\n");
    for (size_t i = 0; i < c->derived.n; i++) {
        b.len = 0;
        lang_print_expr(c->derived.v[i]->of, &b);
        declared(c->derived.v[i]->name, buf_text(&b), out);
    }
}

static void temp(const struct contract_temp *t, struct contract_names *w, struct buf *out)
{
    struct buf b = buf_in(out->arena);
    buf_printf(&b, "%s[", dtype_name(t->sym->type));
    for (uint32_t i = 0; i < t->sym->rank; i++)
        buf_printf(&b, "%s%s", i ? ", " : "", contract_text(w, t->sym->dims[i]));
    buf_putc(&b, ']');
    if (t->is_zero)
        buf_puts(&b, t->each_run ? " = 0 each run" : " = 0");
    declared(t->sym->name, buf_text(&b), out);
}

static void message(const struct contract_message *m, struct buf *out)
{
    buf_printf(out, "  - {%s: ", m->is_assert ? "assert" : "print");
    quoted(m->format, out);
    if (m->text) {
        buf_puts(out, ", message: ");
        quoted(m->text, out);
    }
    for (size_t i = 0; i < m->ntype; i++)
        buf_printf(out, "%s%s", i ? ", " : ", types: [", dtype_name(m->type[i]));
    buf_printf(out, "%s, line: %u}\n", m->ntype ? "]" : "", (unsigned)m->line);
}

static void sum(const char *key, const struct lang_expr *e, struct contract_names *w,
                struct buf *out)
{
    if (!e)
        return;
    buf_printf(out, "%s: ", key);
    expression(e, w, out);
    buf_putc(out, '\n');
}

/* Each line behind the two blanks that YAML wants. */
static void steps(const struct lang_steps *v, struct buf *out)
{
    struct buf text = buf_in(out->arena);
    size_t n;
    lang_print_steps(v, 0, &text);
    buf_puts(out, "steps: |\n");
    for (const char *line = buf_text(&text); *line; line += n + (line[n] == '\n')) {
        n = strcspn(line, "\n");
        buf_printf(out, "  %.*s\n", (int)n, line);
    }
}

void contract_write(const struct contract *c, struct buf *out)
{
    struct contract_names *w = contract_name(out->arena, c);
    if (out->len > 0)
        buf_puts(out, "---\n");
    buf_printf(out, "kaio: %d\n%s: %s\n", CONTRACT_VERSION, c->is_program ? "program" : "kernel",
               c->kernel);
    if (c->source) {
        buf_puts(out, "source: ");
        if (is_plain(c->source))
            buf_puts(out, c->source);
        else
            quoted(c->source, out);
        buf_putc(out, '\n');
    }
    if (c->target)
        buf_printf(out, "target: %s\n", c->target);
    buf_puts(out, c->params.n ? "params:\n" : "params: {}\n");
    for (size_t i = 0; i < c->params.n; i++)
        declaration(&c->params.v[i], out);
    derived_dims(c, out);
    fixed_dims(c, out);
    if (c->require.n)
        buf_puts(out, "require:\n");
    for (size_t i = 0; i < c->require.n; i++) {
        buf_puts(out, "  - ");
        expression(c->require.v[i], w, out);
        buf_putc(out, '\n');
    }
    contract_write_where(w, out);
    sum("depth", c->depth, w, out);
    sum("truncation", c->truncation, w, out);
    sum("products", c->products, w, out);
    sum("weights", c->weights, w, out);
    if (c->temps.n)
        buf_puts(out, "temps:\n");
    for (size_t i = 0; i < c->temps.n; i++)
        temp(&c->temps.v[i], w, out);
    if (c->is_program) {
        steps(&c->written, out);
        return;
    }
    buf_puts(out, c->launches.n ? "launches:\n" : "launches: []\n");
    for (size_t i = 0; i < c->launches.n; i++)
        launch(&c->launches.v[i], w, out);
    if (c->messages.n)
        buf_puts(out, "messages:\n");
    for (size_t i = 0; i < c->messages.n; i++)
        message(&c->messages.v[i], out);
}
