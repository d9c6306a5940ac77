/* Every form of atom and red: operation, type, order, scope, state space. Also ordered loads and
 * stores.
 *
 * One thread does one operation again and again, in every form, on a cell in global and a cell in
 * shared memory; the cells and the sum of the old values are compared with what the same operation
 * gives here.
 */
#include "sim.h"

enum kind { UNSIGNED, SIGNED, BITS, FLOAT, HALF, BF16 };

struct type {
    const char *name;
    enum kind kind;
    unsigned bits, lanes; /* lanes: 2 where a word holds two halves */
};

static const struct type types[] = {
    {"u32", UNSIGNED, 32, 1}, {"s32", SIGNED, 32, 1}, {"u64", UNSIGNED, 64, 1},
    {"s64", SIGNED, 64, 1},   {"b32", BITS, 32, 1},   {"b64", BITS, 64, 1},
    {"b16", BITS, 16, 1},     {"f32", FLOAT, 32, 1},  {"f64", FLOAT, 64, 1},
    {"f16", HALF, 16, 1},     {"bf16", BF16, 16, 1},  {"f16x2", HALF, 32, 2},
    {"bf16x2", BF16, 32, 2},
};

static const struct {
    const char *op, *types;
    bool red;
} ops[] = {
    {"add", "u32 s32 u64 f32 f64", true},
    {"add.noftz", "f16 bf16 f16x2 bf16x2", true},
    {"min", "u32 s32 u64 s64", true},
    {"max", "u32 s32 u64 s64", true},
    {"and", "b32 b64", true},
    {"or", "b32 b64", true},
    {"xor", "b32 b64", true},
    {"exch", "b32 b64", false},
    {"cas", "b16 b32 b64", false},
    {"inc", "u32", true},
    {"dec", "u32", true},
};

/* A whole number below 128 as a half; bits 7..0 of the mantissa suffice. */
static uint64_t small(const struct type *t, uint64_t v)
{
    const float f = (float)v;
    const double d = (double)v;
    uint64_t bits = 0;
    uint32_t u;
    memcpy(&u, &f, 4);
    switch (t->kind) {
    case FLOAT:
        memcpy(&bits, t->bits == 32 ? (const void *)&f : (const void *)&d, t->bits / 8);
        break;
    case HALF: bits = v ? ((u >> 13) - (112u << 10)) & 0x7fff : 0; break;
    case BF16: bits = u >> 16; break;
    default: return v;
    }
    return t->lanes == 2 ? bits | bits << 16 : bits;
}

/* What a cell that began as start holds after n operations with b (c for cas), and the sum of what
 * they returned. Floats: all values are small whole numbers. */
static uint64_t model(const char *op, const struct type *t, uint64_t cell, uint64_t b, uint64_t c,
                      unsigned n, uint64_t *sum)
{
    const uint64_t all = t->bits == 64 ? UINT64_MAX : ((uint64_t)1 << t->bits) - 1;
    const bool number = t->kind >= FLOAT;
    for (; n; n--) {
        const int shift = 64 - (int)t->bits;
        const int64_t x = (int64_t)(cell << shift) >> shift, y = (int64_t)(b << shift) >> shift;
        const bool less = t->kind == SIGNED ? x < y : cell < b;
        *sum += number ? small(t, cell) : cell;
        cell = strncmp(op, "add", 3) == 0 ? cell + b
               : strcmp(op, "min") == 0   ? (less ? cell : b)
               : strcmp(op, "max") == 0   ? (less ? b : cell)
               : strcmp(op, "and") == 0   ? cell & b
               : strcmp(op, "or") == 0    ? cell | b
               : strcmp(op, "xor") == 0   ? cell ^ b
               : strcmp(op, "exch") == 0  ? b
               : strcmp(op, "cas") == 0   ? (cell == b ? c : cell)
               : strcmp(op, "inc") == 0   ? (cell >= b ? 0 : cell + 1)
                                          : (cell == 0 || cell > b ? b : cell - 1);
        if (!number)
            cell &= all;
    }
    return cell;
}

static const char *const spaces[] = {".global",          "", ".shared", ".shared::cta",
                                     ".shared::cluster", ""};
static const char *const orders[] = {"", ".relaxed", ".acquire", ".release", ".acq_rel"};
static const char *const scopes[] = {"", ".cta", ".cluster", ".gpu", ".sys"};

