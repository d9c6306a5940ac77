/* Local arrays and tables of constants, and the places of elements in memory. */
#include <config.h>

#include "lower/cg/cg.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { ALIGNMENT = 16, MOST_SUBSCRIPTS = 9 };

/* ---- tables ---------------------------------------------------------------------------------- */

static struct cg_val table_value(struct cg *g, const struct cg_binding *b, uint64_t i)
{
    const struct lang_symbol *sym = b->array;
    const struct lang_expr *e = i < b->table->nlist ? b->table->list[i] : NULL;
    if (e)
        return cg_expr(g, e);
    return dtype_is_float(sym->type) ? cg_float(g, sym->type, 0) : cg_int(sym->type, 0);
}

static void print_value(struct cg *g, struct cg_val v, struct buf *out)
{
    (void)g;
    if (v.op.kind == PTX_O_F32)
        buf_printf(out, "0f%08X", (unsigned)v.op.bits);
    else if (v.op.kind == PTX_O_F64)
        buf_printf(out, "0d%016llX", (unsigned long long)v.op.bits);
    else if (v.type == DT_U64)
        buf_printf(out, "%lluU", (unsigned long long)v.op.bits);
    else
        buf_printf(out, "%lld", (long long)v.op.bits);
}

static struct ptx_var *table_variable(struct cg *g, struct cg_binding *b)
{
    const struct lang_symbol *sym = b->array;
    struct cg_variable *known = cg_variable_of(g, sym);
    uint64_t count = 1;
    if (known)
        return known->var;
    struct buf init = buf_in(g->module->arena);
    lang_array_count(sym, &count);
    buf_putc(&init, '{');
    /* one at least, of the table's type: PTX has no empty list, and no integer for a float */
    for (uint64_t i = 0; i == 0 || i < b->table->nlist; i++) {
        buf_puts(&init, i ? ", " : "");
        print_value(g, table_value(g, b, i), &init);
    }
    buf_putc(&init, '}');
    struct ptx_var *v = ARENA_NEW(g->module->arena, struct ptx_var);
    *v = (struct ptx_var){
        .name = arena_printf(g->module->arena, "%s$%s", g->spec->name, cg_variable_name(g, sym)),
        .space = PTX_CONST,
        .type = cg_memory_type(sym->type),
        .align = ALIGNMENT,
        .is_array = true,
        .count = count,
        .linkage = "",
        .init = buf_text(&init),
        .span = sym->span};
    cg_module_variable(g, v);
    *VEC_PUSH(g->a, &g->variables) = (struct cg_variable){.sym = sym, .space = CG_CONST, .var = v};
    return v;
}

static bool is_table(const struct lang_stmt *s)
{
    if (!s->sym->is_const || s->sym->lanes)
        return false;
    for (uint32_t i = 0; i < s->nlist; i++)
        if (s->list[i] && s->list[i]->kind != E_INT && s->list[i]->kind != E_FLOAT &&
            s->list[i]->kind != E_BOOL)
            return false;
    return true;
}

/* ---- local arrays ---------------------------------------------------------------------------- */

static struct ptx_var *local_variable(struct cg *g, const struct lang_symbol *sym)
{
    struct cg_variable *known = cg_variable_of(g, sym);
    if (known)
        return known->var;
    struct ptx_var *v = cg_declare_variable(g, PTX_LOCAL, sym);
    *VEC_PUSH(g->a, &g->variables) = (struct cg_variable){.sym = sym, .space = CG_LOCAL, .var = v};
    return v;
}

static bool is_indexed(const struct cg *g, const struct lang_symbol *sym)
{
    for (size_t i = 0; i < g->indexed.n; i++)
        if (g->indexed.v[i] == sym)
            return true;
    return false;
}

static struct cg_val zero(struct cg *g, enum dtype t)
{
    return dtype_is_float(t) ? cg_float(g, t, 0) : cg_int(t, 0);
}

