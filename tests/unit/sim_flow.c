/* Threads that go their own ways through random code: what each computes, and how many instructions
 * all of them execute, must be what each would alone. The graphs have loops into which several ways
 * lead, and every block may be anywhere in the text. Several times over, all threads meet at a
 * barrier and take what another one has, too. */
#include "sim.h"

enum { MOST = 24, TABLE = 4, THREADS = 70, STEPS = 60, PHASES = 3 };

enum end { JUMP, BRANCH, BRANCH_NOT, SWITCH, LEAVE, ENDS };

struct block {
    enum end end;
    uint32_t mul, add, mask;
    uint32_t to[TABLE]; /* JUMP, BRANCH: the way taken; SWITCH: by the low bits */
    uint32_t next;      /* BRANCH, LEAVE: otherwise */
};

static uint64_t seed = 1;
static uint32_t roll(uint32_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

/* Near targets are likelier: loops and branches that nest, mostly. */
static uint32_t target(uint32_t from, uint32_t n)
{
    if (roll(4) == 0)
        return roll(n);
    const uint32_t far = roll(5);
    return roll(3) ? (from + 1 + far) % n : (from + n - far % n) % n;
}

static void make(struct block *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        b[i] = (struct block){.end = (enum end)roll(ENDS),
                              .mul = 2 * roll(1000) + 1,
                              .add = roll(100000),
                              .mask = 1u << roll(8),
                              .next = target(i, n)};
        if (b[i].end == LEAVE && roll(3))
            b[i].end = BRANCH;
        for (int k = 0; k < TABLE; k++)
            b[i].to[k] = target(i, n);
    }
}

/* The text, its blocks in random order. */
static const char *text(struct arena *a, const struct block *b, uint32_t n)
{
    struct buf out = buf_in(a);
    uint32_t at[MOST];
    buf_printf(&out,
               ".version 8.0\n.target sm_80\n.address_size 64\n"
               ".visible .entry k(.param .u64 out)\n{\n    .reg .pred %%p<4>;\n"
               "    .reg .b32 %%r<12>;\n    .reg .b64 %%rd<4>;\n    .shared .b32 cell[%d];\n"
               "    mov.u32 %%r1, %%tid.x;\n    mov.u32 %%r2, 0;\n    mov.u32 %%r3, %%tid.x;\n"
               "    mov.u32 %%r6, 0;\n    bra $b0;\n",
               THREADS);
    for (uint32_t i = 0; i < n; i++)
        at[i] = i;
    for (uint32_t i = n; i > 1; i--) {
        const uint32_t k = roll(i), t = at[k];
        at[k] = at[i - 1];
        at[i - 1] = t;
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t id = at[i];
        const struct block *x = &b[id];
        buf_printf(&out,
                   "$b%u:\n    mad.lo.u32 %%r3, %%r3, %u, %u;\n    add.u32 %%r2, %%r2, 1;\n"
                   "    setp.gt.u32 %%p1, %%r2, %d;\n    @%%p1 bra $end;\n",
                   id, x->mul, x->add, STEPS);
        buf_printf(&out,
                   "    shr.u32 %%r4, %%r3, 9;\n    and.b32 %%r5, %%r4, %u;\n"
                   "    setp.ne.u32 %%p2, %%r5, 0;\n",
                   x->mask);
        switch (x->end) {
        case JUMP: buf_printf(&out, "    bra $b%u;\n", x->to[0]); break;
        case BRANCH: buf_printf(&out, "    @%%p2 bra $b%u;\n", x->to[0]); break;
        case BRANCH_NOT: buf_printf(&out, "    @!%%p2 bra $b%u;\n", x->to[0]); break;
        case SWITCH:
            buf_printf(&out, "    and.b32 %%r5, %%r4, 3;\n    brx.idx %%r5, $t%u;\n", id);
            buf_printf(&out, "$t%u: .branchtargets $b%u, $b%u, $b%u, $b%u;\n", id, x->to[0],
                       x->to[1], x->to[2], x->to[3]);
            break;
        default: buf_printf(&out, "    @%%p2 bra $end;\n"); break;
        }
        if (x->end != JUMP && x->end != SWITCH)
            buf_printf(&out, "    bra $b%u;\n", x->next);
    }
    buf_printf(&out,
               "$end:\n    add.u32 %%r3, %%r3, %%r2;\n    mov.u32 %%r7, cell;\n"
               "    mad.lo.u32 %%r8, %%r1, 4, %%r7;\n    st.shared.u32 [%%r8], %%r3;\n"
               "    bar.sync 0;\n    mad.lo.u32 %%r9, %%r1, 5, 1;\n"
               "    rem.u32 %%r9, %%r9, %d;\n    mad.lo.u32 %%r9, %%r9, 4, %%r7;\n"
               "    ld.shared.u32 %%r10, [%%r9];\n    xor.b32 %%r3, %%r3, %%r10;\n"
               "    bar.sync 0;\n    mov.u32 %%r2, 0;\n    add.u32 %%r6, %%r6, 1;\n"
               "    setp.lt.u32 %%p1, %%r6, %d;\n    @%%p1 bra $b0;\n"
               "    ld.param.u64 %%rd1, [out];\n    mul.wide.u32 %%rd2, %%r1, 4;\n"
               "    add.u64 %%rd1, %%rd1, %%rd2;\n    st.global.u32 [%%rd1], %%r3;\n"
               "    ret;\n}\n",
               THREADS, PHASES);
    return buf_text(&out);
}

