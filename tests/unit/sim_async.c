/* Asynchronous copies: when their bytes arrive, and what --check=async says of kernels that use
 * them too early. Each wrong kernel has a correct twin, with which nothing is found. */
#include "sim.h"

#define HEAD                                                                     \
    ".version 7.5\n.target sm_80\n.address_size 64\n"                            \
    ".visible .entry k(.param .u64 x, .param .u64 y)\n{\n"                       \
    "    .reg .b32 %r<24>;\n    .reg .b64 %rd<8>;\n    .reg .pred %p<4>;\n"      \
    "    .shared .align 16 .b32 tile[768];\n"                                    \
    "    ld.param.u64 %rd1, [x];\n    ld.param.u64 %rd2, [y];\n"                 \
    "    mov.u32 %r1, %tid.x;\n    mov.u32 %r2, tile;\n"                         \
    "    mad.lo.u32 %r3, %r1, 16, %r2;\n    xor.b32 %r4, %r1, 63;\n"             \
    "    mad.lo.u32 %r4, %r4, 16, %r2;\n    mad.wide.u32 %rd3, %r1, 16, %rd1;\n" \
    "    mad.wide.u32 %rd4, %r1, 16, %rd2;\n    setp.lt.u32 %p1, %r1, 32;\n"     \
    "    mov.u32 %r9, 7;\n"
/* %r3: the thread's 16 bytes of tile; %r4: those of thread 63 - i; %rd3, %rd4: its 16 bytes of x
 * and y; %p1: of the first warp. Each line of a kernel below is one of these. */
#define COPY       "    cp.async.cg.shared.global [%r3], [%rd3], 16;\n"
#define NEXT       "    cp.async.cg.shared.global [%r3+1024], [%rd3+1024], 16;\n"
#define COMMIT     "    cp.async.commit_group;\n"
#define WAIT0      "    cp.async.wait_group 0;\n"
#define WAIT1      "    cp.async.wait_group 1;\n"
#define WAITALL    "    cp.async.wait_all;\n"
#define BARRIER    "    bar.sync 0;\n"
#define OWN        "    ld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%r3];\n"
#define OTHER      "    ld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%r4];\n"
#define OWN2       "    ld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%r3+1024];\n"
#define ROWS       "    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r3];\n"
#define OTHER_ROWS "    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r4];\n"
#define STORE      "    st.shared.b32 [%r3+4], %r9;\n"
#define SAVE       "    st.global.v4.b32 [%rd4], {%r10, %r11, %r12, %r13};\n"

