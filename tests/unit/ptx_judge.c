/* The instruction table before an outside judge: one instruction per row and per word that the row
 * can have is written as text, must pass our own parser, validator and printer, and then goes to
 * ptxas, which must
 *   - take it at the lowest PTX version and target that the table gives it;
 *   - refuse it below those, and name the same version and target;
 *   - refuse what our validator refuses.
 * Skipped where there is no ptxas. */
#include <config.h>

#include "ptx/table.h"

#include "ptxas.h"
#include "tap.h"

enum { MAX_FORMS = 8192, BASE_PTX = 60, BASE_SM = 70, PER_RUN = 24 };

struct form {
    const char *text; /* without the semicolon */
    unsigned ptx, sm; /* the table's minima; sm as in isa.def */
    bool valid;       /* says our validator, at these minima */
    unsigned got_ptx, got_sm;
    bool refused;
    char *why;
};

static unsigned trouble, max_notes = 20;
static unsigned elsewhere; /* what ptxas said of other lines than those of the forms */
static struct arena *arena;
static struct form forms[MAX_FORMS];
static size_t nform;

/* ---- writing an instruction ------------------------------------------------------------------ */

static const char *reg_prefix(enum ptx_mod type)
{
    switch ((int)type) {
    case PTX_PRED: return "p";
    case PTX_F32: return "f";
    case PTX_F64: return "fd";
    default: break;
    }
    switch (ptx_type_bits(type)) {
    case 128: return "q";
    case 64: return "rd";
    case 32: return "r";
    default: return "h";
    }
}

static unsigned counter; /* so that operands differ */

static void put_reg(struct buf *b, enum ptx_mod type)
{
    buf_printf(b, "%%%s%u", reg_prefix(type), counter++ % 16);
}

static void put_group(struct buf *b, unsigned n, enum ptx_mod type)
{
    buf_putc(b, '{');
    for (unsigned i = 0; i < n; i++) {
        if (i)
            buf_puts(b, ", ");
        put_reg(b, type);
    }
    buf_putc(b, '}');
}

static void put_address(struct buf *b, const struct ptx_inst *in, enum ptx_mod space)
{
    switch ((int)ptx_space(space)) {
    case PTX_SHARED: buf_puts(b, "[sh]"); break;
    case PTX_CONST: buf_puts(b, "[co]"); break;
    case PTX_LOCAL: buf_puts(b, "[lo]"); break;
    case PTX_PARAM: buf_puts(b, strcmp(ptx_op_name(in->op), "st") == 0 ? "[arg]" : "[par]"); break;
    default: buf_puts(b, "[%rd1]");
    }
}

static int constant_for(enum ptx_op op)
{
    switch ((int)op) {
    case PTX_OP_SETMAXNREG: return 64;
    case PTX_OP_PMEVENT:
    case PTX_OP_PMEVENT_MASK: return 3;
    case PTX_OP_CP_ASYNC: return 16;
    case PTX_OP_TENSORMAP_BOX:
    case PTX_OP_TENSORMAP_DIM:
    case PTX_OP_TENSORMAP_STRIDE:
    case PTX_OP_TENSORMAP_STEP:
    case PTX_OP_TENSORMAP_TYPE:
    case PTX_OP_TENSORMAP_INTERLEAVE:
    case PTX_OP_TENSORMAP_SWIZZLE:
    case PTX_OP_TENSORMAP_ATOMICITY:
    case PTX_OP_TENSORMAP_FILL:
    case PTX_OP_WGMMA_WAIT:
    case PTX_OP_WGMMA_F32:
    case PTX_OP_WGMMA_F32_REG:
    case PTX_OP_WGMMA_F16:
    case PTX_OP_WGMMA_F16_REG:
    case PTX_OP_WGMMA_TF32:
    case PTX_OP_WGMMA_FP8: return 1;
    default: return 128;
    }
}

static enum ptx_mod twice(enum ptx_mod t)
{
    return ptx_type_bits(t) == 16 ? PTX_B32 : PTX_B64;
}

