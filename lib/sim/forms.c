/* The rows of handlers.def: their spellings, and the instructions that are decoded by nothing else. */
#include <config.h>

#include "sim/decode.h"

/* ---- the table of forms ------------------------------------------------------------------------------- */

const struct sim_row sim_rows[SIM_H_COUNT] = {
    [SIM_H_NONE] = {"", 0, 0, 0, 0},
#define SIM_ROW(NAME, SPELL, D, A, B, C) \
    [SIM_H_##NAME] = {SPELL, SIM_T_##D, SIM_T_##A, SIM_T_##B, SIM_T_##C},
#include "sim/handlers.def"
};

static uint32_t hash(const char *s, size_t len)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)s[i]) * 16777619u;
    return h;
}

/* The k-th spelling of a row. */
static bool spelling(const char *spell, size_t k, const char **s, size_t *len)
{
    for (;; k--) {
        *len = strcspn(spell, " ");
        *s = spell;
        if (!*len || !k)
            return *len > 0;
        spell += *len + (spell[*len] == ' ');
    }
}

enum { FORM_SLOTS = sizeof(struct sim_forms) / sizeof(uint16_t), FORM_BITS = 3 };
_Static_assert(SIM_H_COUNT < (1 << (16 - FORM_BITS)),
               "a slot holds a handler and which of its spellings");

/* A slot is the handler's number and the number of the spelling. */
void sim_forms_init(struct sim_forms *f)
{
    memset(f, 0, sizeof *f);
    for (uint32_t id = 1; id < SIM_H_COUNT; id++) {
        const char *s;
        size_t len;
        for (uint32_t k = 0; k < (1 << FORM_BITS) && spelling(sim_rows[id].spell, k, &s, &len);
             k++) {
            uint32_t at = hash(s, len) % FORM_SLOTS;
            while (f->slot[at])
                at = (at + 1) % FORM_SLOTS;
            f->slot[at] = (uint16_t)(id << FORM_BITS | k);
        }
    }
}

enum sim_handler_id dec_find(const struct dec *dc, const char *spell, size_t len)
{
    const struct sim_forms *f = dc->in->forms;
    for (uint32_t at = hash(spell, len) % FORM_SLOTS; f->slot[at]; at = (at + 1) % FORM_SLOTS) {
        const uint32_t id = f->slot[at] >> FORM_BITS;
        const char *s;
        size_t n;
        if (spelling(sim_rows[id].spell, f->slot[at] & ((1 << FORM_BITS) - 1), &s, &n) &&
            n == len && memcmp(s, spell, len) == 0)
            return (enum sim_handler_id)id;
    }
    return SIM_H_NONE;
}

/* ---- rows --------------------------------------------------------------------------------------------- */

/* Copies the mnemonic without the words that the record carries instead: .rn always, the others if mods. */
static size_t strip(const char *from, bool mods, char *to, size_t cap, struct sim_op *carry)
{
    static const struct {
        const char *word;
        uint8_t round, flag;
    } words[] = {{"rn", SIM_RN, 0},   {"rz", SIM_RZ, 0},   {"rm", SIM_RM, 0},    {"rp", SIM_RP, 0},
                 {"ftz", 0, SIM_FTZ}, {"sat", 0, SIM_SAT}, {"relu", 0, SIM_RELU}};
    size_t n = 0;
    for (const char *p = from; *p;) {
        const size_t len = strcspn(p + 1, ".") + 1; /* the dot, but for the first word */
        size_t k = 0;
        const size_t count = mods ? sizeof words / sizeof *words : 1;
        while (k < count &&
               (strlen(words[k].word) != len - 1 || strncmp(words[k].word, p + 1, len - 1) != 0))
            k++;
        if (p != from && k < count) {
            carry->round |= words[k].round;
            carry->flags |= words[k].flag;
        } else if (n + len < cap) {
            memcpy(to + n, p, len);
            n += len;
        }
        p += len;
    }
    to[n] = 0;
    return n;
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
    char key[128];
    struct sim_op carry = {0};
    const char *mnemonic = dec_mnemonic(dc);
    enum sim_handler_id h = dec_find(dc, key, strip(mnemonic, false, key, sizeof key, &carry));
    if (h)
        return dec_row(dc, h, false);
    h = dec_find(dc, key, strip(mnemonic, true, key, sizeof key, &carry));
    if (!h || !dc->in->build->h[h].mod)
        return dec_unsupported(dc);
    if (!dec_row(dc, h, true))
        return false;
    struct sim_op *op = &dc->op.v[dc->op.n - 1];
    op->round = carry.round;
    op->flags = carry.flags;
    return true;
}