static const struct {
    const char *what, *right, *wrong, *find;
    const char *line; /* the instruction that is at fault, as the report quotes it */
} pairs[] = {
    {"a wait for the thread's own copy", COPY COMMIT WAIT0 OWN SAVE, COPY COMMIT OWN SAVE,
     "load at element 0 of 'tile' (shared b32[768]), to which an asynchronous copy is in flight",
     "ld.shared.v4.b32"},
    {"a commit before the wait", COPY COMMIT WAIT0 OWN SAVE, COPY WAIT0 OWN SAVE,
     "the copy's group is still open", "ld.shared.v4.b32"},
    {"wait_all needs no commit", COPY WAITALL OWN SAVE, COPY COMMIT WAIT1 OWN SAVE,
     "or wait for more groups", "ld.shared.v4.b32"},
    {"a barrier behind the wait", COPY COMMIT WAIT0 BARRIER OTHER SAVE,
     COPY COMMIT WAIT0 OTHER SAVE,
     "of 'tile' (shared b32[768]), which another thread's asynchronous copy brings: no barrier",
     "ld.shared.v4.b32"},
    {"the barrier behind the wait, not before", COPY COMMIT WAIT0 BARRIER OTHER SAVE,
     COPY COMMIT BARRIER WAIT0 OTHER SAVE,
     "put __syncthreads() behind the wait of the copy's own thread", "ld.shared.v4.b32"},
    {"a barrier of the block, not of the warp", COPY COMMIT WAIT0 BARRIER OTHER SAVE,
     COPY COMMIT WAIT0 "    bar.warp.sync -1;\n" OTHER SAVE, "no barrier is between them",
     "ld.shared.v4.b32"},
    {"the wait of the group that is used", COPY COMMIT NEXT COMMIT WAIT1 OWN SAVE WAIT0 OWN2 SAVE,
     COPY COMMIT NEXT COMMIT WAIT1 OWN2 SAVE, "cp.async.wait_group must come between them",
     "ld.shared.v4.b32"},
    {"a wait by every thread", COPY COMMIT WAIT0 BARRIER OTHER SAVE,
     COPY COMMIT "    @%p1 cp.async.wait_group 0;\n" BARRIER OTHER SAVE,
     "put __syncthreads() behind the wait of the copy's own thread", "ld.shared.v4.b32"},
    {"ldmatrix behind wait and barrier", COPY COMMIT WAIT0 BARRIER ROWS SAVE,
     COPY COMMIT BARRIER ROWS SAVE,
     "load at element 128 of 'tile' (shared b32[768]), to which an asynchronous copy", "ldmatrix"},
    {"a barrier between copies and ldmatrix", COPY COMMIT WAIT0 BARRIER OTHER_ROWS SAVE,
     COPY COMMIT WAIT0 OTHER_ROWS SAVE, "which another thread's asynchronous copy brings",
     "ldmatrix"},
    {"a store behind the wait", COPY COMMIT WAIT0 STORE OWN SAVE, COPY COMMIT STORE WAIT0 OWN SAVE,
     "store at element 1 of 'tile'", "st.shared.b32"},
    {"an atomic behind the wait",
     COPY COMMIT WAIT0 BARRIER "    red.shared.add.u32 [%r4], %r9;\n" BARRIER OWN SAVE,
     COPY COMMIT "    red.shared.add.u32 [%r3], %r9;\n" WAIT0 BARRIER OWN SAVE,
     "atomic at element 0 of 'tile'", "red.shared.add.u32"},
    {"one copy to a place at a time", COPY COMMIT WAIT0 COPY COMMIT WAIT0 OWN SAVE,
     COPY COMMIT COPY COMMIT WAIT0 OWN SAVE,
     "asynchronous copy at element 0 of 'tile' (shared b32[768]), to which an asynchronous copy "
     "is in flight",
     "cp.async.cg"},
    {"a barrier before the tile is used again",
     COPY COMMIT WAIT0 BARRIER OTHER SAVE BARRIER COPY COMMIT WAIT0 OWN SAVE,
     COPY COMMIT WAIT0 BARRIER OTHER SAVE COPY COMMIT WAIT0 OWN SAVE,
     "before the copy if it is to see what was there", "cp.async.cg"},
    {"the source stays until the wait",
     COPY COMMIT WAIT0 "    st.global.b32 [%rd3+8], %r9;\n" OWN SAVE,
     COPY COMMIT "    st.global.b32 [%rd3+8], %r9;\n" WAIT0 OWN SAVE,
     "element 2 of 'x' (u32[1024], 1024 elements) was changed while this asynchronous copy",
     "cp.async.cg"},
    {"a copy and another thread's store to its source",
     COPY COMMIT WAIT0 BARRIER "    xor.b32 %r5, %r1, 63;\n    mad.wide.u32 %rd5, %r5, 16, %rd1;\n"
                               "    st.global.b32 [%rd5], %r9;\n" OWN SAVE,
     COPY COMMIT WAIT0 "    xor.b32 %r5, %r1, 63;\n    mad.wide.u32 %rd5, %r5, 16, %rd1;\n"
                       "    st.global.b32 [%rd5], %r9;\n" OWN SAVE,
     "race on element", "st.global.b32"},
    {"what no copy brings is undefined", COPY COMMIT WAIT0 OWN SAVE,
     "    cp.async.ca.shared.global [%r3], [%rd3], 8;\n" COMMIT WAIT0 OWN SAVE,
     "load of 4 bytes at element 2 of 'tile' (shared b32[768]), where nothing was written",
     "ld.shared.v4.b32"},
    {"zeros are defined",
     "    cp.async.cg.shared.global [%r3], [%rd3], 16, 8;\n" COMMIT WAIT0 OWN SAVE,
     "    cp.async.cg.shared.global [%r3], [%rd4], 16;\n" COMMIT WAIT0 OWN SAVE,
     "where nothing was written", "ld.shared.v4.b32"},
    {"an address that is aligned", "    cp.async.ca.shared.global [%r3+8], [%rd3+8], 8;\n",
     "    cp.async.cg.shared.global [%r3+8], [%rd3], 16;\n",
     "store of 16 bytes at element 2 of 'tile' (shared b32[768]), which is misaligned",
     "cp.async.cg"},
    {"a source that is aligned", "    cp.async.ca.shared.global [%r3], [%rd3+4], 4;\n",
     "    cp.async.ca.shared.global [%r3], [%rd3+4], 8;\n",
     "load of 8 bytes at element 1 of 'x' (u32[1024], 1024 elements), which is misaligned",
     "cp.async.ca"},
    {"no more bytes read than copied", "    cp.async.ca.shared.global [%r3], [%rd3], 8, 7;\n",
     "    mov.u32 %r5, 12;\n    cp.async.ca.shared.global [%r3], [%rd3], 8, %r5;\n",
     "cp.async of 8 bytes is to read 12 of them", "cp.async.ca"},
    {"a source inside its buffer, unless nothing is read",
     "    mov.u32 %r5, 0;\n    cp.async.cg.shared.global [%r3], [%rd3+8192], 16, %r5;\n",
     "    cp.async.cg.shared.global [%r3], [%rd3+8192], 16;\n",
     "load of 16 bytes at element 2048 of 'x'", "cp.async.cg"},
    {"a target inside shared memory", "    cp.async.cg.shared.global [%r3+2048], [%rd3], 16;\n",
     "    cp.async.cg.shared.global [%r3+2064], [%rd3], 16;\n", "store of 16 bytes at",
     "cp.async.cg"},
};