static void put_operand(struct buf *b, const struct ptx_inst *in, const struct ptx_spec *s)
{
    static const unsigned lengths[] = {
        [PTX_V2 - PTX_V2] = 2, [PTX_V4 - PTX_V2] = 4, [PTX_V8 - PTX_V2] = 8};
    enum ptx_mod t = (enum ptx_mod)in->type[0], u = (enum ptx_mod)in->type[1];
    switch (s->kind) {
    case 'w': put_reg(b, twice(t)); break;
    case 'u': put_reg(b, u); break;
    case 'b': put_reg(b, PTX_B32); break;
    case 'p':
    case 'P': put_reg(b, PTX_PRED); break;
    case 'y': buf_puts(b, "!%p9"); break;
    case 'q':
        put_reg(b, PTX_B32);
        buf_puts(b, "|%p8");
        break;
    case 'v':
        if (in->mod[PTX_MC_VECTOR] != PTX_NONE)
            put_group(b, lengths[in->mod[PTX_MC_VECTOR] - PTX_V2], t);
        else
            put_reg(b, t);
        break;
    case 'm': put_address(b, in, (enum ptx_mod)in->mod[PTX_MC_SPACE]); break;
    case 'M': put_address(b, in, (enum ptx_mod)in->mod[PTX_MC_SPACE2]); break;
    case 'B': put_address(b, in, PTX_SHARED); break;
    case 'T':
        buf_puts(b, "[%rd1, ");
        put_group(b, in->mod[PTX_MC_SHAPE] - PTX_D1 + 1u, PTX_B32);
        buf_putc(b, ']');
        break;
    case 'k': put_reg(b, PTX_B16); break;
    case 'g': put_group(b, ptx_group_length(in), t == PTX_F32 ? PTX_F32 : PTX_B32); break;
    case 'A': put_reg(b, PTX_B64); break;
    case 's': buf_putc(b, '_'); break;
    case 'l': buf_puts(b, "$done"); break;
    case 'h': put_reg(b, PTX_B64); break;
    case 'i': buf_printf(b, "%d", constant_for(in->op)); break;
    case '=':
        if (s->group)
            put_group(b, s->group, (enum ptx_mod)s->type);
        else
            put_reg(b, (enum ptx_mod)s->type);
        break;
    default: put_reg(b, t); break;
    }
}

static const char *write_form(const struct ptx_inst *in)
{
    const struct ptx_row *r = ptx_row(in->op);
    const char *words[PTX_MAX_WORDS], *sep = " ";
    size_t n = ptx_mnemonic_words(in, words);
    struct buf b = buf_in(arena);
    counter = 0;
    buf_puts(&b, r->name);
    for (size_t i = 0; i < n; i++)
        buf_printf(&b, ".%s", words[i]);
    for (unsigned i = 0; i < r->nspec; i++) {
        if (!ptx_spec_applies(in, &r->spec[i]) || r->spec[i].optional)
            continue;
        buf_puts(&b, sep);
        put_operand(&b, in, &r->spec[i]);
        sep = ", ";
    }
    return buf_text(&b);
}

/* ---- modules --------------------------------------------------------------------------------- */

static const char prologue[] =
    ".address_size 64\n"
    ".shared .align 32 .b8 sh[64];\n"
    ".const .align 32 .b8 co[64];\n"
    ".visible .entry k(.param .align 32 .b8 par[64])\n"
    "{\n"
    ".reg .pred %p<16>; .reg .b16 %h<16>; .reg .b32 %r<16>; .reg .b64 %rd<16>;\n"
    ".reg .f32 %f<16>; .reg .f64 %fd<16>;\n"
    ".local .align 32 .b8 lo[64]; .param .align 32 .b8 arg[64];\n";

static void begin(struct buf *b, unsigned ptx, const char *target, bool wide)
{
    buf_printf(b, ".version %u.%u\n.target %s\n%s", ptx / 10, ptx % 10, target, prologue);
    buf_puts(b, wide ? ".reg .b128 %q<16>;\n" : "\n");
}

