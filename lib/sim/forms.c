/* The rows of handlers.def: the instructions that they are for, and those that are decoded by
 * nothing else. The spellings are matched against isa.def once; an instruction finds its row by op,
 * modifiers and types. */
#include <config.h>

#include <assert.h>
#include <pthread.h>

#include "sim/decode.h"

/* ---- the table of forms ---------------------------------------------------------------------- */

const struct sim_row sim_rows[SIM_H_COUNT] = {
    [SIM_H_NONE] = {"", 0, 0, 0, 0},
#define SIM_ROW(NAME, SPELL, D, A, B, C) \
    [SIM_H_##NAME] = {SPELL, SIM_T_##D, SIM_T_##A, SIM_T_##B, SIM_T_##C},
#include "sim/handlers.def"
};

/* What one handler is for: an instruction without what the record says instead. Of setp, which set
 * asks for too, only the comparison and the type count. */
struct form {
    uint16_t op;
    struct ptx_words words;
};

enum { MOST_FORMS = 2048, SLOTS = 2 * MOST_FORMS, MOST_ROWS = 16 };

static struct {
    struct form form[MOST_FORMS];
    uint16_t handler[MOST_FORMS];
    size_t n;
    uint16_t slot[SLOTS]; /* open addressing, form + 1 */
} table;
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static size_t place(const struct form *f)
{
    const unsigned char *p = (const unsigned char *)f;
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < sizeof *f; i++)
        h = (h ^ p[i]) * 16777619u;
    size_t at = h % SLOTS;
    while (table.slot[at] && memcmp(&table.form[table.slot[at] - 1], f, sizeof *f) != 0)
        at = (at + 1) % SLOTS;
    return at;
}

static struct form comparison(enum ptx_mod compare, enum ptx_mod type)
{
    struct form f = {.op = PTX_OP_SETP_BITS, .words.type[0] = (uint16_t)type};
    f.words.mod[PTX_MC_COMPARE] = (uint16_t)compare;
    return f;
}

static struct form form_of(const struct ptx_inst *in)
{
    if (ptx_op_family(in->op) == PTX_FAMILY_SETP)
        return comparison(in->mod[PTX_MC_COMPARE], in->type[0]);
    struct form f = {.op = (uint16_t)in->op};
    memcpy(f.words.mod, in->mod, sizeof f.words.mod);
    memcpy(f.words.type, in->type, sizeof f.words.type);
    return f;
}

/* The first row that names a form has it. */
static void add_form(const struct form *f, uint32_t handler)
{
    const size_t at = place(f);
    if (table.slot[at])
        return;
    assert(table.n < MOST_FORMS);
    table.form[table.n] = *f;
    table.handler[table.n] = (uint16_t)handler;
    table.slot[at] = (uint16_t)++table.n;
}

static void make_table(void)
{
    for (uint32_t id = 1; id < SIM_H_COUNT; id++) {
        size_t len;
        for (const char *s = sim_rows[id].spell; *s; s += len + (s[len] == ' ')) {
            struct ptx_spelling found[MOST_ROWS];
            len = strcspn(s, " ");
            const size_t n = ptx_spelled(s, len, MOST_ROWS, found);
            assert(n > 0 && n <= MOST_ROWS);
            for (size_t i = 0; i < n; i++) {
                const struct ptx_inst in = {
                    .op = found[i].op, .mod = found[i].words.mod, .type = found[i].words.type};
                const struct form f = form_of(&in);
                add_form(&f, id);
            }
        }
    }
}

static enum sim_handler_id find(const struct form *f)
{
    pthread_once(&table_once, make_table);
    const uint16_t form = table.slot[place(f)];
    return form ? (enum sim_handler_id)table.handler[form - 1] : SIM_H_NONE;
}

enum sim_handler_id dec_comparison(enum ptx_mod compare, enum ptx_mod type)
{
    const struct form f = comparison(compare, type);
    return find(&f);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Takes away what a record can say instead, .rn being what handlers do by themselves. */
static void take_away(struct form *f, enum ptx_mod_class cls, enum ptx_mod word)
{
    if (f->words.mod[cls] == word)
        f->words.mod[cls] = PTX_NONE;
}

bool dec_row(struct dec *dc, enum sim_handler_id h, bool mods)
{
    const struct sim_row *row = &sim_rows[h];
    const struct ptx_inst *in = dc->inst;
    const enum sim_type types[] = {row->a, row->b, row->c, SIM_T_u32};
    uint32_t off[4] = {0};
    const uint32_t nsrc = in->noperand - 1u;
    if (in->noperand < 1 || nsrc > 4)
        return dec_unsupported(dc);
    for (uint32_t i = 0; i < nsrc; i++) {
        if (types[i] == SIM_T_none)
            return dec_unsupported(dc);
        off[i] = dec_src(dc, &in->operand[i + 1], types[i]);
    }
    const uint32_t d = dec_dst(dc, &in->operand[0], row->d);
    struct sim_op *op = dec_emit3(dc, h, d, off[0], off[1], off[2]);
    op->e = off[3];
    if (mods)
        op->fn[0] = op->fn[1] = dc->in->build->h[h].mod;
    return !dc->failed;
}

bool dec_generic(struct dec *dc)
{
    const struct ptx_inst *in = dc->inst;
    struct form f = form_of(in);
    take_away(&f, PTX_MC_ROUND, PTX_RN);
    enum sim_handler_id h = find(&f);
    if (h)
        return dec_row(dc, h, false);
    take_away(&f, PTX_MC_ROUND, PTX_RZ);
    take_away(&f, PTX_MC_ROUND, PTX_RM);
    take_away(&f, PTX_MC_ROUND, PTX_RP);
    take_away(&f, PTX_MC_FTZ, PTX_FTZ);
    take_away(&f, PTX_MC_SAT, PTX_SAT);
    take_away(&f, PTX_MC_RELU, PTX_RELU);
    h = find(&f);
    if (!h || !dc->in->build->h[h].mod)
        return dec_unsupported(dc);
    if (!dec_row(dc, h, true))
        return false;
    struct sim_op *op = &dc->op.v[dc->op.n - 1];
    op->round = dec_round(in);
    op->flags = (uint8_t)((in->mod[PTX_MC_FTZ] == PTX_FTZ ? SIM_FTZ : 0) |
                          (in->mod[PTX_MC_SAT] == PTX_SAT ? SIM_SAT : 0) |
                          (in->mod[PTX_MC_RELU] == PTX_RELU ? SIM_RELU : 0));
    return true;
}