static struct sim begin(const char *body, unsigned check, uint64_t *y)
{
    static uint32_t x[1024];
    struct sim s = sim_begin((struct device_options){.threads = 1, .check = check});
    const char *text = arena_printf(s.arena, "%s%s    ret;\n}\n", HEAD, body);
    if (sim_load_text(&s, "test.ptx", text) != DEVICE_OK) {
        fputs(sim_errors(&s), stderr);
        abort();
    }
    for (uint32_t i = 0; i < 1024; i++)
        x[i] = i + 1;
    sim_arg(&s, sim_buffer(&s, "x", "u32[1024]", 1024, 4, x, false), 8);
    *y = sim_buffer(&s, "y", "u32[256]", 256, 4, NULL, false);
    sim_arg(&s, *y, 8);
    return s;
}

static void twins(void)
{
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        uint64_t y;
        struct sim s = begin(pairs[i].right, DEVICE_CHECK_ALL, &y);
        const bool fine = sim_go(&s, "k", 1, 64) == DEVICE_OK;
        const char *text = sim_errors(&s);
        if (!ok(fine && !*text, "%s: nothing found", pairs[i].what))
            tap_note("%s", text);
        sim_end(&s);
        s = begin(pairs[i].wrong, DEVICE_CHECK_ALL, &y);
        const bool fault = sim_go(&s, "k", 1, 64) == DEVICE_FAULT;
        text = sim_errors(&s);
        if (!ok(fault && strstr(text, pairs[i].find) && strstr(text, pairs[i].line),
                "%s: found without", pairs[i].what))
            tap_note("%s", text);
        sim_end(&s);
    }
}

/* ---- values, without checks ------------------------------------------------------------------ */

static uint32_t y[256];

static bool run(const char *body)
{
    uint64_t at;
    struct sim s = begin(body, 0, &at);
    const bool fine = sim_go(&s, "k", 1, 64) == DEVICE_OK;
    if (!fine)
        tap_note("%s", sim_errors(&s));
    sim_fetch(&s, y, at, sizeof y);
    sim_end(&s);
    return fine;
}