/* The value that the list gives element i: lanes of it in a row of an array of vectors. */
static struct cg_val listed(struct cg *g, const struct lang_stmt *s, uint64_t i)
{
    const struct lang_symbol *sym = s->sym;
    const struct lang_expr *e = i < s->nlist ? s->list[i] : NULL;
    if (e)
        return cg_convert(g, cg_expr(g, e), sym->type);
    struct cg_val lane[16];
    for (unsigned k = 0; k < sym->lanes; k++)
        lane[k] = zero(g, sym->type);
    return sym->lanes ? cg_vector(g, sym->type, sym->lanes, lane) : zero(g, sym->type);
}

static void fill_cells(struct cg *g, struct cg_cell *cell, const struct lang_stmt *s,
                       uint64_t count)
{
    unsigned lanes = s->sym->lanes;
    for (uint64_t i = 0; i < count; i++) {
        struct cg_val v = cg_freeze(g, listed(g, s, i));
        for (unsigned k = 0; k < (lanes ? lanes : 1); k++) {
            struct cg_cell *c = &cell[i * (lanes ? lanes : 1) + k];
            c->val = lanes ? v.lane[k] : v;
            c->is_set = true;
        }
    }
}

/* The elements from i on are zero: words of 16 bytes, in a loop where there are many. */
static void clear(struct cg *g, const struct ptx_var *var, uint64_t from, uint64_t to)
{
    struct ptx_operand zeros[4] = {ptx_imm(0), ptx_imm(0), ptx_imm(0), ptx_imm(0)};
    for (unsigned i = 0; i < 4; i++)
        zeros[i] = ptx_r(cg_reg(g, cg_int(DT_U32, 0)));
    for (; from < to && (from % 16 || to - from < 16); from++)
        PTX(&g->b, "st.local.u8", ptx_mem_var(var, (int64_t)from), zeros[0]);
    uint64_t end = to / 16 * 16;
    if (end > from && end - from > 32 * 16) {
        int32_t at = cg_new_mutable(g, DT_U32);
        int32_t start = CG(g, PTX_B32, "mov.u32", ptx_sym(var));
        int32_t last = CG(g, PTX_B32, "add.s32", ptx_r(start), ptx_imm((int64_t)end));
        uint32_t head = cg_label(g, "clear");
        PTX(&g->b, "add.s32", ptx_r(at), ptx_r(start), ptx_imm((int64_t)from));
        cg_place(g, head);
        cg_loop_head(g);
        PTX(&g->b, "st.local.v4.b32", ptx_mem(at, 0), ptx_vec(&g->b, 4, zeros));
        CG_ASSIGN(g, at, "add.s32", ptx_r(at), ptx_imm(16));
        int32_t more = CG(g, PTX_PRED, "setp.lt.u32", ptx_r(at), ptx_r(last));
        cg_jump_if(g, more, true, head);
        from = end;
    }
    for (; from < end; from += 16)
        PTX(&g->b, "st.local.v4.b32", ptx_mem_var(var, (int64_t)from), ptx_vec(&g->b, 4, zeros));
    for (; from < to; from++)
        PTX(&g->b, "st.local.u8", ptx_mem_var(var, (int64_t)from), zeros[0]);
}

static void fill_memory(struct cg *g, const struct ptx_var *var, const struct lang_stmt *s,
                        uint64_t count)
{
    unsigned size = cg_element_bytes(s->sym);
    for (uint64_t i = 0; i < s->nlist && !g->failed; i++) {
        struct cg_place_of at = {.space = CG_LOCAL,
                                 .base = -1,
                                 .var = var,
                                 .offset = (int64_t)(i * size),
                                 .nibble = cg_int(DT_U32, 0)};
        struct cg_val v = listed(g, s, i);
        if (v.lanes)
            cg_store_lanes(g, v.type, at, v);
        else
            cg_store_at(g, v.type, at, v);
    }
    clear(g, var, (uint64_t)s->nlist * size, count * size);
}

enum { MOST_CELLS = 1024 };

