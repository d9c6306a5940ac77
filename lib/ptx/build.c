/* Making modules. Misuse is a mistake in the program that calls, not in its input: it aborts with
 * the text. */
#include <config.h>

#include "ptx/table.h"

#include "base/internal.h"

#include <stdio.h>

/* ---- modules and functions ------------------------------------------------------------------- */

struct ptx_module *ptx_module_new(struct arena *a, const struct ptx_target *t)
{
    struct ptx_module *m = ARENA_NEW(a, struct ptx_module);
    *m = (struct ptx_module){.arena = a,
                             .header = "",
                             .version = t->min_ptx,
                             .sm = t->sm,
                             .sm_suffix = t->suffix,
                             .target_more = "",
                             .address_size = 64};
    return m;
}

struct ptx_func *ptx_entry_new(struct ptx_module *m, const char *name)
{
    struct ptx_func *f = ARENA_NEW(m->arena, struct ptx_func);
    f->name = arena_strdup(m->arena, name);
    f->is_entry = true;
    f->has_body = true;
    f->linkage = ".visible";
    f->directives = "";
    struct ptx_item *it = VEC_PUSH(m->arena, &m->items);
    it->kind = PTX_I_FUNC;
    it->func = f;
    return f;
}

struct ptx_var *ptx_param_new(struct ptx_module *m, struct ptx_func *f, const char *name,
                              enum ptx_mod type)
{
    struct ptx_var *v = ARENA_NEW(m->arena, struct ptx_var);
    *v = (struct ptx_var){.name = arena_strdup(m->arena, name),
                          .space = PTX_PARAM,
                          .type = type,
                          .linkage = "",
                          .is_input = true};
    *VEC_PUSH(m->arena, &f->params) = v;
    return v;
}

void ptx_file(struct ptx_module *m, unsigned number, const char *name)
{
    struct buf text = buf_in(m->arena);
    buf_printf(&text, ".file\t%u \"", number);
    for (; *name; name++) {
        if (*name == '"' || *name == '\\')
            buf_putc(&text, '\\');
        buf_putc(&text, (unsigned char)*name < ' ' ? '?' : *name);
    }
    buf_putc(&text, '"');
    struct ptx_item *it = VEC_PUSH(m->arena, &m->items);
    it->kind = PTX_I_TEXT;
    it->text = buf_text(&text);
}

static void raise(unsigned *version, unsigned to)
{
    if (to > *version)
        *version = to;
}

static void settle_elements(unsigned *version, const struct ptx_operand *o);

static inline void settle_operand(unsigned *version, const struct ptx_operand *o)
{
    if (o->kind == PTX_O_SREG)
        raise(version, ptx_sreg_min_ptx(o->sreg));
    if (o->nelem)
        settle_elements(version, o);
}

static void settle_elements(unsigned *version, const struct ptx_operand *o)
{
    for (uint32_t i = 0; i < o->nelem; i++)
        settle_operand(version, &o->elem[i]);
}

static void settle_func(unsigned *version, struct ptx_seen seen[PTX_SEEN], const struct ptx_func *f)
{
    if (f->is_entry && ptx_param_bytes(f) > PTX_PARAM_BYTES)
        raise(version, PTX_MANY_PARAMS);
    if (strstr(f->directives, "cluster"))
        raise(version, 78);
    for (size_t i = 0; i < f->items.n; i++) {
        const struct ptx_item *it = &f->items.v[i];
        struct ptx_needs needs;
        if (it->kind != PTX_I_INST)
            continue;
        if (!ptx_see(seen, &it->inst)) {
            ptx_inst_needs(&it->inst, &needs);
            raise(version, needs.ptx);
        }
        for (unsigned k = 0; k < it->inst.noperand; k++)
            settle_operand(version, &it->inst.operand[k]);
    }
}

void ptx_settle_version(struct ptx_module *m)
{
    char name[16];
    int n = snprintf(name, sizeof name, "sm_%u%.1s", m->sm, &m->sm_suffix);
    const struct ptx_target *t = ptx_target_any(name, (size_t)n);
    unsigned version = t ? t->min_ptx : 60;
    struct ptx_seen seen[PTX_SEEN] = {{0}};
    for (size_t i = 0; i < m->items.n; i++)
        if (m->items.v[i].kind == PTX_I_FUNC)
            settle_func(&version, seen, m->items.v[i].func);
    m->version = version;
}

