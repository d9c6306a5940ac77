/* Products of which tensor cores would take one side, were it not for the type of the other:
 * attention's f32 weights times values of f16. A cast rounds the other side, so it is only
 * advised. */
#include <config.h>

#include "lower/matmul/matmul.h"

enum { FEW = 16, MOST_TEXT = 60 };

/* Known sizes below a tile's are no matter. */
static bool is_large(const struct lang_symbol *index)
{
    int64_t n;
    return index && (!lang_const_int(index->dims[0], &n) || n >= FEW);
}

static bool is_narrow(const struct matmul_operand *o, enum dtype t)
{
    return o->main && o->main->type == t && (matmul_exact(o->eq->rhs) & MATMUL_BIT(t));
}

/* f16 or bf16: the one that some operands have and that the others can be cast to. DT_VOID: neither
 * is. */
static enum dtype common_type(const struct matmul_form *f)
{
    static const enum dtype wanted[] = {DT_F16, DT_BF16};
    for (uint32_t w = 0; w < 2; w++) {
        uint32_t narrow = 0, wide = 0;
        for (uint32_t i = 0; i < f->noperand; i++) {
            const struct matmul_operand *o = &f->operand[i];
            narrow += is_narrow(o, wanted[w]);
            wide += inspect_strip(o->eq->rhs)->type == DT_F32;
        }
        if (narrow && narrow + wide == f->noperand)
            return wanted[w];
    }
    return DT_VOID;
}

void matmul_advise_cast(struct cg *g, const struct matmul_form *f,
                        const struct matmul_options *want)
{
    if (!g->opt->advises || f->type != MATMUL_F32 || f->pairs || want->mma != MATMUL_BY_ANY ||
        !is_large(f->i) || !is_large(f->j) || !is_large(f->k))
        return;
    const enum dtype t = common_type(f);
    if (t == DT_VOID || g->target->sm < (t == DT_F16 ? 75u : 80u))
        return;
    for (uint32_t i = 0; i < f->noperand; i++) {
        const struct matmul_operand *o = &f->operand[i];
        const struct lang_expr *e = inspect_strip(o->eq->rhs);
        if (is_narrow(o, t))
            continue;
        const char *text = lang_expr_text(g->a, e);
        diag_warning(g->d, e->span,
                     "tensor cores do not multiply this, which is f32, by what is %s; they do if "
                     "it is rounded: %s(%s)",
                     dtype_name(t), dtype_name(t), strlen(text) <= MOST_TEXT ? text : "...");
        return;
    }
}