/* All forms of one operation: the text, and how many of them are on either cell. */
static const char *forms(struct arena *a, const char *op, const struct type *t, bool red,
                         unsigned n[2])
{
    struct buf b = buf_in(a);
    const char *reg = t->bits == 64 ? "rd" : t->bits == 32 ? "r" : "h";
    const char *third = strcmp(op, "cas") == 0 ? arena_printf(a, ", %%%s3", reg) : "";
    for (size_t sp = 0; sp < 6; sp++)
        for (size_t o = 0; o < 5; o++)
            for (size_t sc = 0; sc < 5; sc++) {
                const char *at = sp < 2 ? "[%rd20]" : sp < 5 ? "[%r20]" : "[%rd21]";
                if (red && (o == 2 || o == 4))
                    continue;
                buf_printf(&b, "    %s%s%s%s.%s.%s ", red ? "red" : "atom", orders[o], scopes[sc],
                           spaces[sp], op, t->name);
                n[sp > 1]++;
                if (red) {
                    buf_printf(&b, "%s, %%%s2;\n", at, reg);
                    continue;
                }
                buf_printf(&b, "%%%s1, %s, %%%s2%s;\n", reg, at, reg, third);
                if (t->bits < 64)
                    buf_printf(&b, "    cvt.u64.u%u %%rd1, %%%s1;\n", t->bits, reg);
                buf_printf(&b, "    add.u64 %%rd10, %%rd10, %%rd1;\n");
            }
    return buf_text(&b);
}

/* out[0]: the global cell, out[1]: what the shared cell holds in the end, out[2]: the sum of the
 * old values */
static const char *kernel(struct arena *a, const char *body)
{
    return arena_printf(
        a,
        ".version 8.6\n.target sm_90\n.address_size 64\n"
        ".visible .entry k(.param .u64 out, .param .u64 b, .param .u64 c)\n{\n"
        "    .reg .b16 %%h<8>;\n    .reg .b32 %%r<24>;\n    .reg .b64 %%rd<24>;\n"
        "    .shared .align 8 .b64 cell;\n"
        "    ld.param.u64 %%rd20, [out];\n    ld.param.u64 %%rd2, [b];\n"
        "    ld.param.u64 %%rd3, [c];\n    cvt.u32.u64 %%r2, %%rd2;\n    cvt.u32.u64 %%r3, %%rd3;\n"
        "    cvt.u16.u64 %%h2, %%rd2;\n    cvt.u16.u64 %%h3, %%rd3;\n"
        "    mov.u32 %%r20, cell;\n    cvt.u64.u32 %%rd21, %%r20;\n"
        "    cvta.shared.u64 %%rd21, %%rd21;\n"
        "    ld.global.u64 %%rd5, [%%rd20];\n    st.shared.u64 [cell], %%rd5;\n"
        "    mov.u64 %%rd10, 0;\n%s"
        "    ld.shared.u64 %%rd6, [cell];\n    st.global.u64 [%%rd20+8], %%rd6;\n"
        "    st.global.u64 [%%rd20+16], %%rd10;\n    ret;\n}\n",
        body);
}

static struct sim s;

static bool run(const char *ptx, uint64_t mem[3], uint64_t b, uint64_t c)
{
    if (sim_load_text(&s, "atoms.ptx", ptx) != DEVICE_OK)
        return false;
    const uint64_t at = sim_buffer(&s, "out", "u64[3]", 3, 8, mem, false);
    sim_arg(&s, at, 8);
    sim_arg(&s, b, 8);
    sim_arg(&s, c, 8);
    const bool fine = sim_go(&s, "k", 1, 1) == DEVICE_OK;
    sim_fetch(&s, mem, at, 3 * sizeof *mem);
    sim_device.release(s.dev, at);
    return fine;
}

static void one(const char *op, const struct type *t, bool red)
{
    const bool number = t->kind >= FLOAT, counts = strcmp(op, "inc") == 0 || strcmp(op, "dec") == 0;
    const uint64_t all = t->bits == 64 ? UINT64_MAX : ((uint64_t)1 << t->bits) - 1;
    const uint64_t start = number || counts ? 5 : 0x80f0f0f0a5a5a5a5u & all;
    const uint64_t b = number ? 1 : counts ? 11 : strcmp(op, "cas") == 0 ? start : 7;
    const uint64_t c = 3;
    unsigned n[2] = {0};
    uint64_t got[3] = {number ? small(t, start) : start, 0, 0}, want[2], sum = 0;
    const bool fine =
        run(kernel(s.arena, forms(s.arena, op, t, red, n)), got, number ? small(t, b) : b, c);
    for (int k = 0; k < 2; k++) {
        want[k] = model(op, t, start, b, c, n[k], &sum);
        if (number)
            want[k] = small(t, want[k]);
    }
    const bool same = (got[0] & all) == want[0] && (got[1] & all) == want[1] &&
                      got[2] == (red ? 0 : sum);
    if (!ok(fine && same, "%s.%s.%s in %u forms", red ? "red" : "atom", op, t->name, n[0] + n[1]))
        tap_note("%s global %llx want %llx, shared %llx want %llx, sum %llx want %llx",
                 sim_errors(&s), (unsigned long long)got[0], (unsigned long long)want[0],
                 (unsigned long long)got[1], (unsigned long long)want[1],
                 (unsigned long long)got[2], (unsigned long long)sum);
}