/* ---- words ----------------------------------------------------------------------------------- */

/* A module has a few hundred at most. */
enum { WORDS = 512 };

static uint32_t hash_words(const struct ptx_words *w)
{
    uint32_t h = 0;
    for (size_t i = 0; i < PTX_MC_COUNT; i++)
        h = (h ^ w->mod[i]) * 16777619u;
    for (size_t i = 0; i < PTX_MAX_TYPES; i++)
        h = (h ^ w->type[i]) * 16777619u;
    return (h ^ h >> 16) % WORDS;
}

void ptx_set_words(struct ptx_module *m, struct ptx_inst *in, const struct ptx_words *words)
{
    if (!m->words)
        m->words = ARENA_ARRAY(m->arena, WORDS, const struct ptx_words *);
    const struct ptx_words **at = &m->words[hash_words(words)];
    if (!*at || memcmp(*at, words, sizeof *words) != 0) { /* those of before stay with others */
        struct ptx_words *fresh = ARENA_NEW(m->arena, struct ptx_words);
        *fresh = *words;
        *at = fresh;
    }
    in->mod = (*at)->mod;
    in->type = (*at)->type;
}

bool ptx_same_words(const struct ptx_inst *x, const struct ptx_inst *y)
{
    return x->mod == y->mod || (memcmp(x->mod, y->mod, PTX_MC_COUNT * sizeof *x->mod) == 0 &&
                                memcmp(x->type, y->type, PTX_MAX_TYPES * sizeof *x->type) == 0);
}

/* ---- bodies ---------------------------------------------------------------------------------- */

/* The families of registers, in the order that their declarations are written. */
static const struct family {
    const char *prefix;
    enum ptx_mod type;
} families[] = {
    {"%p", PTX_PRED}, {"%rs", PTX_B16}, {"%h", PTX_B16},  {"%r", PTX_B32},
    {"%rd", PTX_B64}, {"%f", PTX_F32},  {"%fd", PTX_F64}, {"%rq", PTX_B128},
};
enum { NFAMILY = sizeof families / sizeof *families };

static unsigned family_of(enum ptx_mod type)
{
    switch ((int)type) {
    case PTX_PRED: return 0;
    case PTX_F16:
    case PTX_BF16: return 2;
    case PTX_F32: return 5;
    case PTX_F64: return 6;
    default: break;
    }
    switch (ptx_type_bits(type)) {
    case 16: return 1;
    case 32: return 3;
    case 64: return 4;
    case 128: return 7;
    default: INTERNAL_ERROR("no register has that type: %s", ptx_mod_text(type));
    }
}

struct ptx_builder ptx_builder_new(struct ptx_module *m, struct ptx_func *f)
{
    return (struct ptx_builder){.module = m, .func = f};
}

int32_t ptx_reg_new(struct ptx_builder *b, enum ptx_mod type)
{
    unsigned k = family_of(type);
    struct ptx_reg *r = VEC_PUSH(b->module->arena, &b->func->regs);
    r->type = families[k].type;
    r->name = families[k].prefix;
    return (int32_t)(b->func->regs.n - 1);
}

static struct ptx_item *item_new(struct ptx_builder *b, enum ptx_item_kind kind)
{
    struct ptx_item *it = VEC_PUSH(b->module->arena, &b->func->items);
    it->kind = kind;
    it->span = b->span;
    return it;
}

uint32_t ptx_label_new(struct ptx_builder *b, const char *stem)
{
    struct ptx_func *f = b->func;
    struct ptx_label *l = VEC_PUSH(b->module->arena, &f->labels);
    l->name = arena_printf(b->module->arena, "$%s_%zu", stem, f->labels.n - 1);
    l->item = UINT32_MAX;
    return (uint32_t)(f->labels.n - 1);
}

