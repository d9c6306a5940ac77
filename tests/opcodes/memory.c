/* The kernels of loads, stores, atomics and of matrices in shared memory. Each thread has 16 bytes
 * to itself: of the input, of the result, of shared or of local memory. */
#include <config.h>

#include "opcodes.h"

#include <string.h>

#include "ptx/table.h"

enum { SLOT = 16 };

bool opc_is_memory(enum ptx_op op)
{
    const char *name = ptx_op_name(op);
    return strcmp(name, "ld") == 0 || strcmp(name, "ldu") == 0 || strcmp(name, "st") == 0 ||
           strcmp(name, "atom") == 0 || strcmp(name, "red") == 0 || strcmp(name, "ldmatrix") == 0 ||
           strcmp(name, "stmatrix") == 0 || strcmp(name, "isspacep") == 0;
}

/* The manual has .v8 of loads and stores from sm_100 on. ptxas 13.0 takes bytes and halves before,
 * but its stores write the first element alone, and the driver's compiler crashes: there are no
 * forms of it. */
static unsigned elements(const struct ptx_inst *in)
{
    switch (in->mod[PTX_MC_VECTOR]) {
    case PTX_V2: return 2;
    case PTX_V4: return 4;
    case PTX_V8: return 8;
    default: return 1;
    }
}

/* Declares the memory of that state space and leaves the thread's part of it in %m. */
static void place(struct opc_writer *w, enum ptx_mod space, const char *global)
{
    switch (space) {
    case PTX_SHARED:
        buf_printf(&w->decl, "    .shared .align 16 .b8 sh[%d];\n", OPC_BLOCK * SLOT);
        buf_printf(&w->load, "    mov.u64 %%m, sh;\n    mad.wide.u32 %%m, %%y, %d, %%m;\n", SLOT);
        break;
    case PTX_LOCAL:
        buf_printf(&w->decl, "    .local .align 16 .b8 lo[%d];\n", 2 * SLOT);
        buf_printf(
            &w->load,
            "    mov.u64 %%m, lo;\n    and.b32 %%t, %%y, 1;\n    mad.wide.u32 %%m, %%t, %d, %%m;\n",
            SLOT);
        break;
    case PTX_CONST:
        buf_printf(&w->load,
                   "    mov.u64 %%m, table;\n    and.b32 %%t, %%y, 3;\n"
                   "    mad.wide.u32 %%m, %%t, %d, %%m;\n",
                   SLOT);
        break;
    default: buf_printf(&w->load, "    mov.u64 %%m, %s;\n", global);
    }
}

/* Puts two words of the tuple there, or zeros. */
static void set(struct opc_writer *w, const char *space, const char *lo, const char *hi)
{
    buf_printf(&w->load, "    st.%s.v2.b64 [%%m], {%s, %s};\n", space, lo, hi);
}

static void get(struct opc_writer *w, const char *space)
{
    const char *lo = opc_result(w, 64), *hi = opc_result(w, 64);
    buf_printf(&w->body, "    ld.%s.v2.b64 {%s, %s}, [%%m];\n", space, lo, hi);
}

static void open_group(struct buf *b, unsigned n)
{
    if (n > 1)
        buf_puts(b, "{");
}

static void close_group(struct buf *b, unsigned n)
{
    if (n > 1)
        buf_puts(b, "}");
}

static void policy(struct opc_writer *w)
{
    if (!w->form->inst.mod[PTX_MC_HINT])
        return;
    buf_puts(&w->decl, "    .reg .b64 %h;\n");
    buf_puts(&w->load, "    createpolicy.fractional.L2::evict_last.b64 %h;\n");
}

static const char *hint(const struct opc_writer *w)
{
    return w->form->inst.mod[PTX_MC_HINT] ? ", %h" : "";
}

/* Registers of the type's own width; variant 1 and 2: twice and four times that. 0: no such
 * variant. */