void cg_declare_array(struct cg *g, const struct lang_stmt *s)
{
    const struct lang_symbol *sym = s->sym;
    uint64_t count = 1;
    if (sym->kind == SYM_SHARED)
        return; /* cg_layout has seen it */
    lang_array_count(sym, &count);
    cg_bind(g, sym, cg_int(DT_U32, 0), false);
    struct cg_binding *b = &g->bindings.v[g->bindings.n - 1];
    b->array = sym;
    if (sym->rank && is_table(s)) {
        b->table = s;
        return;
    }
    uint64_t cells = count * (sym->lanes ? sym->lanes : 1);
    if (sym->rank && (cells > MOST_CELLS || is_indexed(g, sym))) {
        struct ptx_var *var = local_variable(g, sym);
        b->var = var;
        if (s->has_list)
            fill_memory(g, var, s, count);
        return;
    }
    struct cg_cell *cell = b->cell = cg_cells(g, (uint32_t)cells);
    b->ncell = (uint32_t)cells;
    if (s->has_list)
        fill_cells(g, cell, s, count);
}

struct cg_binding *cg_array(struct cg *g, const struct lang_symbol *sym)
{
    struct cg_binding *b = cg_find(g, sym);
    if (b || !sym->table)
        return b;
    cg_bind(g, sym, cg_int(DT_U32, 0), false);
    b = &g->bindings.v[g->bindings.n - 1];
    b->array = sym;
    b->table = sym->table;
    return b;
}

/* ---- elements -------------------------------------------------------------------------------- */

/* A u32 index as a value and a constant, which an address takes for nothing. The sum is meant
 * modulo 2^32. */
struct split {
    struct cg_val v; /* u32 */
    uint32_t add;
};

static struct split split_value(struct cg *g, struct cg_val x)
{
    int64_t i;
    struct split s = {.v = cg_convert(g, x, DT_U32)};
    if (cg_is_const(s.v, &i)) {
        s.add = (uint32_t)i;
        s.v = cg_int(DT_U32, 0);
    } else {
        int32_t base;
        int64_t add;
        while (cg_is_sum(g, s.v.op.reg, &base, &add)) {
            s.v.op = ptx_r(base);
            s.add += (uint32_t)add;
        }
    }
    return s;
}

static struct split split_expr(struct cg *g, const struct lang_expr *e)
{
    bool sum = e->kind == E_BINARY && (e->op == OP_ADD || e->op == OP_SUB);
    struct cg_val k;
    int64_t i;
    if (!dtype_is_int(e->type) || dtype_bits(e->type) < 32)
        return split_value(g, cg_expr(g, e));
    if (e->kind == E_CAST && dtype_is_int(e->args[0]->type) && dtype_bits(e->args[0]->type) == 32 &&
        dtype_bits(e->type) == 32)
        return split_expr(g, e->args[0]);
    if (sum && cg_constant(g, e->args[1], &k) && cg_is_const(k, &i)) {
        struct split s = split_expr(g, e->args[0]);
        s.add += (uint32_t)(e->op == OP_ADD ? i : -i);
        return s;
    }
    if (sum && e->op == OP_ADD) {
        struct split s = split_expr(g, e->args[0]), r = split_expr(g, e->args[1]);
        s.v = cg_binary(g, OP_ADD, s.v, r.v);
        s.add += r.add;
        return s;
    }
    if (e->kind == E_BINARY && e->op == OP_MUL && cg_constant(g, e->args[1], &k) &&
        cg_is_const(k, &i)) {
        struct split s = split_expr(g, e->args[0]);
        s.v = cg_binary(g, OP_MUL, s.v, cg_int(DT_U32, (uint32_t)i));
        s.add *= (uint32_t)i;
        return s;
    }
    return split_value(g, cg_expr(g, e));
}

static struct split flat_index(struct cg *g, const struct lang_expr *e)
{
    const struct lang_symbol *sym = e->sym;
    uint32_t n = sym->lanes && e->nargs > sym->rank ? sym->rank : e->nargs;
    struct split flat = {.v = cg_int(DT_U32, 0)};
    if (e->kind != E_INDEX || !sym->rank)
        return flat;
    flat = split_expr(g, e->args[0]);
    for (uint32_t i = 1; i < n; i++) {
        struct cg_val extent = cg_convert(g, cg_extent(g, sym, i), DT_U32);
        struct split s = split_expr(g, e->args[i]);
        int64_t k;
        if (cg_is_const(extent, &k)) {
            s.add += flat.add * (uint32_t)k;
        } else if (flat.add) {
            flat.v = cg_binary(g, OP_ADD, flat.v, cg_int(DT_U32, flat.add));
        }
        flat.v = cg_binary(g, OP_MUL, flat.v, extent);
        flat.v = cg_binary(g, OP_ADD, flat.v, s.v);
        flat.add = s.add;
    }
    return flat;
}

