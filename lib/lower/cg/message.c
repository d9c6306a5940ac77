/* print() and assert(): records for the host, in the buffer that data/message.h describes. */
#include <config.h>

#include "data/message.h"
#include "lower/cg/cg.h"

#include <stddef.h>

static int64_t field(size_t offset)
{
    return (int64_t)offset;
}

/* The message's number in the contract. One that is generated several times (an inlined function,
 * an unrolled loop) is one message. */
static uint32_t number_of(struct cg *g, const struct lang_expr *e)
{
    struct contract *c = g->contract;
    for (size_t i = 0; i < c->messages.n; i++)
        if (c->messages.v[i].span.src == e->span.src && c->messages.v[i].span.off == e->span.off)
            return (uint32_t)i + 1;
    struct contract_message *m = VEC_PUSH(g->a, &c->messages);
    *m = (struct contract_message){.span = e->span, .line = (uint32_t)span_line_col(e->span).line};
    if (e->fn == FN_ASSERT) {
        m->is_assert = true;
        m->format = e->text;
        m->text = e->nargs > 1 ? e->args[1]->text : NULL;
    } else {
        m->format = e->args[0]->text;
        m->ntype = e->nargs - 1;
        m->type = ARENA_ARRAY(g->a, m->ntype, enum dtype);
        for (uint32_t i = 1; i < e->nargs; i++)
            m->type[i - 1] = e->args[i]->type;
    }
    return (uint32_t)c->messages.n;
}

/* blockIdx.z << 16 | blockIdx.y */
static struct cg_val block_yz(struct cg *g)
{
    if (g->spec->ngrid < 2)
        return cg_int(DT_U32, 0);
    struct cg_val y = cg_special(g, SP_CTAID_Y);
    if (g->spec->ngrid < 3)
        return y;
    struct cg_val z = cg_binary(g, OP_SHL, cg_special(g, SP_CTAID_Z), cg_int(DT_U32, 16));
    return cg_binary(g, OP_OR, z, y);
}

/* Word `word` of the record whose words lie at `at` and a header. */
static void store_word(struct cg *g, int32_t at, unsigned word, struct cg_val v)
{
    PTX(&g->b, v.type == DT_F32 ? "st.global.f32" : "st.global.u32",
        ptx_mem(at, MESSAGE_HEADER + 4 * (int64_t)word), ptx_r(cg_reg(g, v)));
}

static unsigned store_argument(struct cg *g, int32_t at, unsigned word, struct cg_val v)
{
    if (dtype_bits(v.type) == 32) {
        store_word(g, at, word, v);
        return word + 1;
    }
    v = v.type == DT_F64 ? cg_bitcast(g, v, DT_U64) : cg_convert(g, v, DT_U64);
    store_word(g, at, word, cg_convert(g, v, DT_U32));
    store_word(g, at, word + 1, cg_convert(g, cg_binary(g, OP_SHR, v, cg_int(DT_U32, 32)), DT_U32));
    return word + 2;
}

/* Claims the words and writes them, or counts the record as lost. */
static void record(struct cg *g, uint32_t id, size_t n, const struct cg_val *arg)
{
    int32_t base = cg_param_hidden(g, CONTRACT_MESSAGES);
    enum dtype type[MESSAGE_MAX_ARGS];
    for (size_t i = 0; i < n; i++)
        type[i] = arg[i].type;
    const int64_t words = MESSAGE_RECORD + (int64_t)message_args_words(n, type);
    struct cg_val thread = cg_binary(g, OP_OR, cg_thread_number(g),
                                     cg_int(DT_U32, (int64_t)id << MESSAGE_THREAD_BITS));
    struct cg_val yz = block_yz(g), x = cg_special(g, SP_CTAID_X);

    struct cg_val old = cg_value(DT_U64, cg_new(g, DT_U64));
    struct cg_val capacity = cg_value(DT_U64, cg_new(g, DT_U64));
    PTX(&g->b, "atom.global.add.u64", old.op,
        ptx_mem(base, field(offsetof(struct message_header, claimed))), ptx_imm(words));
    PTX(&g->b, "ld.global.u64", capacity.op,
        ptx_mem(base, field(offsetof(struct message_header, capacity))));
    struct cg_val end = cg_binary(g, OP_ADD, old, cg_int(DT_U64, words));
    uint32_t lost = cg_label(g, "lost"), done = cg_label(g, "told");
    size_t mark = cg_scope_open(g);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_GT, end, capacity)), true, lost);
    struct cg_val bytes = cg_binary(g, OP_SHL, old, cg_int(DT_U32, 2));
    int32_t at = CG(g, PTX_B64, "add.s64", ptx_r(base), bytes.op);
    store_word(g, at, 0, thread);
    store_word(g, at, 1, x);
    store_word(g, at, 2, yz);
    unsigned word = MESSAGE_RECORD;
    for (size_t i = 0; i < n; i++)
        word = store_argument(g, at, word, arg[i]);
    cg_jump(g, done);
    cg_scope_close(g, mark);
    cg_place(g, lost);
    PTX(&g->b, "red.global.add.u64", ptx_mem(base, field(offsetof(struct message_header, lost))),
        ptx_imm(1));
    cg_place(g, done);
}

void cg_print(struct cg *g, const struct lang_expr *e)
{
    struct cg_val arg[MESSAGE_MAX_ARGS];
    for (uint32_t i = 1; i < e->nargs; i++)
        arg[i - 1] = cg_freeze(g, cg_convert(g, cg_expr(g, e->args[i]), e->args[i]->type));
    if (!g->failed)
        record(g, number_of(g, e), e->nargs - 1, arg);
}

/* The thread ends where it does not hold; nothing traps, so that the device stays usable and the
 * records readable. */
void cg_assert(struct cg *g, const struct lang_expr *e)
{
    uint32_t good = cg_label(g, "holds");
    size_t mark = cg_scope_open(g);
    cg_branch(g, e->args[0], true, good);
    if (g->failed)
        return;
    if (g->dead) { /* it always holds */
        cg_scope_close(g, mark);
        cg_place(g, good);
        return;
    }
    uint32_t id = number_of(g, e);
    record(g, id, 0, NULL);
    int32_t base = cg_param_hidden(g, CONTRACT_MESSAGES);
    PTX(&g->b, "red.global.add.u32", ptx_mem(base, field(offsetof(struct message_header, failed))),
        ptx_imm(1));
    PTX(&g->b, "red.global.max.u32", ptx_mem(base, field(offsetof(struct message_header, last))),
        ptx_imm(id));
    g->exit_used = true;
    cg_jump(g, g->exit);
    cg_scope_close(g, mark);
    cg_place(g, good);
}