static unsigned widened(struct opc_writer *w, const char *mnemonic, unsigned variant)
{
    const enum ptx_mod t = (enum ptx_mod)w->form->inst.type[0];
    const unsigned own = opc_reg_bits(t);
    if (variant && t == PTX_F32 && strcmp(ptx_op_name(w->form->inst.op), "st") == 0)
        return 0; /* ptxas takes the register for an integer and converts it */
    if (own == 128 || own << variant > 64 || (variant && elements(&w->form->inst) > 1))
        return 0;
    if (variant)
        w->form->name = arena_printf(w->arena, "%s@%u", mnemonic, own << variant);
    return own << variant;
}

/* ---- loads ----------------------------------------------------------------------------------- */

/* One load of each 16 bytes of the parameter; else one. */
static void one_load(struct opc_writer *w, const char *mnemonic, unsigned bits, const char *at)
{
    const unsigned n = elements(&w->form->inst);
    struct buf d = buf_in(w->arena);
    open_group(&d, n);
    for (unsigned i = 0; i < n; i++)
        buf_printf(&d, "%s%s", i ? ", " : "", opc_result(w, bits));
    close_group(&d, n);
    buf_printf(&w->body, "    %s %s, [%s]%s;\n", mnemonic, buf_text(&d), at, hint(w));
}

static bool load(struct opc_writer *w, const char *mnemonic, unsigned variant)
{
    const struct ptx_inst *in = &w->form->inst;
    const enum ptx_mod whole = (enum ptx_mod)in->mod[PTX_MC_SPACE], space = ptx_space(whole);
    const bool b128 = in->type[0] == PTX_B128;
    const unsigned bits = b128 && !variant ? 128 : widened(w, mnemonic, variant);
    if (!bits || whole == PTX_PARAM_FUNC || elements(in) == 8)
        return false;
    policy(w);
    if (space == PTX_PARAM) {
        w->form->param = true;
        for (unsigned i = 0; i < (b128 ? 1 : OPC_TABLE / SLOT); i++)
            one_load(w, mnemonic, bits, arena_printf(w->arena, "tab+%u", i * SLOT));
        return !b128;
    }
    place(w, space, "%i");
    if (space == PTX_SHARED || space == PTX_LOCAL) {
        const char *lo = opc_source(w, OPC_VALUE, PTX_B64, 64);
        set(w, space == PTX_SHARED ? "shared" : "local", lo, opc_source(w, OPC_VALUE, PTX_B64, 64));
    } else {
        for (unsigned i = 0; i < 2; i++)
            w->form->src[w->form->nsrc++] = (struct opc_source){OPC_VALUE, PTX_B64};
    }
    if (!b128) {
        one_load(w, mnemonic, bits, "%m");
        return true;
    }
    if (elements(in) > 1)
        return false;
    buf_puts(&w->decl, "    .reg .b128 %q;\n");
    buf_printf(&w->body, "    %s %%q, [%%m]%s;\n", mnemonic, hint(w));
    const char *lo = opc_result(w, 64);
    buf_printf(&w->body, "    mov.b128 {%s, %s}, %%q;\n", lo, opc_result(w, 64));
    return true;
}

/* ---- stores ---------------------------------------------------------------------------------- */

/* The thread's part of the memory written: the result itself, or what is copied there
 * afterwards. */
static const char *destination(struct opc_writer *w)
{
    const enum ptx_mod space = ptx_space((enum ptx_mod)w->form->inst.mod[PTX_MC_SPACE]);
    place(w, space, "%o");
    if (space == PTX_SHARED || space == PTX_LOCAL)
        return space == PTX_SHARED ? "shared" : "local";
    w->form->nres += 2;
    return NULL;
}

static const char *values(struct opc_writer *w, unsigned bits)
{
    const unsigned n = elements(&w->form->inst);
    struct buf s = buf_in(w->arena);
    open_group(&s, n);
    for (unsigned i = 0; i < n; i++)
        buf_printf(&s, "%s%s", i ? ", " : "",
                   opc_source(w, OPC_VALUE,
                              bits > ptx_type_bits(w->form->inst.type[0])
                                  ? PTX_B64
                                  : (enum ptx_mod)w->form->inst.type[0],
                              bits));
    close_group(&s, n);
    return buf_text(&s);
}