void ptx_label_here(struct ptx_builder *b, uint32_t label)
{
    struct ptx_label *l = &b->func->labels.v[label];
    if (l->item != UINT32_MAX)
        INTERNAL_ERROR("label placed twice: %s", l->name);
    l->item = (uint32_t)b->func->items.n;
    item_new(b, PTX_I_LABEL)->label = label;
}

void ptx_comment(struct ptx_builder *b, const char *text)
{
    while (true) {
        size_t n = strcspn(text, "\n"), keep = n;
        while (keep > 0 &&
               (text[keep - 1] == ' ' || text[keep - 1] == '\t' || text[keep - 1] == '\r'))
            keep--;
        item_new(b, PTX_I_COMMENT)->text = arena_strndup(b->module->arena, text, keep);
        if (!text[n])
            return;
        text += n + 1;
    }
}

void ptx_loc(struct ptx_builder *b, unsigned file, unsigned line, unsigned column)
{
    struct ptx_item *it = item_new(b, PTX_I_LOC);
    it->file = file;
    it->line = line;
    it->column = column;
    it->text = "";
}

struct ptx_var *ptx_array_new(struct ptx_builder *b, enum ptx_mod space, const char *name,
                              enum ptx_mod type, uint32_t align, uint64_t count)
{
    struct ptx_var *v = ARENA_NEW(b->module->arena, struct ptx_var);
    *v = (struct ptx_var){.name = arena_strdup(b->module->arena, name),
                          .space = space,
                          .type = type,
                          .align = align,
                          .is_array = true,
                          .count = count,
                          .linkage = "",
                          .span = b->span};
    item_new(b, PTX_I_VAR)->var = v;
    return v;
}

/* ---- operands -------------------------------------------------------------------------------- */

static struct ptx_operand operand(enum ptx_operand_kind kind)
{
    return (struct ptx_operand){.kind = kind, .reg = -1, .reg2 = -1};
}

struct ptx_operand ptx_pair(int32_t reg, int32_t reg2)
{
    struct ptx_operand o = ptx_r(reg);
    o.reg2 = reg2;
    return o;
}

struct ptx_operand ptx_not(int32_t pred)
{
    struct ptx_operand o = ptx_r(pred);
    o.neg = true;
    return o;
}

struct ptx_operand ptx_immf32(float v)
{
    struct ptx_operand o = operand(PTX_O_F32);
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    o.bits = bits;
    return o;
}

struct ptx_operand ptx_immf64(double v)
{
    struct ptx_operand o = operand(PTX_O_F64);
    memcpy(&o.bits, &v, sizeof o.bits);
    return o;
}

struct ptx_operand ptx_special(enum ptx_sreg r)
{
    struct ptx_operand o = operand(PTX_O_SREG);
    o.sreg = r;
    return o;
}

struct ptx_operand ptx_sym(const struct ptx_var *v)
{
    struct ptx_operand o = operand(PTX_O_SYM);
    o.var = v;
    return o;
}

struct ptx_operand ptx_label(uint32_t label)
{
    struct ptx_operand o = operand(PTX_O_LABEL);
    o.label = label;
    return o;
}

struct ptx_operand ptx_mem(int32_t reg, int64_t offset)
{
    struct ptx_operand o = operand(PTX_O_MEM);
    o.reg = reg;
    o.bits = (uint64_t)offset;
    return o;
}

struct ptx_operand ptx_mem_var(const struct ptx_var *v, int64_t offset)
{
    struct ptx_operand o = operand(PTX_O_MEM);
    o.var = v;
    o.bits = (uint64_t)offset;
    return o;
}

struct ptx_operand ptx_sink(void)
{
    return operand(PTX_O_SINK);
}

static struct ptx_operand *copy(struct arena *a, size_t n, const struct ptx_operand *from)
{
    if (n == 0)
        return NULL;
    struct ptx_operand *to = ARENA_ARRAY(a, n, struct ptx_operand);
    memcpy(to, from, n * sizeof *to);
    return to;
}

struct ptx_operand ptx_vec(struct ptx_builder *b, size_t n, const struct ptx_operand *elem)
{
    struct ptx_operand o = operand(PTX_O_VEC);
    o.elem = copy(b->module->arena, n, elem);
    o.nelem = (uint32_t)n;
    return o;
}

