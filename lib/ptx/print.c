/* The module as text. What is printed here, ptx_parse() reads back as the same module, and that
 * prints the same. */
#include <config.h>

#include "ptx/table.h"

enum { OPERAND_COLUMN = 24 }; /* of operands, counted from the instruction's start */

static void tabs(struct buf *out, unsigned n)
{
    while (n--)
        buf_putc(out, '\t');
}

static void put_uint(struct buf *out, uint64_t v)
{
    char digits[20];
    size_t n = sizeof digits;
    do
        digits[--n] = (char)('0' + v % 10);
    while (v /= 10);
    buf_add(out, digits + n, sizeof digits - n);
}

static void put_int(struct buf *out, int64_t v)
{
    if (v < 0)
        buf_putc(out, '-');
    put_uint(out, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

static void put_hex(struct buf *out, const char *prefix, uint64_t bits, unsigned digits)
{
    buf_puts(out, prefix);
    while (digits--)
        buf_putc(out, "0123456789ABCDEF"[bits >> (digits * 4) & 15]);
}

/* ---- operands -------------------------------------------------------------------------------- */

static void put_operand(const struct ptx_func *f, const struct ptx_operand *o, struct buf *out);

static void put_list(const struct ptx_func *f, const struct ptx_operand *elem, uint32_t n,
                     const char *brackets, struct buf *out)
{
    buf_putc(out, brackets[0]);
    for (uint32_t i = 0; i < n; i++) {
        if (i)
            buf_puts(out, ", ");
        put_operand(f, &elem[i], out);
    }
    buf_putc(out, brackets[1]);
}

static void put_reg(const struct ptx_func *f, int32_t reg, struct buf *out)
{
    buf_puts(out, reg < 0 ? "_" : f->regs.v[reg].name);
}

static void put_offset(struct buf *out, uint64_t bits)
{
    if (bits == 0)
        return;
    buf_putc(out, '+');
    put_int(out, (int64_t)bits);
}

static void put_memory(const struct ptx_func *f, const struct ptx_operand *o, struct buf *out)
{
    buf_putc(out, '[');
    if (o->reg >= 0)
        put_reg(f, o->reg, out);
    else if (o->var)
        buf_puts(out, o->var->name);
    else
        put_int(out, (int64_t)o->bits);
    if (o->reg >= 0 || o->var)
        put_offset(out, o->bits);
    if (o->nelem) {
        buf_puts(out, ", ");
        put_list(f, o->elem, o->nelem, "{}", out);
    }
    buf_putc(out, ']');
}

static void put_operand(const struct ptx_func *f, const struct ptx_operand *o, struct buf *out)
{
    switch (o->kind) {
    case PTX_O_REG:
        if (o->neg)
            buf_putc(out, '!');
        put_reg(f, o->reg, out);
        if (o->reg2 >= 0) {
            buf_putc(out, '|');
            put_reg(f, o->reg2, out);
        }
        break;
    case PTX_O_IMM: put_int(out, (int64_t)o->bits); break;
    case PTX_O_F32: put_hex(out, "0f", o->bits, 8); break;
    case PTX_O_F64: put_hex(out, "0d", o->bits, 16); break;
    case PTX_O_SREG: buf_puts(out, ptx_sreg_text(o->sreg)); break;
    case PTX_O_SYM:
        buf_puts(out, o->var->name);
        put_offset(out, o->bits);
        break;
    case PTX_O_LABEL: buf_puts(out, f->labels.v[o->label].name); break;
    case PTX_O_FUNC: buf_puts(out, o->name); break;
    case PTX_O_MEM: put_memory(f, o, out); break;
    case PTX_O_VEC: put_list(f, o->elem, o->nelem, "{}", out); break;
    case PTX_O_SINK: buf_putc(out, '_'); break;
    }
}

/* ---- instructions ---------------------------------------------------------------------------- */

/* (results), function, (arguments), prototype: empty lists only where something has to stand. */
static void put_call(const struct ptx_func *f, const struct ptx_inst *in, struct buf *out)
{
    const struct ptx_operand *o = in->operand;
    if (o[0].nelem) {
        put_list(f, o[0].elem, o[0].nelem, "()", out);
        buf_puts(out, ", ");
    }
    put_operand(f, &o[1], out);
    if (o[0].nelem || o[2].nelem || in->noperand > 3) {
        buf_puts(out, ", ");
        put_list(f, o[2].elem, o[2].nelem, "()", out);
    }
    if (in->noperand > 3) {
        buf_puts(out, ", ");
        put_operand(f, &o[3], out);
    }
}

static void put_mnemonic(const struct ptx_inst *in, struct buf *out)
{
    const char *words[PTX_MAX_WORDS];
    const size_t n = ptx_mnemonic_words(in, words);
    buf_puts(out, ptx_op_name(in->op));
    for (size_t i = 0; i < n; i++) {
        buf_putc(out, '.');
        buf_puts(out, words[i]);
    }
}

/* The texts of mnemonics met lately. */
struct mnemonics {
    struct ptx_seen seen[PTX_SEEN];
    struct {
        char text[64];
        size_t n;
    } of[PTX_SEEN];
};

static void put_known_mnemonic(struct mnemonics *known, const struct ptx_inst *in, struct buf *out)
{
    const size_t at = ptx_seen_at(in), start = out->len;
    if (known->seen[at].mod == in->mod && known->seen[at].op == in->op) {
        buf_add(out, known->of[at].text, known->of[at].n);
        return;
    }
    put_mnemonic(in, out);
    const size_t n = out->len - start;
    if (n > sizeof known->of[at].text)
        return;
    ptx_see(known->seen, in);
    memcpy(known->of[at].text, out->text + start, n);
    known->of[at].n = n;
}

static void put_inst(const struct ptx_func *f, const struct ptx_inst *in, unsigned column,
                     struct mnemonics *known, struct buf *out)
{
    const size_t start = out->len;
    if (in->guard >= 0) {
        buf_puts(out, in->guard_neg ? "@!" : "@");
        put_reg(f, in->guard, out);
        buf_putc(out, ' ');
    }
    if (known)
        put_known_mnemonic(known, in, out);
    else
        put_mnemonic(in, out);
    if (in->noperand == 0)
        return;
    static const char blanks[OPERAND_COLUMN + 1] = "                        ";
    const size_t used = out->len - start;
    buf_add(out, blanks, used < column ? column - used : 1);
    if (in->op == PTX_OP_CALL) {
        put_call(f, in, out);
        return;
    }
    for (unsigned i = 0; i < in->noperand; i++) {
        if (i)
            buf_puts(out, ", ");
        put_operand(f, &in->operand[i], out);
    }
}

void ptx_print_inst(const struct ptx_func *f, const struct ptx_inst *in, struct buf *out)
{
    put_inst(f, in, 0, NULL, out);
}

/* ---- declarations ---------------------------------------------------------------------------- */

static void put_word(struct buf *out, const char *dotted)
{
    buf_puts(out, dotted);
    buf_putc(out, ' ');
}

static void put_mod(struct buf *out, enum ptx_mod m)
{
    buf_putc(out, '.');
    put_word(out, ptx_mod_text(m));
}

static void put_var(const struct ptx_var *v, struct buf *out)
{
    if (*v->linkage)
        put_word(out, v->linkage);
    if (v->space == PTX_NONE)
        put_word(out, ".reg");
    else
        put_mod(out, v->space);
    if (v->attribute)
        buf_printf(out, ".attribute(%s) ", v->attribute);
    if (v->align)
        buf_printf(out, ".align %u ", v->align);
    if (v->vec != PTX_NONE)
        put_mod(out, v->vec);
    put_mod(out, v->type);
    if (v->ptr)
        put_word(out, v->ptr);
    buf_puts(out, v->name);
    if (v->shape) {
        buf_puts(out, v->shape);
    } else if (v->is_array) {
        buf_putc(out, '[');
        if (v->count)
            put_uint(out, v->count);
        buf_putc(out, ']');
    }
    if (v->init) {
        buf_puts(out, " = ");
        buf_puts(out, v->init);
    }
}

static void put_regs(const struct ptx_func *f, const struct ptx_item *it, struct buf *out)
{
    (void)f;
    buf_puts(out, ".reg ");
    put_mod(out, it->type);
    buf_puts(out, it->text);
    if (it->reg_range) {
        buf_putc(out, '<');
        put_uint(out, it->nreg);
        buf_putc(out, '>');
    }
}

/* ---- items ----------------------------------------------------------------------------------- */

static void put_comment(const struct ptx_item *it, unsigned depth, struct buf *out)
{
    tabs(out, depth);
    buf_puts(out, *it->text ? "// " : "//");
    buf_puts(out, it->text);
}

static void put_targets(const struct ptx_func *f, const struct ptx_item *it, struct buf *out)
{
    buf_puts(out, ".branchtargets ");
    for (uint32_t i = 0; i < it->ntarget; i++) {
        if (i)
            buf_puts(out, ", ");
        buf_puts(out, f->labels.v[it->target[i]].name);
    }
    buf_putc(out, ';');
}

/* One line of a body; depth is the number of braces around it. */
static void put_body_item(const struct ptx_func *f, const struct ptx_item *it, unsigned depth,
                          struct mnemonics *known, struct buf *out)
{
    switch (it->kind) {
    case PTX_I_INST:
        tabs(out, depth);
        put_inst(f, &it->inst, OPERAND_COLUMN, known, out);
        buf_putc(out, ';');
        break;
    case PTX_I_LABEL:
        tabs(out, depth - 1);
        buf_puts(out, f->labels.v[it->label].name);
        buf_putc(out, ':');
        break;
    case PTX_I_REG:
        tabs(out, depth);
        put_regs(f, it, out);
        buf_putc(out, ';');
        break;
    case PTX_I_VAR:
        tabs(out, depth);
        put_var(it->var, out);
        buf_putc(out, ';');
        break;
    case PTX_I_OPEN:
    case PTX_I_CLOSE:
        tabs(out, depth);
        buf_putc(out, it->kind == PTX_I_OPEN ? '{' : '}');
        break;
    case PTX_I_COMMENT: put_comment(it, depth, out); break;
    case PTX_I_LOC:
        tabs(out, depth);
        buf_printf(out, ".loc %u %u %u%s", it->file, it->line, it->column, it->text);
        break;
    case PTX_I_TARGETS:
        tabs(out, depth);
        put_targets(f, it, out);
        break;
    case PTX_I_TEXT:
    case PTX_I_PROTO:
        tabs(out, depth);
        buf_puts(out, it->text);
        break;
    case PTX_I_FUNC: break; /* not in a body */
    }
    buf_putc(out, '\n');
}

static bool declares(const struct ptx_item *it)
{
    return it->kind == PTX_I_REG || it->kind == PTX_I_VAR;
}

static void put_body(const struct ptx_func *f, struct mnemonics *known, struct buf *out)
{
    unsigned depth = 1;
    buf_puts(out, "{\n");
    for (size_t i = 0; i < f->items.n; i++) {
        const struct ptx_item *it = &f->items.v[i];
        if (it->kind == PTX_I_CLOSE && depth > 1)
            depth--;
        if (depth == 1 && i && declares(&f->items.v[i - 1]) && !declares(it))
            buf_putc(out, '\n');
        put_body_item(f, it, depth, known, out);
        if (it->kind == PTX_I_OPEN)
            depth++;
    }
    buf_puts(out, "}\n");
}

static void put_triple(struct buf *out, const char *word, const uint32_t v[3])
{
    if (v[0])
        buf_printf(out, "\n%s %u, %u, %u", word, v[0], v[1], v[2]);
}

static void put_func(const struct ptx_func *f, struct mnemonics *known, struct buf *out)
{
    if (*f->linkage)
        put_word(out, f->linkage);
    buf_puts(out, f->is_entry ? ".entry " : ".func ");
    if (f->attribute)
        buf_printf(out, ".attribute(%s) ", f->attribute);
    for (size_t i = 0; i < f->results.n; i++) {
        buf_puts(out, i ? ", " : "(");
        put_var(f->results.v[i], out);
        if (i + 1 == f->results.n)
            buf_puts(out, ") ");
    }
    buf_puts(out, f->name);
    buf_putc(out, '(');
    for (size_t i = 0; i < f->params.n; i++) {
        buf_puts(out, i ? ",\n\t" : "\n\t");
        put_var(f->params.v[i], out);
    }
    buf_puts(out, f->params.n ? "\n)" : ")");
    if (f->noreturn)
        buf_puts(out, "\n.noreturn");
    put_triple(out, ".maxntid", f->maxntid);
    put_triple(out, ".reqntid", f->reqntid);
    if (f->minnctapersm)
        buf_printf(out, "\n.minnctapersm %u", f->minnctapersm);
    if (f->maxnreg)
        buf_printf(out, "\n.maxnreg %u", f->maxnreg);
    if (*f->directives)
        buf_printf(out, "\n%s", f->directives);
    if (!f->has_body) {
        buf_puts(out, ";\n");
        return;
    }
    buf_putc(out, '\n');
    put_body(f, known, out);
}

/* Each line of the header behind its mark. */
static void put_header(const char *text, struct buf *out)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        buf_puts(out, n ? "//@ " : "//@");
        buf_add(out, text, n);
        buf_putc(out, '\n');
        text += n + (text[n] == '\n');
    }
}

