/* The forms: isa.def's rows multiplied out. */
#include <config.h>

#include "opcodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/table.h"

/* ---- what others test ------------------------------------------------------------------------ */

/* Instructions whose effect is no value that a thread gets from its operands, and the unit test
 * that has them; NULL: they are hints, without any effect that can be seen; "": the simulator does
 * not have them. */
static const struct opc_elsewhere elsewhere[] = {
    {"mma", "sim_mma"},
    {"wmma", "sim_wmma"},
    {"wgmma", "sim_wgmma"},
    {"setmaxnreg", "sim_wgmma_async"},
    {"cp", "sim_bulk"},
    {"mbarrier", "sim_mbarrier"},
    {"tensormap", "sim_tensor_ops"},
    {"mapa", "sim_bulk"},
    {"getctarank", "sim_threads"},
    {"bra", "sim_flow"},
    {"brx", "sim_flow"},
    {"call", "sim_calls"},
    {"ret", "sim_calls"},
    {"exit", "sim_threads"},
    {"trap", "sim_faults"},
    {"nanosleep", "sim_threads"},
    {"bar", "sim_threads"},
    {"barrier", "sim_threads"},
    {"membar", "sim_threads"},
    {"fence", "sim_bulk"},
    {"cvta", "sim_calls"},
    {"alloca", ""},
    {"stacksave", ""},
    {"stackrestore", ""},
    {"griddepcontrol", NULL},
    {"brkpt", NULL},
    {"pmevent", NULL},
    {"prefetch", NULL},
    {"prefetchu", NULL},
    {"applypriority", "sim_bulk"},
    {"discard", NULL},
    {"createpolicy", NULL},
};

const struct opc_elsewhere *opc_elsewhere(size_t i)
{
    return i < sizeof elsewhere / sizeof *elsewhere ? &elsewhere[i] : NULL;
}

static bool tested_elsewhere(enum ptx_op op)
{
    if (op == PTX_OP_ST_ASYNC || op == PTX_OP_RED_ASYNC || op == PTX_OP_RED_ASYNC_ADD64 ||
        op == PTX_OP_RED_ASYNC_BITS || op == PTX_OP_RED_ASYNC_INC)
        return true; /* sim_bulk */
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        if (strcmp(elsewhere[i].name, ptx_op_name(op)) == 0)
            return true;
    return false;
}

/* ---- rows multiplied out --------------------------------------------------------------------- */

struct expansion {
    struct opc_forms *forms;
    enum ptx_op op;
    const struct ptx_row *row;
    const struct ptx_alt *alt[PTX_MAX_WORDS]; /* NULL: left out */
    struct diags *diags;
    unsigned made;
};

/* Classes that say where and in what order an access is made, not what it gives. */
static bool is_neutral(unsigned cls)
{
    return cls == PTX_MC_ORDER || cls == PTX_MC_SCOPE || cls == PTX_MC_CACHE ||
           cls == PTX_MC_EVICT || cls == PTX_MC_EVICT2 || cls == PTX_MC_PREFETCH ||
           cls == PTX_MC_HINT;
}

/* The plainest choice for a slot. */
static const struct ptx_alt *base_of(const struct ptx_slot *s)
{
    for (unsigned i = 0; s->cls == PTX_MC_SPACE && i < s->nalt; i++)
        if (s->alt[i].mod == PTX_GLOBAL)
            return &s->alt[i];
    for (unsigned i = 0; s->cls == PTX_MC_TYPE && i < s->nalt; i++)
        if (ptx_type_bits(s->alt[i].mod) == 32)
            return &s->alt[i];
    return s->optional ? NULL : s->alt;
}

/* Words that change nothing in a value, and other names of a state space, come up once each;
 * vectors of each type in global memory only. */
static bool is_redundant(const struct expansion *x)
{
    unsigned odd = 0, other = 0, where = 0;
    for (unsigned i = 0; i < x->row->nslot; i++) {
        const struct ptx_slot *s = &x->row->slot[i];
        const bool plain = x->alt[i] == base_of(s);
        const bool alias = s->cls == PTX_MC_SPACE && x->alt[i] &&
                           ptx_space(x->alt[i]->mod) != x->alt[i]->mod;
        odd += (is_neutral(s->cls) || alias) && !plain;
        other += !is_neutral(s->cls) && !alias && !plain;
        where += (s->cls == PTX_MC_SPACE || s->cls == PTX_MC_VECTOR || s->cls == PTX_MC_TYPE) &&
                 !plain;
    }
    return odd > 1 || (odd && other) || where == 3;
}

static unsigned most(unsigned a, unsigned b)
{
    return a > b ? a : b;
}

/* Reads and checks the form's kernel as a module of its own. */
static bool is_valid(struct expansion *x, struct opc_form *f)
{
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    const char *text = opc_module(a, &(const struct opc_form *){f}, 1, NULL, false);
    struct ptx_module *m = ptx_parse(a, source_new(a, f->name, text, strlen(text)), d);
    const bool fine = m && ptx_validate(m, d);
    if (!m && x->diags) {
        struct buf b = buf_in(a);
        diags_format(d, "opcodes", false, &b);
        fputs(buf_text(&b), stderr);
    }
    arena_free(a);
    return fine;
}