static void subnormals(void)
{
    const char *body = "    atom.global.add.f32 %r1, [%rd20], %r2;\n"
                       "    atom.shared.add.f32 %r1, [cell], %r2;\n"
                       "    red.add.f32 [%rd21], %r2;\n";
    uint64_t got[3] = {3, 0, 0};
    ok(run(kernel(s.arena, body), got, 4, 0), "sums of subnormals");
    eq_int((int)got[0], 0, "... flush in global memory");
    eq_int((int)got[1], 11, "... and do not in shared memory");
}

static void vectors(void)
{
    const char *body = "    mov.u32 %r4, 0x40000000;\n    mov.u32 %r5, 0x3f800000;\n"
                       "    atom.global.add.v2.f32 {%r6, %r7}, [%rd20], {%r4, %r5};\n"
                       "    red.global.add.v2.f32 [%rd20], {%r4, %r5};\n"
                       "    mov.u16 %h4, 0x4000;\n    mov.u16 %h5, 0x7fff;\n"
                       "    red.global.max.noftz.v4.f16 [%rd20+8], {%h4, %h5, %h4, %h4};\n"
                       "    red.global.min.noftz.v2.bf16x2 [%rd20+8], {%r4, %r4};\n"
                       "    ld.global.u64 %rd10, [%rd20+8];\n    st.shared.u64 [cell], %rd10;\n"
                       "    mov.b64 %rd10, {%r6, %r7};\n";
    uint64_t got[3] = {0x3f8000003f800000, 0x44003c003c00bc00, 0};
    ok(run(kernel(s.arena, body), got, 0, 0), "vectors");
    ok(got[0] == 0x4040000040a00000, "... add element by element");
    ok(got[1] == 0x400000003c000000,
       "... take the lesser and the greater, and a number, not a NaN");
    ok(got[2] == 0x3f8000003f800000, "... give the old values");
}

/* Stores and loads in every order, scope and space: what is stored is loaded. */
static void ordered(const char *type, unsigned bits)
{
    static const char *const stores[] = {"", ".weak", ".volatile", ".relaxed", ".release"};
    static const char *const loads[] = {"", ".weak", ".volatile", ".relaxed", ".acquire"};
    const char *reg = bits == 64 ? "rd" : bits == 32 ? "r" : "h";
    const bool wide = bits == 64;
    struct buf b = buf_in(s.arena);
    uint64_t sum = 0, value = 0, got[3] = {0, 0, 0};
    unsigned n = 0;
    for (size_t sp = 0; sp < 6; sp++)
        for (size_t st = 0; st < 5; st++)
            for (size_t ld = 0; ld < 5; ld++, n++) {
                const char *at = sp < 2 ? "[%rd20]" : sp < 5 ? "[%r20]" : "[%rd21]";
                value = value * 31 + 7;
                value &= bits == 8 ? 0x7f : 0x7fff;
                sum += value;
                buf_printf(&b, "    mov.%s %%%s4, %u;\n",
                           wide         ? "u64"
                           : bits == 32 ? "u32"
                                        : "u16",
                           reg, (unsigned)value);
                buf_printf(&b, "    st%s%s%s.%s %s, %%%s4;\n", stores[st],
                           st > 2 ? scopes[1 + n % 4] : "", spaces[sp], type, at, reg);
                buf_printf(&b, "    ld%s%s%s.%s %%%s5, %s;\n", loads[ld],
                           ld > 2 ? scopes[1 + n / 4 % 4] : "", spaces[sp], type, reg, at);
                if (wide)
                    buf_printf(&b, "    add.u64 %%rd10, %%rd10, %%rd5;\n");
                else
                    buf_printf(
                        &b, "    cvt.u64.u%u %%rd1, %%%s5;\n    add.u64 %%rd10, %%rd10, %%rd1;\n",
                        bits == 32 ? 32 : 16, reg);
            }
    const bool fine = run(kernel(s.arena, buf_text(&b)), got, 0, 0);
    if (!ok(fine && got[2] == sum, "%u pairs of st and ld of .%s", n, type))
        tap_note("%s", sim_errors(&s));
}

int main(void)
{
    s = sim_begin((struct device_options){.threads = 1});
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
            const char *p = strstr(ops[i].types, types[k].name);
            const size_t len = strlen(types[k].name);
            while (p && ((p != ops[i].types && p[-1] != ' ') || (p[len] && p[len] != ' ')))
                p = strstr(p + 1, types[k].name);
            if (!p)
                continue;
            one(ops[i].op, &types[k], false);
            if (ops[i].red)
                one(ops[i].op, &types[k], true);
        }
    subnormals();
    vectors();
    static const struct {
        const char *name;
        unsigned bits;
    } plain[] = {{"b8", 8},   {"u8", 8},   {"s8", 8},   {"b16", 16}, {"u16", 16},
                 {"s16", 16}, {"b32", 32}, {"u32", 32}, {"s32", 32}, {"f32", 32},
                 {"b64", 64}, {"u64", 64}, {"s64", 64}, {"f64", 64}};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        ordered(plain[i].name, plain[i].bits);
    sim_end(&s);
    return tap_done();
}