static void end(struct buf *b)
{
    buf_puts(b, "$done:\nret;\n}\n");
}

/* The line number of the first instruction, from 1. */
static unsigned first_line(void)
{
    unsigned n = 4;
    for (const char *p = prologue; *p; p++)
        n += *p == '\n';
    return n;
}

static const struct ptx_target *target_for(unsigned min_sm)
{
    size_t n;
    const struct ptx_target *t = ptx_targets(&n);
    for (size_t i = 0; i < n; i++)
        if (ptx_sm_allows(min_sm, t[i].sm, t[i].suffix))
            return &t[i];
    return NULL;
}

static unsigned version_for(const struct form *f)
{
    unsigned least = target_for(f->sm)->min_ptx;
    return f->ptx > least ? f->ptx : least;
}

/* ---- our own opinion ------------------------------------------------------------------------- */

static void complain(const struct form *f, const char *what)
{
    if (trouble++ < max_notes)
        tap_note("%s: %s", f->text, what);
}

static const struct ptx_inst *first_inst(const struct ptx_module *m)
{
    const struct ptx_func *k = ptx_find_entry(m, "k");
    for (size_t i = 0; i < k->items.n; i++)
        if (k->items.v[i].kind == PTX_I_INST)
            return &k->items.v[i].inst;
    return NULL;
}

/* Parses a module with that one instruction; the validator's opinion goes to f->valid, and what is
 * printed must be what is read. */
static void opinion(struct form *f, enum ptx_op op)
{
    struct buf text = buf_in(arena), once = buf_in(arena), twice_printed = buf_in(arena),
               why = buf_in(arena);
    begin(&text, version_for(f), target_for(f->sm)->name, true);
    buf_printf(&text, "%s;\n", f->text);
    end(&text);
    struct diags *d = diags_new(arena);
    const struct source *src = source_new(arena, "form", buf_text(&text), text.len);
    struct ptx_module *m = ptx_parse(arena, src, d);
    if (!m) {
        diags_format(d, "judge", false, &why);
        complain(f, buf_text(&why));
        return;
    }
    if (first_inst(m)->op != op)
        complain(f, arena_printf(arena, "is taken for %s", ptx_op_pattern(first_inst(m)->op)));
    f->valid = ptx_validate(m, d);
    if (!f->valid)
        f->why = d->list.v[0].text;
    ptx_print(m, &once);
    m = ptx_parse(arena, source_new(arena, "printed", buf_text(&once), once.len), d);
    if (m)
        ptx_print(m, &twice_printed);
    if (!m || strcmp(buf_text(&once), buf_text(&twice_printed)) != 0 ||
        !strstr(buf_text(&once), "\tret;"))
        complain(f, "does not print as it was read");
}

/* ---- making the forms ------------------------------------------------------------------------ */

/* The chosen alternative of each slot, from 1; 0: left out. */
struct choice {
    unsigned alt[PTX_MAX_WORDS];
};

static const struct form *add_form(const struct ptx_row *r, enum ptx_op op, const struct choice *c)
{
    struct ptx_words words = {{0}, {0}};
    const struct ptx_inst in = {.op = op, .mod = words.mod, .type = words.type};
    size_t ntype = 0;
    for (unsigned i = 0; i < r->nslot; i++) {
        const struct ptx_slot *s = &r->slot[i];
        if (!c->alt[i] || s->cls == PTX_MC_COUNT)
            continue;
        uint16_t mod = s->alt[c->alt[i] - 1].mod;
        if (s->cls == PTX_MC_TYPE)
            words.type[ntype++] = mod;
        else
            words.mod[s->cls] = mod;
    }
    words.mod[PTX_MC_TYPE] = words.type[0];
    if (nform == MAX_FORMS)
        abort();
    struct form *f = &forms[nform++];
    struct ptx_needs needs;
    ptx_inst_needs(&in, &needs);
    *f = (struct form){.text = write_form(&in), .ptx = needs.ptx, .sm = needs.sm};
    opinion(f, op);
    return f;
}