/* Constant memory has addresses of 64 bits. */
static struct cg_place_of place_in_table(struct cg *g, const struct ptx_var *var,
                                         const struct lang_expr *e)
{
    struct split flat = flat_index(g, e);
    struct cg_val i = cg_binary(g, OP_ADD, flat.v, cg_int(DT_U32, flat.add));
    struct cg_val bytes =
        cg_binary(g, OP_MUL, cg_index(g, i), cg_int(DT_I64, cg_element_bytes(e->sym)));
    int32_t base = CG(g, PTX_B64, "mov.u64", ptx_sym(var));
    return (struct cg_place_of){.space = CG_CONST,
                                .base = CG(g, PTX_B64, "add.s64", ptx_r(base), cg_op(g, bytes)),
                                .nibble = cg_int(DT_U32, 0)};
}

/* An address of 32 bits in shared or local memory. */
static struct cg_place_of place_in(struct cg *g, enum cg_space space, const struct ptx_var *var,
                                   const struct cg_variable *where, const struct lang_expr *e)
{
    struct cg_place_of at = {.space = space, .base = -1, .var = var, .nibble = cg_int(DT_U32, 0)};
    unsigned size = cg_element_bytes(e->sym);
    struct split flat = flat_index(g, e);
    int64_t i;
    at.offset = (int32_t)(flat.add * size);
    bool moved = where && where->is_dynamic && where->offset < 0;
    if (where && where->is_dynamic && !moved)
        at.offset += where->offset;
    if (cg_is_const(flat.v, &i) && i == 0 && !moved)
        return at;
    at.base = CG(g, PTX_B32, "mov.u32", ptx_sym(var));
    if (moved) {
        struct cg_val start = cg_convert(g, cg_param_computed(g, where->at), DT_U32);
        at.base = CG(g, PTX_B32, "add.s32", ptx_r(at.base), cg_op(g, start));
    }
    struct cg_val bytes = cg_binary(g, OP_MUL, flat.v, cg_int(DT_U32, size));
    if (!cg_is_const(bytes, &i) || i)
        at.base = CG(g, PTX_B32, "add.s32", ptx_r(at.base), cg_op(g, bytes));
    return at;
}

struct cg_place_of cg_place_expr(struct cg *g, const struct lang_expr *e)
{
    const struct lang_symbol *sym = e->sym;
    if (sym->kind == SYM_SHARED) {
        sym = cg_shared_symbol(g, sym);
        const struct ptx_var *var = cg_shared_variable(g, sym);
        return place_in(g, CG_SHARED, var, cg_variable_of(g, sym), e);
    }
    if (sym->kind == SYM_LOCAL) {
        struct cg_binding *b = cg_array(g, sym);
        if (b->table) {
            struct ptx_var *var = table_variable(g, b);
            return place_in_table(g, var, e);
        }
        if (!b->var) {
            if (!is_indexed(g, b->array)) {
                *VEC_PUSH(g->a, &g->indexed) = b->array;
                lower_explain(g,
                              "  '%s' is in local memory: an index in line %zu is not constant\n",
                              b->array->name, span_line_col(e->span).line);
            }
            g->again = true;
            return (struct cg_place_of){.space = CG_LOCAL, .nibble = cg_int(DT_U32, 0)};
        }
        return place_in(g, CG_LOCAL, b->var, NULL, e);
    }
    struct cg_val sub[MOST_SUBSCRIPTS];
    for (uint32_t i = 0; i < e->nargs; i++)
        sub[i] = cg_expr(g, e->args[i]);
    return cg_element(g, sym, e->nargs, sub);
}

bool cg_table_value(struct cg *g, const struct cg_binding *b, uint64_t i, struct cg_val *v)
{
    if (!b->table)
        return false;
    *v = table_value(g, b, i);
    return true;
}