static void values(void)
{
    int bad = 0;
    bool fine = run(COPY COMMIT WAIT0 BARRIER OTHER SAVE);
    for (uint32_t i = 0; i < 256; i++)
        bad += y[i] != (63 - i / 4) * 4 + i % 4 + 1;
    ok(fine && !bad, "what other threads copied");

    fine = run("    st.shared.b32 [%r3], %r9;\n" COPY COMMIT OWN SAVE);
    for (uint32_t i = 0; i < 64; i++)
        bad += y[4 * i] != 7 || y[4 * i + 1] != 0;
    ok(fine && !bad, "before the wait a thread finds what was there");

    fine = run(COPY COMMIT NEXT COMMIT WAIT1 OWN "    mov.b32 %r14, %r10;\n" OWN2
                                                 "    mov.b32 %r11, %r14;\n" SAVE);
    for (uint32_t i = 0; i < 64; i++)
        bad += y[4 * i] != 0 || y[4 * i + 1] != 4 * i + 1;
    ok(fine && !bad, "wait_group 1 leaves the last group in flight");

    fine = run("    cp.async.ca.shared.global [%r3], [%rd3+12], 4;\n"
               "    cp.async.ca.shared.global [%r3+8], [%rd3], 8, 5;\n"
               "    mov.b32 %r5, 0;\n    st.shared.b32 [%r3+4], %r9;\n" WAITALL OWN SAVE);
    for (uint32_t i = 0; i < 64; i++)
        bad += y[4 * i] != 4 * i + 4 || y[4 * i + 1] != 7 || y[4 * i + 2] != 4 * i + 1 ||
               y[4 * i + 3] != (4 * i + 2) % 256;
    ok(fine && !bad, "4 and 8 bytes, and fewer bytes read than copied");

    fine = run("    st.shared.v4.b32 [%r3], {%r9, %r9, %r9, %r9};\n"
               "    cp.async.ca.shared.global [%r3], [%rd3], 8, %p1;\n"
               "    selp.b32 %r5, 0, 4, %p1;\n"
               "    @!%p1 cp.async.ca.shared.global [%r3+8], [%rd3], 8, %r5;\n" WAITALL OWN SAVE);
    for (uint32_t i = 0; i < 64; i++)
        bad += i < 32 ? y[4 * i] != 0 || y[4 * i + 1] != 0 || y[4 * i + 2] != 7
                      : y[4 * i] != 4 * i + 1 || y[4 * i + 2] != 4 * i + 1 || y[4 * i + 3] != 0;
    ok(fine && !bad, "a predicate that ignores the source, a guard, a size in a register");

    fine = run("    mov.b64 %rd6, 0;\n"
               "    cp.async.cg.shared.global.L2::cache_hint [%r3], [%rd3], 16, %rd6;\n"
               "    cp.async.cg.shared.global.L2::cache_hint.L2::128B [%r3+1024], [%rd3], 16, 16, "
               "%rd6;\n" WAITALL OWN2 SAVE);
    for (uint32_t i = 0; i < 256; i++)
        bad += y[i] != i + 1;
    ok(fine && !bad, "cache hints");

    /* lanes commit different groups */
    fine = run(COPY "    @%p1 cp.async.commit_group;\n" NEXT COMMIT WAIT1 OWN SAVE);
    for (uint32_t i = 0; i < 64; i++)
        bad += y[4 * i] != (i < 32 ? 4 * i + 1 : 0);
    ok(fine && !bad, "groups are each thread's own");
}

/* ---- which checks say what ------------------------------------------------------------------- */

static void expect(const char *body, unsigned check, uint32_t grid, const char *find,
                   const char *what)
{
    uint64_t at;
    struct sim s = begin(body, check, &at);
    const bool fine = sim_go(&s, "k", grid, 64) == DEVICE_OK;
    const char *text = sim_errors(&s);
    if (!ok(find ? !fine && strstr(text, find) : fine && !*text, "%s", what))
        tap_note("%s", text);
    sim_end(&s);
}

static void checks(void)
{
    expect(COPY COMMIT WAIT0 OTHER SAVE, DEVICE_CHECK_RACE, 1, "race on element",
           "without async, a missing barrier is a race");
    expect(COPY COMMIT OWN SAVE, DEVICE_CHECK_RACE, 1, NULL,
           "a race is never between a thread and itself");
    expect(COPY COMMIT WAIT0 BARRIER OTHER SAVE COPY COMMIT WAIT0 OWN SAVE, DEVICE_CHECK_ASYNC, 1,
           "no barrier is between them", "async alone finds the missing barrier");
    expect("    st.shared.b32 [%r3], %r9;\n" OTHER SAVE, DEVICE_CHECK_ASYNC, 1, NULL,
           "async alone says nothing of races without copies");
    expect(COPY COMMIT OWN SAVE, DEVICE_CHECK_ALL & ~DEVICE_CHECK_ASYNC, 1,
           "where nothing was written", "without async, bytes in flight are undefined");
    expect("    st.shared.v4.b32 [%r3], {%r9, %r9, %r9, %r9};\n" BARRIER OTHER BARRIER COPY COMMIT,
           DEVICE_CHECK_ALL, 300, NULL, "a block may end with copies in flight, others follow it");
}

int main(void)
{
    twins();
    values();
    checks();
    return tap_done();
}