static bool varies(const struct ptx_slot *s)
{
    return s->cls == PTX_MC_TYPE || s->cls == PTX_MC_VECTOR;
}

/* Counts the choice of types and vectors on; false after the last. */
static bool next_choice(const struct ptx_row *r, struct choice *c)
{
    for (unsigned i = 0; i < r->nslot; i++) {
        if (!varies(&r->slot[i]))
            continue;
        if (++c->alt[i] <= r->slot[i].nalt)
            return true;
        c->alt[i] = r->slot[i].optional ? 0 : 1;
    }
    return false;
}

/* The word of slot i, with types and lengths as they come until the validator takes one; keeps that
 * one, or the last. Returns whether it was taken. */
static bool try_word(enum ptx_op op, struct choice c)
{
    const struct ptx_row *r = ptx_row(op);
    while (!add_form(r, op, &c)->valid) {
        if (!next_choice(r, &c))
            return false;
        nform--;
    }
    return true;
}

/* Every combination of types and vector lengths; then every other word once, alone or, where it
 * can't be, with one further optional word (an order with its scope). */
static void make_forms(enum ptx_op op)
{
    const struct ptx_row *r = ptx_row(op);
    struct choice base = {{0}}, c;
    if (op == PTX_OP_CALL || op == PTX_OP_BRX)
        return; /* these need more around them: tests/ptx/ */
    for (unsigned i = 0; i < r->nslot; i++)
        base.alt[i] = r->slot[i].optional ? 0 : 1;
    c = base;
    do
        add_form(r, op, &c);
    while (next_choice(r, &c));
    for (unsigned i = 0; i < r->nslot; i++) {
        if (varies(&r->slot[i]))
            continue;
        for (unsigned a = base.alt[i] + 1; a <= r->slot[i].nalt; a++) {
            c = base;
            c.alt[i] = a;
            bool taken = try_word(op, c);
            for (unsigned k = 0; k < r->nslot && !taken; k++) {
                if (k == i || !r->slot[k].optional || varies(&r->slot[k]))
                    continue;
                c.alt[k] = 1;
                taken = try_word(op, c);
                nform -= !taken;
                c.alt[k] = 0;
            }
        }
    }
}

/* One mov per special register. */
static void make_special(enum ptx_sreg r)
{
    struct buf b = buf_in(arena);
    enum ptx_mod t = ptx_sreg_type(r);
    buf_printf(&b, "mov.%s ", ptx_mod_text(t));
    counter = 0;
    put_reg(&b, t);
    buf_printf(&b, ", %s", ptx_sreg_text(r));
    struct form *f = &forms[nform++];
    *f = (struct form){.text = buf_text(&b), .ptx = ptx_sreg_min_ptx(r), .sm = ptx_sreg_min_sm(r)};
    opinion(f, PTX_OP_MOV);
    if (!f->valid)
        complain(f, f->why);
}

/* ---- ptxas ----------------------------------------------------------------------------------- */

static unsigned number_after(const char *text, const char *key, bool version)
{
    const char *p = strstr(text, key);
    unsigned major = 0, minor = 0;
    if (!p)
        return 0;
    p += strlen(key);
    if (version && sscanf(p, "%u.%u", &major, &minor) == 2)
        return major * 10 + minor;
    return !version && sscanf(p, "%u", &major) == 1 ? major : 0;
}

/* Assembles the text; what is said of a line goes to its form. */
static bool assemble(const struct buf *text, const struct ptx_target *t, struct form **at, size_t n)
{
    char line[1024];
    FILE *p = ptxas_run(text->text, text->len, t->sm, t->suffix);
    if (!p)
        return false;
    while (fgets(line, sizeof line, p)) {
        unsigned number = number_after(line, ", line ", false), first = first_line();
        if (!strstr(line, "error") && !strstr(line, "fatal"))
            continue;
        if (number < first || number >= first + n) {
            elsewhere += !strstr(line, "aborted");
            continue;
        }
        struct form *x = at[number - first];
        unsigned v = number_after(line, "ISA .version ", true),
                 sm = number_after(line, "target sm_", false);
        x->refused = true;
        if (v > x->got_ptx)
            x->got_ptx = v;
        if (sm > x->got_sm && strstr(line, "or higher"))
            x->got_sm = sm;
        if (!v && !sm)
            x->why = arena_strndup(arena, line, strcspn(line, "\n"));
    }
    pclose(p);
    return true;
}