static bool store(struct opc_writer *w, const char *mnemonic, unsigned variant)
{
    const struct ptx_inst *in = &w->form->inst;
    const bool b128 = in->type[0] == PTX_B128;
    const unsigned bits = b128 && !variant ? 128 : widened(w, mnemonic, variant);
    if (!bits || elements(in) == 8 || ptx_space((enum ptx_mod)in->mod[PTX_MC_SPACE]) == PTX_PARAM ||
        (b128 && elements(in) > 1))
        return false;
    policy(w);
    const char *space = destination(w), *what;
    if (space)
        set(w, space, "0", "0");
    if (b128) {
        buf_puts(&w->decl, "    .reg .b128 %q;\n");
        const char *lo = opc_source(w, OPC_VALUE, PTX_B64, 64);
        buf_printf(&w->body, "    mov.b128 %%q, {%s, %s};\n", lo,
                   opc_source(w, OPC_VALUE, PTX_B64, 64));
        what = "%q";
    } else {
        what = values(w, bits);
    }
    buf_printf(&w->body, "    %s [%%m], %s%s;\n", mnemonic, what, hint(w));
    if (space)
        get(w, space);
    return true;
}

/* ---- atomics --------------------------------------------------------------------------------- */

/* A 128-bit register with the next two words of the tuple. */
static const char *wide_source(struct opc_writer *w, enum opc_role role, const char *name)
{
    const char *lo = opc_source(w, role, PTX_B64, 64), *hi = opc_source(w, role, PTX_B64, 64);
    buf_printf(&w->decl, "    .reg .b128 %s;\n", name);
    buf_printf(&w->load, "    mov.b128 %s, {%s, %s};\n", name, lo, hi);
    return name;
}

/* exch and cas of 128 bits */
static bool wide_atomic(struct opc_writer *w, const char *mnemonic)
{
    const bool cas = w->form->inst.op == PTX_OP_ATOM_CAS;
    policy(w);
    const char *space = destination(w);
    const char *lo = opc_source(w, OPC_VALUE, PTX_B64, 64);
    set(w, space ? space : "global", lo, opc_source(w, OPC_VALUE, PTX_B64, 64));
    const char *compare = cas ? wide_source(w, OPC_SAME, "%qc") : "";
    const char *b = wide_source(w, OPC_VALUE, "%qb");
    buf_puts(&w->decl, "    .reg .b128 %q;\n");
    buf_printf(&w->body, "    %s %%q, [%%m], %s%s%s%s;\n", mnemonic, compare, cas ? ", " : "", b,
               hint(w));
    lo = opc_result(w, 64);
    buf_printf(&w->body, "    mov.b128 {%s, %s}, %%q;\n", lo, opc_result(w, 64));
    if (space)
        get(w, space);
    return true;
}

static bool atomic(struct opc_writer *w, const char *mnemonic, unsigned variant)
{
    const struct ptx_inst *in = &w->form->inst;
    const enum ptx_mod t = (enum ptx_mod)in->type[0];
    const unsigned n = elements(in), bits = ptx_type_bits(t);
    const bool old = strcmp(ptx_op_name(in->op), "atom") == 0, b128 = t == PTX_B128;
    struct buf d = buf_in(w->arena);
    if (variant)
        return false;
    if (b128)
        return wide_atomic(w, mnemonic);
    policy(w);
    const char *space = destination(w);
    for (unsigned i = 0; i < n; i++) {
        const char *s = opc_source(w, OPC_VALUE, t, bits);
        if (i == 0 && space)
            set(w, space, "0", "0");
        buf_printf(&w->load, "    st.%s.b%u [%%m+%u], %s;\n", space ? space : "global", bits,
                   i * bits / 8, s);
    }
    open_group(&d, n);
    for (unsigned i = 0; old && i < n; i++)
        buf_printf(&d, "%s%s", i ? ", " : "", opc_result(w, bits));
    close_group(&d, n);
    const bool cas = in->op == PTX_OP_ATOM_CAS;
    const char *compare = cas ? opc_source(w, OPC_SAME, t, bits) : "";
    const char *b = values(w, bits);
    buf_printf(&w->body, "    %s %s%s[%%m], %s%s%s%s;\n", mnemonic, old ? buf_text(&d) : "",
               old ? ", " : "", compare, cas ? ", " : "", b, hint(w));
    if (space)
        get(w, space);
    return true;
}