/* What a thread alone does between two barriers; adds its instructions to count. */
static uint32_t alone(const struct block *b, uint32_t h, uint64_t *count)
{
    uint32_t at = 0, steps = 0;
    for (;;) {
        const struct block *x = &b[at];
        h = h * x->mul + x->add;
        steps++;
        *count += 4;
        if (steps > STEPS)
            break;
        const bool p = (h >> 9) & x->mask;
        const bool taken = x->end == JUMP || (x->end == BRANCH && p) ||
                           (x->end == BRANCH_NOT && !p);
        *count += 4;
        if (x->end == SWITCH) {
            *count += 1;
            at = x->to[(h >> 9) & 3];
            continue;
        }
        if (x->end == LEAVE && p)
            break;
        *count += !taken;
        at = taken ? x->to[0] : x->next;
    }
    return h + steps;
}

static void all(const struct block *b, uint32_t h[THREADS], uint64_t *count)
{
    uint32_t next[THREADS];
    for (uint32_t i = 0; i < THREADS; i++)
        h[i] = i;
    for (int phase = 0; phase < PHASES; phase++) {
        for (uint32_t i = 0; i < THREADS; i++)
            next[i] = alone(b, h[i], count);
        for (uint32_t i = 0; i < THREADS; i++)
            h[i] = next[i] ^ next[(5 * i + 1) % THREADS];
        *count += THREADS * 15;
    }
    *count += THREADS * (5 + 5);
}

static bool agree(struct sim *s, const struct block *b, uint32_t n)
{
    uint32_t got[THREADS], want[THREADS];
    uint64_t count = 0;
    const char *ptx = text(s->arena, b, n);
    if (sim_load_text(s, "flow.ptx", ptx) != DEVICE_OK)
        return false;
    const uint64_t out = sim_buffer(s, "out", "", THREADS, 4, NULL, false);
    sim_arg(s, out, 8);
    const bool ran = sim_go(s, "k", 1, THREADS) == DEVICE_OK;
    sim_fetch(s, got, out, sizeof got);
    sim_device.release(s->dev, out);
    all(b, want, &count);
    const bool same = ran && memcmp(got, want, sizeof got) == 0;
    if (!same || s->stats.thread_instructions != count) {
        tap_note("%s%s", sim_errors(s), ptx);
        tap_note("%llu instructions, want %llu", (unsigned long long)s->stats.thread_instructions,
                 (unsigned long long)count);
        return false;
    }
    return true;
}

int main(void)
{
    const char *rounds = getenv("KAIO_ROUNDS");
    const int n = rounds ? atoi(rounds) : 300;
    int good = 0;
    for (int i = 0; i < n; i++) {
        struct sim s = sim_begin((struct device_options){.threads = 1});
        struct block b[MOST];
        const uint32_t blocks = 1 + roll(MOST);
        make(b, blocks);
        const bool fine = agree(&s, b, blocks);
        sim_end(&s);
        good += fine;
        if (!fine)
            break;
    }
    eq_int(good, n, "random graphs");
    return tap_done();
}