struct ptx_operand ptx_tensor(struct ptx_builder *b, int32_t map, size_t n,
                              const struct ptx_operand *coordinate)
{
    struct ptx_operand o = ptx_mem(map, 0);
    o.elem = copy(b->module->arena, n, coordinate);
    o.nelem = (uint32_t)n;
    return o;
}

/* What a mnemonic with so many operands was matched to. Code has a few dozen different ones,
 * thousands of times. */
struct ptx_form {
    const char *mnemonic; /* NULL: none yet */
    size_t n;
    struct ptx_inst in;
};
enum { FORMS = 1024, PROBES = 4 };

static struct ptx_inst match(struct ptx_module *m, const char *mnemonic, size_t n)
{
    struct ptx_word words[PTX_MAX_WORDS];
    struct ptx_spelling found;
    size_t nword = ptx_split(mnemonic, strlen(mnemonic), words), least, most;
    if (nword == 0 || !ptx_match(words, nword, n, &found))
        INTERNAL_ERROR("no such instruction: %s", mnemonic);
    struct ptx_inst in = {.op = found.op, .noperand = (uint8_t)n};
    ptx_set_words(m, &in, &found.words);
    ptx_operand_range(&in, &least, &most);
    if (n < least || n > most)
        INTERNAL_ERROR("wrong number of operands: %s", mnemonic);
    return in;
}

const struct ptx_inst *ptx_form(struct ptx_module *m, const char *mnemonic, size_t n)
{
    uint32_t h = (uint32_t)n;
    for (const char *c = mnemonic; *c; c++)
        h = (h ^ (unsigned char)*c) * 16777619u;
    if (!m->form)
        m->form = ARENA_ARRAY(m->arena, FORMS, struct ptx_form);
    h ^= h >> 16;
    struct ptx_form *f = NULL;
    for (uint32_t i = 0; i < PROBES; i++) {
        f = &m->form[(h + i) % FORMS];
        if (!f->mnemonic)
            break;
        if (f->n == n && strcmp(f->mnemonic, mnemonic) == 0)
            return &f->in;
    }
    *f = (struct ptx_form){arena_strdup(m->arena, mnemonic), n, match(m, mnemonic, n)};
    return &f->in;
}

void ptx_emit_form(struct ptx_builder *b, int32_t guard, bool guard_neg,
                   const struct ptx_inst *form, const struct ptx_operand *operands)
{
    struct ptx_inst in = *form;
    in.guard = guard;
    in.guard_neg = guard_neg;
    in.operand = copy(b->module->arena, in.noperand, operands);
    /* A { } group that the caller uses twice becomes two: ptx_finish() renumbers each in its
     * place. */
    for (size_t i = 0; i < in.noperand; i++)
        if (operands[i].nelem)
            in.operand[i].elem = copy(b->module->arena, operands[i].nelem, operands[i].elem);
    item_new(b, PTX_I_INST)->inst = in;
}

void ptx_emit(struct ptx_builder *b, int32_t guard, bool guard_neg, const char *mnemonic, size_t n,
              const struct ptx_operand *operands)
{
    ptx_emit_form(b, guard, guard_neg, ptx_form(b->module, mnemonic, n), operands);
}

/* ---- declarations ---------------------------------------------------------------------------- */

/* Of a register that ptx_reg_new() made. */
static unsigned family_of_reg(const struct ptx_reg *r)
{
    return r->type == PTX_B16 && r->name[1] == 'h' ? 2 : family_of(r->type);
}

/* The numbers 0, 1 ... as text, one after the other. */
struct counter {
    char digit[10];
    size_t n;
};

static void count_on(struct counter *c)
{
    size_t i = c->n;
    while (i > 0 && c->digit[i - 1] == '9')
        c->digit[--i] = '0';
    if (i > 0) {
        c->digit[i - 1]++;
        return;
    }
    c->digit[0] = '1'; /* 999: 1000 */
    c->digit[c->n++] = '0';
}

