/* Division by a dimension as a multiplication (lib/lower/cg/magic.c): the code that is emitted for
 * a kernel of two subscripts is executed here for threads that no test could launch, and compared
 * with C's division. */
#include <config.h>

#include "lower/lower.h"
#include "tap.h"

static const char text[] = "kernel: k\n"
                           "params:\n"
                           "  y: out i32[a, b]\n"
                           "  z: out i32[a, b]\n"
                           "schedule: {vector: 1}\n"
                           "compute: |\n"
                           "  y[i,j] = i\n"
                           "  z[i,j] = j\n";

enum { MOST_REGS = 64, MOST_STORES = 2 };

struct thread {
    const struct ptx_func *f;
    const char **mnemonic; /* of each item, NULL: none */
    uint64_t reg[MOST_REGS];
    uint64_t total, b;
    uint32_t block, thread;
    uint64_t stored[MOST_STORES];
    unsigned nstored;
    bool unknown;
};

static uint64_t value(const struct thread *t, const struct ptx_operand *o)
{
    if (o->kind == PTX_O_SREG)
        return o->sreg == PTX_SR_TID_X ? t->thread : t->block;
    return o->kind == PTX_O_REG ? t->reg[o->reg] : o->bits;
}

/* ld.param: what the launch would pass. */
static uint64_t param(const struct thread *t, const struct ptx_operand *o)
{
    const char *name = o->var->name;
    return strcmp(name, "b") == 0    ? t->b
           : strcmp(name, "$0") == 0 ? t->total
           : strcmp(name, "$1") == 0 ? (uint64_t)INT64_MAX / (t->b ? t->b : 1)
                                     : 0;
}

static uint64_t compute(struct thread *t, const char *m, const struct ptx_inst *in)
{
    const uint64_t x = value(t, &in->operand[1]);
    const uint64_t y = in->noperand > 2 ? value(t, &in->operand[2]) : 0;
    const uint64_t z = in->noperand > 3 ? value(t, &in->operand[3]) : 0;
    const uint32_t x32 = (uint32_t)x, y32 = (uint32_t)y;
    if (strncmp(m, "ld.param", 8) == 0)
        return param(t, &in->operand[1]);
    if (strcmp(m, "mov.u32") == 0 || strcmp(m, "cvta.to.global.u64") == 0)
        return x;
    if (strcmp(m, "cvt.u32.u64") == 0 || strcmp(m, "cvt.u64.u32") == 0)
        return x32;
    if (strcmp(m, "shl.b32") == 0)
        return x32 << y;
    if (strcmp(m, "shr.u64") == 0)
        return x >> y;
    if (strcmp(m, "add.u32") == 0)
        return x32 + y32;
    if (strcmp(m, "sub.u32") == 0)
        return x32 - y32;
    if (strcmp(m, "add.s64") == 0)
        return x + y;
    if (strcmp(m, "mul.lo.u32") == 0)
        return x32 * y32;
    if (strcmp(m, "mul.hi.u32") == 0)
        return x * y >> 32;
    if (strcmp(m, "mul.wide.u32") == 0)
        return x * y;
    if (strcmp(m, "mad.lo.u32") == 0)
        return (uint32_t)(x32 * y32 + (uint32_t)z);
    if (strcmp(m, "mad.wide.u32") == 0)
        return x * y + z;
    if (strcmp(m, "setp.lt.u32") == 0)
        return x32 < y32;
    t->unknown = true;
    return 0;
}

static void run(struct thread *t)
{
    t->nstored = 0;
    for (size_t i = 0; i < t->f->items.n; i++) {
        const struct ptx_inst *in = &t->f->items.v[i].inst;
        const char *m = t->mnemonic[i];
        if (!m || strcmp(m, "ret") == 0)
            continue;
        if (strcmp(m, "bra") == 0) { /* over everything, where there is no element */
            if ((t->reg[in->guard] != 0) != in->guard_neg)
                return;
        } else if (strcmp(m, "st.global.b32") == 0) {
            t->stored[t->nstored++ % MOST_STORES] = value(t, &in->operand[1]);
        } else {
            t->reg[in->operand[0].reg] = compute(t, m, in);
        }
    }
}

/* Whether thread n finds its subscripts. */
static bool divides(struct thread *t, uint32_t n, uint32_t b)
{
    t->b = b;
    t->total = n + 1u;
    t->block = n / 256;
    t->thread = n % 256;
    run(t);
    return t->nstored == 2 && t->stored[0] == n / b && t->stored[1] == n % b;
}

static const char **mnemonics(struct arena *a, const struct ptx_func *f)
{
    const char **m = ARENA_ARRAY(a, f->items.n, const char *);
    for (size_t i = 0; i < f->items.n; i++) {
        if (f->items.v[i].kind != PTX_I_INST)
            continue;
        struct buf b = buf_in(a);
        struct ptx_inst in = f->items.v[i].inst;
        in.guard = -1;
        ptx_print_inst(f, &in, &b);
        char *s = arena_strdup(a, buf_text(&b));
        s[strcspn(s, " \t;")] = 0;
        m[i] = s;
    }
    return m;
}

int main(void)
{
    enum { MOST = 2000000000 };
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    struct spec_file *file = spec_read(a, source_new(a, "k.yaml", text, strlen(text)), NULL, 0, d);
    struct ptx_module *module =
        lower_specs(a, file->specs.v, 1, ptx_target_find("sm_80", 5), NULL, d);
    struct thread t = {.f = ptx_find_entry(module, "k")};
    ok(t.f && t.f->regs.n <= MOST_REGS, "a kernel is emitted");
    ok(strstr(module->header, "u64 9223372036854775807 / max(b, 1)") != NULL,
       "and given what param() makes up here");
    t.mnemonic = mnemonics(a, t.f);

    ok(divides(&t, 1000, 7) && !t.unknown, "its instructions are known here");
    t.b = 7, t.total = 1000, t.block = 3, t.thread = 232;
    run(&t);
    eq_int(t.nstored, 0, "the thread after the last does nothing");

    unsigned wrong = 0;
    for (uint32_t b = 1; b <= 1500; b++)
        for (uint32_t n = 0; n < 1500; n += 1 + n / 50)
            wrong += !divides(&t, n, b);
    eq_int(wrong, 0, "small numbers by small numbers");

    /* the largest quotients and the numbers around multiples, where an error would show first */
    uint64_t seed = 1;
    for (uint32_t k = 0; k < 40000; k++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint32_t b = (uint32_t)(seed >> 33) >> k % 31;
        b = b ? b : 1;
        const uint32_t last = MOST / b * b; /* the last multiple */
        wrong += last < MOST && !divides(&t, last, b);
        wrong += last > 0 && !divides(&t, last - 1, b);
        wrong += !divides(&t, MOST - 1, b);
        const uint32_t some = (uint32_t)(seed >> 40) % (MOST / b + 1) * b;
        wrong += some > 0 && !divides(&t, some - 1, b);
        wrong += some < MOST && !divides(&t, some, b);
    }
    eq_int(wrong, 0, "around multiples, up to the most");

    for (uint32_t k = 0; k < 32; k++)
        for (int32_t off = -2; off <= 2; off++) {
            const uint32_t b = (uint32_t)(INT64_C(1) << k) + (uint32_t)off;
            for (uint32_t n = MOST - 1; b && n; n /= 2)
                wrong += !divides(&t, n, b);
        }
    eq_int(wrong, 0, "by powers of two and their neighbours, 2^32 - 1 among them");
    arena_free(a);
    return tap_done();
}
