#include <config.h>

#include "run/made.h"

#include <ctype.h>
#include <inttypes.h>

/* ---- the contract as text ---- */

/* s as a YAML string in double quotes. */
static void quote(struct buf *out, const char *s, size_t n)
{
    buf_putc(out, '"');
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c == '"' || c == '\\')
            buf_printf(out, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            buf_printf(out, "\\x%02x", c);
        else
            buf_putc(out, (char)c);
    }
    buf_putc(out, '"');
}

/* "ceil_div(n, 256), 4" as a list of two: commas inside brackets do not separate. */
static void list(struct buf *out, const char *key, const char *text)
{
    int depth = 0;
    buf_printf(out, "    %s: [", key);
    for (const char *s = text, *p = text;; p++) {
        if (*p == '(' || *p == '[')
            depth++;
        if (*p == ')' || *p == ']')
            depth--;
        if (*p && (*p != ',' || depth > 0))
            continue;
        while (*s == ' ')
            s++;
        quote(out, s, (size_t)(p - s));
        if (!*p)
            break;
        buf_puts(out, ", ");
        s = p + 1;
    }
    buf_puts(out, "]\n");
}

struct decl {
    const char *text;
    size_t len;
    const char *value;
    bool computed; /* "TYPE expression", which is no parameter */
};

/* Whether a declaration is a scalar's, and its value no number: "u32=n / 4". */
static bool is_computed(const char *decl, size_t len, const char *value)
{
    static const char *const words[] = {"true", "false", "inf", "infinity", "nan", NULL};
    if (memchr(decl, '[', len))
        return false;
    for (int i = 0; words[i]; i++)
        if (strcasecmp(value, words[i]) == 0)
            return false;
    return isalpha((unsigned char)value[0]) || value[0] == '_' || value[0] == '(';
}

static bool split(const char *arg, struct decl *out, struct diags *d)
{
    const char *eq = strchr(arg, '=');
    if (!eq)
        return diag_error(
            d, SPAN_NONE,
            "'%s' is not DECLARATION=VALUE: --arg 'in f32[1024]=x.npy', --arg u32=1024", arg);
    *out = (struct decl){.text = arg, .len = (size_t)(eq - arg), .value = eq + 1};
    while (out->len && out->text[0] == ' ') {
        out->text++;
        out->len--;
    }
    while (out->len && out->text[out->len - 1] == ' ')
        out->len--;
    out->computed = is_computed(out->text, out->len, out->value);
    return true;
}

/* A contract in the making. */
struct making {
    struct arena *a;
    struct diags *d;
    struct buf params, args; /* its params, a line each; the arguments of its launch */
    VEC(struct run_arg) value;
};

enum { DEEPEST = 8 }; /* structs within each other */

static bool add_argument(struct making *m, const char *text, const char *name, unsigned depth);

/* Where the part of a list that begins at s ends: at a comma outside of brackets, or at the end. */
static const char *part_end(const char *s)
{
    for (int depth = 0; *s && (*s != ',' || depth > 0); s++)
        depth += (strchr("([{", *s) != NULL) - (strchr(")]}", *s) != NULL);
    return s;
}

/* What is between the braces of "struct{...}"; NULL: it is none. */
static const char *members_of(struct arena *a, const char *text)
{
    static const char word[] = "struct";
    text += strspn(text, " ");
    const size_t blank = strncmp(text, word, strlen(word)) ? 0 : strspn(text + strlen(word), " ");
    const char *open = text + strlen(word) + blank;
    size_t n = strlen(text);
    while (n && text[n - 1] == ' ')
        n--;
    if (strncmp(text, word, strlen(word)) != 0 || *open != '{' || text[n - 1] != '}')
        return NULL;
    return arena_strndup(a, open + 1, (size_t)(text + n - 1 - (open + 1)));
}