/* The names of a family's registers: "%r0", "%r1" ... */
static void name_registers(struct arena *a, const char *prefix, struct ptx_reg *regs, uint32_t n)
{
    struct counter c = {.digit = "0", .n = 1};
    const size_t length = strlen(prefix), most = length + sizeof c.digit + 1;
    enum { FEW = 256 }; /* with room for as many at a time, of which the next has the rest */
    char *at = NULL, *end = NULL;
    for (uint32_t i = 0; i < n; i++) {
        if ((size_t)(end - at) < most) {
            at = arena_alloc(a, FEW * most);
            end = at + FEW * most;
        }
        regs[i].name = at;
        memcpy(at, prefix, length);
        memcpy(at + length, c.digit, c.n);
        at += length + c.n + 1; /* what the arena gives is zero */
        count_on(&c);
    }
}

static void renumber_elements(struct ptx_operand *o, const int32_t *to);

static inline void renumber(struct ptx_operand *o, const int32_t *to)
{
    if (o->reg >= 0)
        o->reg = to[o->reg];
    if (o->reg2 >= 0)
        o->reg2 = to[o->reg2];
    if (o->nelem)
        renumber_elements(o, to);
}

static void renumber_elements(struct ptx_operand *o, const int32_t *to)
{
    for (uint32_t i = 0; i < o->nelem; i++)
        renumber(&o->elem[i], to);
}

/* The registers of one family next to each other, as the ranges that declare them want; operands
 * follow. */
static size_t group_registers(struct ptx_module *m, struct ptx_func *f, uint32_t count[NFAMILY])
{
    struct ptx_reg *sorted = ARENA_ARRAY(m->arena, f->regs.n, struct ptx_reg);
    int32_t *to = ARENA_ARRAY(m->arena, f->regs.n, int32_t);
    uint32_t next[NFAMILY], decl[NFAMILY], n = 0, ndecl = 0;
    for (size_t r = 0; r < f->regs.n; r++)
        count[family_of_reg(&f->regs.v[r])]++;
    for (unsigned k = 0; k < NFAMILY; k++) {
        next[k] = n;
        decl[k] = ndecl;
        n += count[k];
        ndecl += count[k] > 0;
    }
    for (size_t r = 0; r < f->regs.n; r++) {
        const unsigned k = family_of_reg(&f->regs.v[r]);
        to[r] = (int32_t)next[k]++;
        sorted[to[r]] = f->regs.v[r];
        sorted[to[r]].decl = decl[k];
    }
    for (unsigned k = 0; k < NFAMILY; k++)
        name_registers(m->arena, families[k].prefix, sorted + next[k] - count[k], count[k]);
    f->regs.v = sorted;
    f->regs.cap = f->regs.n;
    for (size_t i = 0; i < f->items.n; i++) {
        struct ptx_inst *in = &f->items.v[i].inst;
        if (f->items.v[i].kind != PTX_I_INST)
            continue;
        if (in->guard >= 0)
            in->guard = to[in->guard];
        for (unsigned k = 0; k < in->noperand; k++)
            renumber(&in->operand[k], to);
    }
    return ndecl;
}

void ptx_finish(struct ptx_builder *b)
{
    struct ptx_func *f = b->func;
    uint32_t count[NFAMILY] = {0}, first = 0;
    size_t ndecl = group_registers(b->module, f, count), old = f->items.n;
    for (size_t i = 0; i < f->labels.n; i++) {
        if (f->labels.v[i].item == UINT32_MAX)
            INTERNAL_ERROR("label never placed: %s", f->labels.v[i].name);
        f->labels.v[i].item += (uint32_t)ndecl;
    }
    for (size_t i = 0; i < ndecl; i++)
        VEC_PUSH(b->module->arena, &f->items);
    memmove(f->items.v + ndecl, f->items.v, old * sizeof *f->items.v);
    struct ptx_item *it = f->items.v;
    for (unsigned k = 0; k < NFAMILY; k++) {
        if (!count[k])
            continue;
        *it++ = (struct ptx_item){.kind = PTX_I_REG,
                                  .first_reg = first,
                                  .nreg = count[k],
                                  .reg_range = true,
                                  .type = families[k].type,
                                  .text = families[k].prefix};
        first += count[k];
    }
}
