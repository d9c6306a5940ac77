/* Functions that an entry calls. */
#include "sim.h"

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"

static const char calls_ptx[] = HEAD
    /* through memory, returning early for some */
    ".func (.param .b32 result) collatz(.param .b32 x)\n{\n"
    "    .reg .pred %p<3>;\n    .reg .b32 %r<5>;\n    ld.param.u32 %r1, [x];\n    mov.u32 %r2, 0;\n"
    "$next:\n    setp.le.u32 %p1, %r1, 1;\n    @%p1 st.param.b32 [result], %r2;\n    @%p1 ret;\n"
    "    add.u32 %r2, %r2, 1;\n    and.b32 %r3, %r1, 1;\n    setp.eq.u32 %p2, %r3, 0;\n"
    "    @%p2 shr.u32 %r1, %r1, 1;\n    @%p2 bra $next;\n"
    "    mad.lo.u32 %r1, %r1, 3, 1;\n    bra $next;\n}\n"
    /* in registers; it calls the other */
    ".func (.reg .b32 %both) twice(.reg .b32 %a, .reg .b32 %b)\n{\n"
    "    .reg .b32 %r<3>;\n    .param .b32 in;\n    .param .b32 out;\n"
    "    st.param.b32 [in], %a;\n    call.uni (out), collatz, (in);\n    ld.param.b32 %r1, [out];\n"
    "    add.u32 %a, %a, %b;\n    call.uni (%r2), collatz, (%a);\n"
    "    mad.lo.u32 %both, %r1, 1000, %r2;\n    ret;\n}\n"
    /* a structure by its address in the caller, and nothing back */
    ".func fill(.param .b64 where, .param .align 4 .b8 pair[8])\n{\n"
    "    .reg .b64 %rd<2>;\n    .reg .b32 %r<3>;\n    ld.param.u64 %rd1, [where];\n"
    "    ld.param.v2.u32 {%r1, %r2}, [pair];\n    add.u32 %r1, %r1, %r2;\n    st.u32 [%rd1], %r1;\n"
    "    ret;\n}\n"
    ".func (.param .b32 r) again(.param .b32 x)\n{\n    .reg .b32 %r<3>;\n    .param .b32 y;\n"
    "    ld.param.u32 %r1, [x];\n    st.param.b32 [y], %r1;\n    call.uni (y), again, (y);\n"
    "    st.param.b32 [r], %r1;\n    ret;\n}\n"
    ".visible .entry both(.param .u64 out)\n{\n    .param .b32 y;\n    st.param.b32 [y], 3;\n"
    "    call.uni (y), collatz, (y);\n    ret;\n}\n"
    ".extern .func (.param .b32 r) elsewhere(.param .b32 x);\n"
    ".visible .entry k(.param .u64 out)\n{\n"
    "    .reg .pred %p<3>;\n    .reg .b32 %r<9>;\n    .reg .b64 %rd<5>;\n    .local .align 4 .b8 "
    "spot[8];\n"
    "    ld.param.u64 %rd1, [out];\n    mov.u32 %r1, %tid.x;\n    mov.u32 %r2, 0;\n"
    "    and.b32 %r3, %r1, 1;\n    setp.eq.u32 %p1, %r3, 1;\n"
    "    @%p1 call (%r2), twice, (%r1, 7);\n"
    "    mov.u32 %r4, 0;\n    mov.u32 %r6, 0;\n"
    "$loop:\n    {\n    .param .b32 x;\n    .param .b32 y;\n    st.param.b32 [x], %r4;\n"
    "    call.uni (y), collatz, (x);\n    ld.param.b32 %r5, [y];\n    }\n"
    "    add.u32 %r6, %r6, %r5;\n    add.u32 %r4, %r4, 1;\n    setp.lt.u32 %p2, %r4, %r1;\n"
    "    @%p2 bra $loop;\n"
    "    mov.u64 %rd2, spot;\n    cvta.local.u64 %rd2, %rd2;\n"
    "    {\n    .param .b64 w;\n    .param .align 4 .b8 p[8];\n    st.param.b64 [w], %rd2;\n"
    "    st.param.b32 [p+0], %r6;\n    st.param.b32 [p+4], %r2;\n    call.uni fill, (w, p);\n    "
    "}\n"
    "    ld.local.u32 %r7, [spot];\n    activemask.b32 %r8;\n    popc.b32 %r8, %r8;\n"
    "    mad.lo.u32 %r7, %r8, 1000000, %r7;\n"
    "    mul.wide.u32 %rd3, %r1, 4;\n    add.u64 %rd1, %rd1, %rd3;\n    st.global.u32 [%rd1], "
    "%r7;\n"
    "    ret;\n}\n"
    ".visible .entry endless(.param .u64 out)\n{\n    .reg .b32 %r<3>;\n    mov.u32 %r1, 3;\n"
    "    call (%r2), again, (%r1);\n    ret;\n}\n"
    ".visible .entry outside(.param .u64 out)\n{\n    .reg .b32 %r<3>;\n    mov.u32 %r1, 3;\n"
    "    call (%r2), elsewhere, (%r1);\n    ret;\n}\n"
    ".func bad(.param .b64 where)\n{\n    .reg .b64 %rd<2>;\n    ld.param.u64 %rd1, [where];\n"
    "    st.global.u64 [%rd1], %rd1;\n    ret;\n}\n"
    ".visible .entry fault(.param .u64 out)\n{\n    .reg .b64 %rd<2>;\n    mov.u64 %rd1, 64;\n"
    "    call bad, (%rd1);\n    ret;\n}\n";