static bool add_struct(struct making *m, const char *members, const char *name, unsigned depth)
{
    unsigned n = 0;
    if (depth == DEEPEST)
        return diag_error(m->d, SPAN_NONE, "more than %d structs within each other", DEEPEST);
    buf_puts(&m->args, "{struct: [");
    for (const char *s = members;; s++) {
        const char *end = part_end(s);
        buf_puts(&m->args, n ? ", " : "");
        size_t len = (size_t)(end - s);
        while (len && s[len - 1] == ' ')
            len--;
        if (!add_argument(m, arena_strndup(m->a, s, len), arena_printf(m->a, "%s_%u", name, ++n),
                          depth + 1))
            return false;
        s = end;
        if (!*s)
            break;
    }
    buf_puts(&m->args, "]}");
    return true;
}

/* "DECL=VALUE" or "struct{DECL=VALUE, ...}", as the argument, or member, of that name. */
static bool add_argument(struct making *m, const char *text, const char *name, unsigned depth)
{
    struct decl decl = {0};
    const char *members = members_of(m->a, text);
    if (members && members[strspn(members, " ")])
        return add_struct(m, members, name, depth);
    if (strncmp(text, "struct{", 7) == 0)
        return diag_error(m->d, SPAN_NONE,
                          "'%s' is not a struct with members in braces: --arg 'struct{in "
                          "f32[1024]=x.npy, u32=1024}'",
                          text);
    if (!split(text, &decl, m->d))
        return false;
    if (decl.computed) {
        const char *both = arena_printf(m->a, "%.*s %s", (int)decl.len, decl.text, decl.value);
        quote(&m->args, both, strlen(both));
        return true;
    }
    buf_printf(&m->params, "\n  %s: ", name);
    quote(&m->params, decl.text, decl.len);
    buf_puts(&m->args, name);
    *VEC_PUSH(m->a, &m->value) = (struct run_arg){.name = name, .value = decl.value};
    return true;
}

struct contract *made_contract(struct arena *a, const struct made_options *o,
                               struct run_arg **value, size_t *nvalue, struct diags *d)
{
    struct buf text = buf_in(a);
    struct making m = {.a = a, .d = d, .params = buf_in(a), .args = buf_in(a)};
    for (size_t i = 0; i < o->narg; i++) {
        buf_puts(&m.args, i ? ", " : "");
        if (!add_argument(&m, o->arg[i], arena_printf(a, "arg%zu", i + 1), 0))
            return NULL;
    }
    *value = m.value.v;
    *nvalue = m.value.n;
    buf_puts(&text, "kaio: 1\nkernel: ");
    quote(&text, o->entry, strlen(o->entry));
    buf_printf(&text, "\nparams:%s", buf_text(&m.params));
    buf_puts(&text, *nvalue ? "\nlaunches:\n  - entry: " : " {}\nlaunches:\n  - entry: ");
    quote(&text, o->entry, strlen(o->entry));
    buf_putc(&text, '\n');
    list(&text, "grid", o->grid);
    list(&text, "block", o->block);
    if (o->cluster)
        list(&text, "cluster", o->cluster);
    if (o->shared) {
        buf_puts(&text, "    shared: ");
        quote(&text, o->shared, strlen(o->shared));
        buf_putc(&text, '\n');
    }
    buf_printf(&text, "    args: [%s]\n", buf_text(&m.args));
    struct contract_file *file =
        contract_read(a, source_new(a, "<options>", buf_text(&text), text.len), d);
    return file && file->v.n == 1 ? file->v.v[0] : NULL;
}

/* ---- help ---- */

/* The declaration that a parameter most likely needs. */
static const char *likely(const struct ptx_var *v)
{
    static const struct {
        enum ptx_mod type;
        const char *decl;
    } scalars[] = {{PTX_U32, "u32"}, {PTX_S32, "i32"}, {PTX_F32, "f32"}, {PTX_F64, "f64"},
                   {PTX_U16, "u16"}, {PTX_U8, "u8"},   {PTX_B32, "u32"}, {PTX_B16, "u16"}};
    if (v->is_array)
        return NULL;
    for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++)
        if (v->type == scalars[i].type)
            return scalars[i].decl;
    return "in f32[N]"; /* 64 bits: mostly a pointer */
}

