/* Atomic operations, and loads and stores with a memory order. */
#include <config.h>

#include "lang/lang_int.h"

enum {
    I32 = 1 << 0, /* i32 u32 */
    U32 = 1 << 1, /* u32 alone */
    I64 = 1 << 2, /* i64 u64 */
    I16 = 1 << 3, /* i16 u16 */
    F32 = 1 << 4,
    F64 = 1 << 5,
    F16 = 1 << 6, /* f16 bf16 */
    PAIR = 1 << 7 /* f16x2 bf16x2 */
};

/* What atom has in PTX; min and max of floats are made of cas. */
static unsigned types_of(enum lang_builtin fn)
{
    switch (fn) {
    case FN_ATOMIC_ADD:
    case FN_ATOMIC_SUB: return I32 | I64 | F32 | F64 | F16 | PAIR;
    case FN_ATOMIC_MIN:
    case FN_ATOMIC_MAX: return I32 | I64 | F32 | F64;
    case FN_ATOMIC_AND:
    case FN_ATOMIC_OR:
    case FN_ATOMIC_XOR: return I32 | I64;
    case FN_ATOMIC_EXCH: return I32 | I64 | F32 | F64 | PAIR;
    case FN_ATOMIC_CAS: return I32 | I64 | I16 | F32 | F64 | F16;
    default: return U32; /* inc, dec */
    }
}

static unsigned bit_of(enum dtype t, uint8_t lanes)
{
    if (lanes)
        return (t == DT_F16 || t == DT_BF16) && lanes == 2 ? PAIR : 0;
    switch (t) {
    case DT_U32: return I32 | U32;
    case DT_I32: return I32;
    case DT_I64:
    case DT_U64: return I64;
    case DT_I16:
    case DT_U16: return I16;
    case DT_F32: return F32;
    case DT_F64: return F64;
    case DT_F16:
    case DT_BF16: return F16;
    case DT_E4M3:
    case DT_E5M2:
    case DT_I8:
    case DT_U8:
    case DT_BOOL:
    case DT_I4:
    case DT_U4:
    case DT_COUNT: break;
    }
    return 0;
}

static const char *type_list(struct checker *c, unsigned types)
{
    static const struct {
        unsigned bit;
        const char *text;
    } names[] = {{I32, "u32 i32"}, {U32, "u32"}, {I64, "u64 i64"},  {I16, "u16 i16"},
                 {F32, "f32"},     {F64, "f64"}, {F16, "f16 bf16"}, {PAIR, "f16x2 bf16x2"}};
    struct buf b = buf_in(c->a);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (types & names[i].bit)
            buf_printf(&b, "%s%s", b.len ? " " : "", names[i].text);
    return buf_text(&b);
}

/* ---- order and scope ------------------------------------------------------------------------- */

static bool order(struct checker *c, struct lang_expr *e)
{
    if (!e->order_span.src)
        e->order = ORDER_RELAXED;
    if (!e->scope_span.src)
        e->scope = SCOPE_GPU;
    bool release = e->order == ORDER_RELEASE || e->order == ORDER_ACQ_REL;
    bool acquire = e->order == ORDER_ACQUIRE || e->order == ORDER_ACQ_REL;
    if (e->fn == FN_LOAD && release)
        return diag_error(c->d, e->order_span,
                          "a load is relaxed, acquire or seq_cst, not %s, which is for stores",
                          lang_order_name(e->order));
    if (e->fn == FN_STORE && acquire)
        return diag_error(c->d, e->order_span,
                          "a store is relaxed, release or seq_cst, not %s, which is for loads",
                          lang_order_name(e->order));
    return true;
}

/* ---- operands -------------------------------------------------------------------------------- */

static bool place(struct checker *c, struct lang_expr *e)
{
    const struct lang_expr *at = e->args[0];
    if (!check_address(c, e->args[0], e->name))
        return false;
    const struct lang_symbol *sym = at->args[0]->sym;
    if (sym->kind == SYM_LOCAL)
        return diag_error(c->d, at->span,
                          "'%s' is the thread's own, which no other thread sees; %s() is for "
                          "buffers and shared memory",
                          sym->name, e->name);
    return e->fn == FN_LOAD || check_written(c, at);
}

static bool operand(struct checker *c, struct lang_expr *e, uint32_t i, uint8_t lanes)
{
    struct lang_expr *x = e->args[i];
    const char *what = e->fn == FN_STORE ? "what store() stores"
                                         : arena_printf(c->a, "the %s of %s()",
                                                        e->fn != FN_ATOMIC_CAS ? "operand"
                                                        : i == 1               ? "comparand"
                                                                               : "new value",
                                                        e->name);
    return check_coerce_as(c, x, e->args[0]->type, lanes, what);
}

/* load() and store() of any scalar. */
static bool plain(struct checker *c, struct lang_expr *e)
{
    const struct lang_expr *at = e->args[0];
    if (at->lanes)
        return diag_error(c->d, at->span,
                          "%s() is of one value, and this is %s, which is not read or written at "
                          "once; take a lane's element",
                          e->name, lang_type_name(c->a, at->type, at->lanes));
    if (dtype_bits(at->type) < 8)
        return diag_error(c->d, at->span, "two elements of %s share a byte, so %s() can't have one",
                          dtype_name(at->type), e->name);
    e->type = e->fn == FN_LOAD ? at->type : DT_VOID;
    return e->fn == FN_LOAD || operand(c, e, 1, 0);
}

static bool update(struct checker *c, struct lang_expr *e)
{
    const struct lang_expr *at = e->args[0];
    unsigned types = types_of(e->fn);
    bool half = at->type == DT_F16 || at->type == DT_BF16;
    int64_t i;
    /* two elements at once: the address is the first's */
    e->lanes = half && !at->lanes && e->args[1]->lanes == 2 ? 2 : at->lanes;
    e->type = at->type;
    if (!(bit_of(at->type, e->lanes) & types)) {
        diag_error(c->d, at->span, "%s() is not for %s; its types are %s", e->name,
                   lang_type_name(c->a, at->type, e->lanes), type_list(c, types));
        if (dtype_bits(at->type) < 32 && !dtype_is_float(at->type))
            diag_note(c->d, at->args[0]->sym->span, "declare '%s' %s", at->args[0]->sym->name,
                      dtype_class(at->type) == DTC_I ? "i32" : "u32");
        return false;
    }
    const struct lang_expr *element = at->args[0];
    if (e->lanes && !at->lanes && element->kind == E_INDEX && element->nargs &&
        lang_const_int(element->args[element->nargs - 1], &i) && i % 2)
        return diag_error(c->d, element->args[element->nargs - 1]->span,
                          "a pair starts at an even index, not at %lld", (long long)i);
    for (uint32_t k = 1; k < e->nargs; k++)
        if (!operand(c, e, k, e->lanes))
            return false;
    return true;
}

bool check_atomic(struct checker *c, struct lang_expr *e)
{
    e->type = DT_VOID;
    if (c->place != IN_BODY)
        return diag_error(c->d, e->span, "%s() has a meaning only inside a body", e->name);
    if (c->func && !c->func->impure.src)
        c->func->impure = e->span;
    if (!order(c, e) || !place(c, e))
        return false;
    for (uint32_t i = 1; i < e->nargs; i++) {
        if (!check_expr(c, e->args[i]))
            return false;
        if (e->args[i]->type == DT_VOID)
            return diag_error(c->d, e->args[i]->span, "this function returns no value");
    }
    return e->fn == FN_LOAD || e->fn == FN_STORE ? plain(c, e) : update(c, e);
}