static uint32_t collatz(uint32_t x)
{
    uint32_t n = 0;
    for (; x > 1; n++)
        x = x % 2 ? 3 * x + 1 : x / 2;
    return n;
}

static uint32_t want(uint32_t i)
{
    uint32_t sum = collatz(0);
    for (uint32_t k = 1; k < i; k++)
        sum += collatz(k);
    return 32000000 + sum + (i % 2 ? collatz(i) * 1000 + collatz(i + 7) : 0);
}

int main(void)
{
    struct sim s = sim_begin((struct device_options){.threads = 1});
    uint32_t got[64];
    if (sim_load_text(&s, "calls.ptx", calls_ptx) != DEVICE_OK) {
        fputs(sim_errors(&s), stderr);
        return 1;
    }
    const uint64_t out = sim_buffer(&s, "out", "u32[64]", 64, 4, NULL, false);
    sim_arg(&s, out, 8);
    if (!ok(sim_go(&s, "k", 1, 64) == DEVICE_OK, "functions are called"))
        tap_note("%s", sim_errors(&s));
    sim_fetch(&s, got, out, sizeof got);
    int bad = 0;
    for (uint32_t i = 0; i < 64; i++)
        if (got[i] != want(i) && bad++ < 4)
            tap_note("thread %u: %u, want %u", i, got[i], want(i));
    eq_int(bad, 0, "... and compute, in loops, for some lanes, by each other");

    sim_arg(&s, out, 8);
    eq_int(sim_go(&s, "endless", 1, 1), DEVICE_FAULT, "a function that calls itself without end");
    ok(strstr(sim_errors(&s), "'endless': calls go too deep: a thread's stack has 16384 bytes"),
       "... runs out of its stack");
    sim_arg(&s, out, 8);
    eq_int(sim_go(&s, "outside", 1, 1), DEVICE_REFUSED, "a function without a body");
    ok(strstr(sim_errors(&s), "no function 'elsewhere' with a body"), "... is refused by name");
    sim_arg(&s, out, 8);
    eq_int(sim_go(&s, "both", 1, 1), DEVICE_REFUSED, "one variable for argument and result");
    ok(strstr(sim_errors(&s), "can't pass 'y' like this"), "... is refused by name");
    sim_arg(&s, out, 8);
    eq_int(sim_go(&s, "fault", 1, 1), DEVICE_FAULT, "a fault in a function");
    ok(strstr(sim_errors(&s), "calls.ptx:126:5: error: kernel 'fault'"), "... is told at its line");
    sim_end(&s);
    return tap_done();
}