static void add(struct expansion *x, const char *mnemonic, const struct opc_form *proto)
{
    struct arena *a = x->forms->arena;
    for (unsigned variant = 0;; variant++) {
        struct opc_form f = *proto;
        struct opc_writer w = {.form = &f,
                               .arena = a,
                               .decl = buf_in(a),
                               .load = buf_in(a),
                               .body = buf_in(a),
                               .store = buf_in(a)};
        f.name = mnemonic;
        if (!(opc_is_memory(x->op) ? opc_write_memory : opc_write)(&w, mnemonic, variant))
            return;
        f.text = arena_printf(a, "%s%s%s%s", buf_text(&w.decl), buf_text(&w.load),
                              buf_text(&w.body), buf_text(&w.store));
        if (!is_valid(x, &f))
            continue;
        *VEC_PUSH(a, &x->forms->list) = f;
        x->made++;
    }
}

static bool is_of_warp(const struct ptx_inst *in)
{
    const char *name = ptx_op_name(in->op);
    return opc_takes_members(in->op) || in->op == PTX_OP_ACTIVEMASK || strstr(name, "matrix");
}

static bool is_approximate(const struct ptx_inst *in)
{
    return in->mod[PTX_MC_ROUND] == PTX_APPROX || in->mod[PTX_MC_ROUND] == PTX_FULL;
}

static void finish(struct expansion *x)
{
    struct opc_form f = {.version = x->row->min_ptx, .sm = x->row->min_sm};
    struct buf b = buf_in(x->forms->arena);
    struct ptx_word words[PTX_MAX_WORDS];
    if (is_redundant(x))
        return;
    buf_puts(&b, x->row->name);
    for (unsigned i = 0; i < x->row->nslot; i++)
        if (x->alt[i]) {
            buf_printf(&b, ".%s", ptx_word_text(x->alt[i]->word));
            f.version = most(f.version, x->alt[i]->min_ptx);
            f.sm = most(f.sm, x->alt[i]->min_sm);
        }
    const char *mnemonic = buf_text(&b);
    const size_t n = ptx_split(mnemonic, strlen(mnemonic), words);
    struct ptx_spelling *const found = ARENA_NEW(x->forms->arena, struct ptx_spelling);
    if (f.sm % 1000 > 90 || !ptx_match(words, n, PTX_ANY_COUNT, found) || found->op != x->op)
        return;
    f.inst = ptx_as_spelled(found);
    f.approx = is_approximate(&f.inst);
    f.warp = is_of_warp(&f.inst);
    add(x, mnemonic, &f);
}

static void expand(struct expansion *x, unsigned at)
{
    if (at == x->row->nslot) {
        finish(x);
        return;
    }
    const struct ptx_slot *s = &x->row->slot[at];
    if (s->optional) {
        x->alt[at] = NULL;
        expand(x, at + 1);
    }
    for (unsigned i = 0; i < s->nalt; i++) {
        x->alt[at] = &s->alt[i];
        expand(x, at + 1);
    }
}

void opc_list_forms(struct arena *a, struct opc_forms *forms)
{
    *forms = (struct opc_forms){.arena = a};
    for (unsigned op = 0; op < PTX_OP_COUNT; op++) {
        struct expansion x = {
            .forms = forms, .op = (enum ptx_op)op, .row = ptx_row((enum ptx_op)op)};
        if (tested_elsewhere(x.op) || x.row->min_sm % 1000 > 90)
            continue;
        x.diags = getenv("OPC_DEBUG") ? diags_new(a) : NULL;
        expand(&x, 0);
        if (!x.made)
            *VEC_PUSH(a, &forms->missing) = arena_printf(a, "%s (%s)", x.row->name, x.row->pattern);
    }
}

/* ---- modules --------------------------------------------------------------------------------- */

unsigned char opc_table_byte(unsigned i)
{
    return (unsigned char)(i * 167 + 0x95);
}

static void print_table(struct buf *b)
{
    buf_printf(b, ".const .align 16 .b8 table[%d] = {", OPC_TABLE);
    for (unsigned i = 0; i < OPC_TABLE; i++)
        buf_printf(b, "%s%u", i ? ", " : "", opc_table_byte(i));
    buf_puts(b, "};\n");
}

static void print_entry(struct buf *b, const struct opc_form *f, size_t number, bool partial)
{
    buf_printf(b, ".visible .entry f%zu(.param .u64 in, .param .u64 out%s%s)\n{ // %s\n", number,
               f->param ? ", .param .align 16 .b8 tab[64]" : "",
               partial ? ", .param .u32 without" : "", f->name);
    if (partial)
        buf_puts(b, "    .reg .pred %leave;\n    .reg .b32 %odd, %without;\n"
                    "    mov.u32 %odd, %tid.x;\n    and.b32 %odd, %odd, 1;\n"
                    "    ld.param.u32 %without, [without];\n"
                    "    setp.eq.u32 %leave, %odd, %without;\n    @%leave ret;\n");
    buf_printf(b, "%s    ret;\n}\n", f->text);
}

const char *opc_module(struct arena *a, const struct opc_form *const *f, size_t n,
                       const char *target, bool partial)
{
    struct buf b = buf_in(a);
    unsigned version = 80, sm = 75;
    bool only_a = false;
    for (size_t i = 0; i < n; i++) {
        version = most(version, f[i]->version);
        sm = most(sm, f[i]->sm % 1000);
        only_a |= f[i]->sm >= 1000;
    }
    const char *least = arena_printf(a, "sm_%u%s", sm, only_a ? "a" : "");
    buf_printf(&b, ".version %u.%u\n.target %s\n.address_size 64\n", version / 10, version % 10,
               target ? target : least);
    print_table(&b);
    for (size_t i = 0; i < n; i++)
        print_entry(&b, f[i], i, partial);
    return buf_text(&b);
}