/* About the bytes of the text. */
static size_t about(const struct ptx_module *m)
{
    enum { LINE = 56 };
    size_t n = strlen(m->header) + 1024;
    for (size_t i = 0; i < m->items.n; i++)
        if (m->items.v[i].kind == PTX_I_FUNC)
            n += LINE * m->items.v[i].func->items.n;
    return n;
}

void ptx_print(const struct ptx_module *m, struct buf *out)
{
    struct mnemonics *const known = ARENA_NEW(out->arena, struct mnemonics);
    buf_reserve(out, about(m));
    put_header(m->header, out);
    buf_printf(out, ".version %u.%u\n.target sm_%u", m->version / 10, m->version % 10, m->sm);
    if (m->sm_suffix)
        buf_putc(out, m->sm_suffix);
    if (*m->target_more)
        buf_printf(out, ", %s", m->target_more);
    buf_printf(out, "\n.address_size %u\n", m->address_size);
    for (size_t i = 0; i < m->items.n; i++) {
        const struct ptx_item *it = &m->items.v[i];
        if (i == 0 || it->kind == PTX_I_FUNC || it[-1].kind == PTX_I_FUNC)
            buf_putc(out, '\n');
        switch (it->kind) {
        case PTX_I_FUNC: put_func(it->func, known, out); break;
        case PTX_I_VAR:
            put_var(it->var, out);
            buf_puts(out, ";\n");
            break;
        case PTX_I_COMMENT:
            put_comment(it, 0, out);
            buf_putc(out, '\n');
            break;
        default:
            buf_puts(out, it->text);
            buf_putc(out, '\n');
            break;
        }
    }
}