/* ---- matrices in shared memory --------------------------------------------------------------- */

static bool matrix(struct opc_writer *w, const char *mnemonic, unsigned variant)
{
    const struct ptx_inst *in = &w->form->inst;
    const bool loads = strcmp(ptx_op_name(in->op), "ldmatrix") == 0;
    const struct ptx_spec *s = &ptx_row(in->op)->spec[loads ? 0 : 1];
    struct buf g = buf_in(w->arena);
    if (variant)
        return false;
    place(w, PTX_SHARED, NULL);
    const char *lo = loads ? opc_source(w, OPC_VALUE, PTX_B64, 64) : "0";
    set(w, "shared", lo, loads ? opc_source(w, OPC_VALUE, PTX_B64, 64) : "0");
    for (unsigned i = 0; i < s->group; i++)
        buf_printf(&g, "%s%s", i ? ", " : "{",
                   loads ? opc_result(w, 32) : opc_source(w, OPC_VALUE, PTX_B32, 32));
    buf_puts(&g, "}");
    /* The rows are in another order than the threads. */
    buf_puts(&w->decl, "    .reg .b64 %r;\n");
    buf_printf(&w->load,
               "    bar.warp.sync -1;\n    mad.lo.u32 %%t, %%y, 5, 3;\n    and.b32 %%t, %%t, 31;\n"
               "    and.b32 %%x, %%y, -32;\n    add.u32 %%t, %%t, %%x;\n    mov.u64 %%r, sh;\n"
               "    mad.wide.u32 %%r, %%t, %d, %%r;\n",
               SLOT);
    if (!in->mod[PTX_MC_SPACE]) /* a generic address */
        buf_puts(&w->load, "    cvta.shared.u64 %r, %r;\n");
    if (loads) {
        buf_printf(&w->body, "    %s %s, [%%r];\n", mnemonic, buf_text(&g));
        return true;
    }
    buf_printf(&w->body, "    %s [%%r], %s;\n    bar.warp.sync -1;\n", mnemonic, buf_text(&g));
    get(w, "shared");
    return true;
}

/* ---- state spaces ---------------------------------------------------------------------------- */

/* Of generic addresses of the input, of shared and of local memory. */
static bool space_test(struct opc_writer *w, const char *mnemonic, unsigned variant)
{
    const enum ptx_mod space = ptx_space((enum ptx_mod)w->form->inst.mod[PTX_MC_SPACE]);
    static const struct {
        enum ptx_mod space;
        const char *cvta;
    } where[] = {{PTX_GLOBAL, ""},
                 {PTX_SHARED, "    cvta.shared.u64 %m, %m;\n"},
                 {PTX_LOCAL, "    cvta.local.u64 %m, %m;\n"}};
    /* addresses of constants and parameters: no compiler asks for them */
    if (variant || space == PTX_CONST || space == PTX_PARAM)
        return false;
    opc_source(w, OPC_VALUE, PTX_B32, 32);
    for (unsigned i = 0; i < 3; i++) {
        place(w, where[i].space, "%i");
        buf_puts(&w->load, where[i].cvta);
        buf_printf(&w->load, "    %s %s, %%m;\n", mnemonic, opc_result(w, 0));
    }
    return true;
}

/* ---- all ------------------------------------------------------------------------------------- */

bool opc_write_memory(struct opc_writer *w, const char *mnemonic, unsigned variant)
{
    const char *name = ptx_op_name(w->form->inst.op);
    bool more;
    if (*name == 'i')
        more = space_test(w, mnemonic, variant);
    else if (strncmp(name, "ldm", 3) == 0 || strncmp(name, "stm", 3) == 0)
        more = matrix(w, mnemonic, variant);
    else if (strncmp(name, "ld", 2) == 0)
        more = load(w, mnemonic, variant);
    else if (strcmp(name, "st") == 0)
        more = store(w, mnemonic, variant);
    else
        more = atomic(w, mnemonic, variant);
    opc_prologue(w);
    return more;
}