/* One run over at most PER_RUN forms. */
static void run(struct form **at, size_t n, unsigned ptx, const struct ptx_target *t)
{
    struct buf text = buf_in(arena);
    begin(&text, ptx, t->name, ptx >= 83);
    for (size_t i = 0; i < n; i++)
        buf_printf(&text, "%s;\n", at[i]->text);
    end(&text);
    if (!assemble(&text, t, at, n))
        abort();
}

/* What the table allows, ptxas takes at just those minima. Forms of one version and target go
 * together. */
static size_t judge_valid(void)
{
    static bool done[MAX_FORMS];
    size_t count = 0;
    for (size_t i = 0; i < nform; i++) {
        if (done[i] || !forms[i].valid)
            continue;
        struct form *at[PER_RUN * 40] = {NULL};
        size_t n = 0;
        for (size_t k = i; k < nform && n < PER_RUN * 40; k++) {
            if (done[k] || !forms[k].valid || version_for(&forms[k]) != version_for(&forms[i]) ||
                target_for(forms[k].sm) != target_for(forms[i].sm))
                continue;
            done[k] = true;
            at[n++] = &forms[k];
        }
        elsewhere = 0;
        run(at, n, version_for(&forms[i]), target_for(forms[i].sm));
        if (elsewhere)
            complain(&forms[i], "this one or one like it makes ptxas refuse the whole module");
        for (size_t k = 0; k < n; k++)
            if (at[k]->refused)
                complain(at[k], arena_printf(arena, "ptxas refuses it at PTX %u %s: %s",
                                             version_for(&forms[i]), target_for(forms[i].sm)->name,
                                             at[k]->why ? at[k]->why : "(version or target)"));
        count += n;
    }
    return count;
}

/* Where the manual dates an instruction later than ptxas does, the table follows the manual: fp8
 * conversions (sm_89 as of PTX 8.1; ptxas also has sm_90 with 7.8), nanosleep, one-sided fences and
 * those of tensor maps, directed rounding to bf16. */