/* What the entry loads of a struct, as declarations of its members in the order in which they
 * lie. */
static const char *likely_members(struct arena *a, const struct ptx_func *f,
                                  const struct ptx_var *v)
{
    struct buf b = buf_in(a);
    uint64_t next = 0;
    for (bool more = true; more;) {
        const struct ptx_inst *first = NULL;
        uint64_t at = UINT64_MAX;
        for (size_t i = 0; i < f->items.n; i++) {
            const struct ptx_inst *in = &f->items.v[i].inst;
            const bool loads = f->items.v[i].kind == PTX_I_INST && in->op == PTX_OP_LD &&
                               in->operand[1].kind == PTX_O_MEM && in->operand[1].var == v;
            if (loads && in->operand[1].bits >= next && in->operand[1].bits < at) {
                first = in;
                at = first->operand[1].bits;
            }
        }
        more = first != NULL;
        if (!more)
            break;
        const struct ptx_var member = {.type = (enum ptx_mod)first->type[0]};
        const char *decl = likely(&member);
        const uint32_t n = first->operand[0].kind == PTX_O_VEC ? first->operand[0].nelem : 1;
        next = at + n * ptx_type_bits(member.type) / 8;
        for (uint32_t i = 0; decl && i < n; i++)
            buf_printf(&b, "%s%s=...", b.len ? ", " : "", decl);
    }
    return b.len ? buf_text(&b) : "...";
}

static void explain_entry(const struct ptx_func *f, struct buf *params, struct buf *args)
{
    for (size_t k = 0; k < f->params.n; k++) {
        const struct ptx_var *v = f->params.v[k];
        const char *decl = likely(v);
        buf_printf(params, "%s%s", k ? ", " : "", ptx_mod_text(v->type));
        if (v->is_array)
            buf_printf(params, "[%" PRIu64 "]", v->count);
        if (decl)
            buf_printf(args, " --arg '%s=...'", decl);
        else
            buf_printf(args, " --arg 'struct{%s}'", likely_members(args->arena, f, v));
    }
}

/* A parameter that only a launch contract gives. */
static const struct ptx_var *tensor_map(const struct ptx_func *f)
{
    for (size_t k = 0; k < f->params.n; k++)
        if (f->params.v[k]->is_array && ptx_var_bytes(f->params.v[k]) == DEVICE_TENSOR_MAP &&
            ptx_var_align(f->params.v[k]) >= 64)
            return f->params.v[k];
    return NULL;
}

static void explain_launch(const struct ptx_func *f, const char *args, struct diags *d)
{
    const struct ptx_var *v = tensor_map(f);
    if (v)
        diag_note(
            d, v->span,
            "'%s' may be a tensor map, which a launch contract describes: --launch FILE, with "
            "{map: BUFFER, box: [...]} among its args; see kaio-ptx(5)",
            v->name);
    else
        diag_note(d, SPAN_NONE, "launch it with --entry %s --grid G --block %" PRIu32 "%s", f->name,
                  f->reqntid[0]   ? f->reqntid[0]
                  : f->maxntid[0] ? f->maxntid[0]
                                  : 256,
                  args);
}

void made_explain(const struct ptx_module *m, struct diags *d)
{
    enum { MOST = 8 };
    size_t shown = 0, all = 0;
    for (size_t i = 0; i < m->items.n; i++) {
        const struct ptx_func *f = m->items.v[i].kind == PTX_I_FUNC ? m->items.v[i].func : NULL;
        if (!f || !f->is_entry || ++all > MOST)
            continue;
        struct buf params = buf_in(m->arena), args = buf_in(m->arena);
        explain_entry(f, &params, &args);
        diag_note(d, f->span, "entry '%s' takes (%s)", f->name, buf_text(&params));
        if (shown++ == 0)
            explain_launch(f, buf_text(&args), d);
    }
    if (all > MOST)
        diag_note(d, SPAN_NONE, "there are %zu more entries", all - MOST);
}