static bool stricter_than_ptxas(const struct form *f)
{
    static const char *const starts[] = {
        "nanosleep",       "fence.acquire",         "fence.release",          "cvt.rm.bf16.f32",
        "cvt.rp.bf16.f32", "fence.proxy.tensormap", "tensormap.cp_fenceproxy"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (strncmp(f->text, starts[i], strlen(starts[i])) == 0)
            return true;
    return strstr(f->text, "e4m3x2") || strstr(f->text, "e5m2x2");
}

/* Compares the dates of one form, which has been put before ptxas at the base. */
static void compare_dates(struct form *f, const struct ptx_target *base)
{
    unsigned want_ptx = f->ptx > BASE_PTX ? f->ptx : BASE_PTX,
             want_sm = f->sm > BASE_SM ? f->sm : BASE_SM;
    bool late = want_ptx > BASE_PTX || want_sm > BASE_SM;
    if (stricter_than_ptxas(f))
        return;
    if (late && !f->refused)
        run(&f, 1, BASE_PTX, base); /* another one's fatal error may have hidden it */
    if (late && f->refused && !f->got_ptx && !f->got_sm)
        return; /* it has never heard of it then */
    unsigned ptx = f->got_ptx > BASE_PTX ? f->got_ptx : BASE_PTX,
             sm = f->got_sm > BASE_SM ? f->got_sm : BASE_SM;
    if (ptx != want_ptx || (sm != want_sm && f->sm < 1000))
        complain(f, arena_printf(arena, "the table says PTX %u sm_%u, ptxas PTX %u sm_%u", want_ptx,
                                 want_sm, ptx, sm));
}

/* What the table dates later than the base, ptxas refuses at the base, with the same dates. */
static size_t judge_minima(void)
{
    const struct ptx_target *base = ptx_target_find("sm_70", 5);
    struct form *at[PER_RUN];
    size_t n = 0, count = 0;
    for (size_t i = 0; i <= nform; i++) {
        if (n == PER_RUN || (i == nform && n > 0)) {
            run(at, n, BASE_PTX, base);
            for (size_t k = 0; k < n; k++)
                compare_dates(at[k], base);
            count += n;
            n = 0;
        }
        if (i < nform && forms[i].valid) {
            forms[i].got_ptx = forms[i].got_sm = 0;
            forms[i].refused = false;
            at[n++] = &forms[i];
        }
    }
    return count;
}

/* What our validator refuses, ptxas refuses, one at a time on the newest target. */
static size_t judge_invalid(void)
{
    const struct ptx_target *t = ptx_target_find("sm_100a", 7);
    size_t count = 0;
    for (size_t i = 0; i < nform; i++) {
        struct form *f = &forms[i];
        if (f->valid)
            continue;
        const char *ours = f->why;
        f->refused = false;
        run(&f, 1, 90, t);
        if (!f->refused)
            complain(f, arena_printf(arena, "ptxas takes it, we don't: %s", ours));
        count++;
    }
    return count;
}

/* Each target's own version, and the one before it. ptxas 13.0 makes no code before sm_75, has
 * forgotten sm_101 (now sm_110), and takes sm_88 a version earlier than the manual has it. */
static size_t judge_targets(void)
{
    static const unsigned versions[] = {60, 61, 62, 63, 64, 65, 70, 71, 72, 73, 74, 75, 76,
                                        77, 78, 80, 81, 82, 83, 84, 85, 86, 87, 88, 90};
    size_t n, count = 0;
    const struct ptx_target *t = ptx_targets(&n);
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        if (t[i].sm < 75 || t[i].sm == 88 || t[i].sm == 101)
            continue;
        while (versions[k] < t[i].min_ptx)
            k++;
        for (unsigned early = 0; early < 2; early++) {
            struct form f = {.text = "bra $done"}, *at = &f;
            elsewhere = 0;
            run(&at, 1, versions[k - early], &t[i]);
            f.text = t[i].name;
            if ((elsewhere > 0) != (early == 1))
                complain(&f, arena_printf(arena, "ptxas thinks otherwise at PTX %u",
                                          versions[k - early]));
            count++;
        }
    }
    elsewhere = 0;
    return count;
}

int main(void)
{
    if (getenv("JUDGE_NOTES"))
        max_notes = (unsigned)atoi(getenv("JUDGE_NOTES"));
    arena = arena_new();
    for (unsigned op = 0; op < PTX_OP_COUNT; op++)
        make_forms((enum ptx_op)op);
    for (unsigned r = 0; r < PTX_SR_COUNT; r++)
        make_special((enum ptx_sreg)r);
    ok(trouble == 0, "%zu forms of %d rows pass our parser and print as they were read", nform,
       (int)PTX_OP_COUNT);
    if (!ptxas_path()) {
        tap_skip("the table against ptxas", "no ptxas here");
        return tap_done();
    }
    trouble = 0;
    size_t n = judge_valid();
    ok(trouble == 0, "ptxas takes %zu forms at the table's minima", n);
    trouble = 0;
    n = judge_minima();
    ok(trouble == 0, "ptxas gives %zu forms the same minima", n);
    trouble = 0;
    n = judge_invalid();
    ok(trouble == 0, "ptxas refuses the %zu forms that we refuse", n);
    trouble = 0;
    n = judge_targets();
    ok(trouble == 0, "ptxas knows the targets from the same PTX versions on (%zu pairs)", n);
    ptxas_clean();
    arena_free(arena);
    return tap_done();
}
