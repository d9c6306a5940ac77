/* Graphs of attention as cuDNN takes them, without a GPU: every descriptor of every form is made
 * and finished. The library is the fake one of tests/fake_cudnn.c, or the one that KAIO_CUDNN_LIB
 * names: a real one checks shapes and types of all operations without a device, too.
 */
#include <config.h>

#include "base/arena.h"
#include "cuda/cudnn.h"
#include "tap.h"

#include <stdlib.h>

static struct sdpa_tensor tensor(enum dtype type, uint64_t x, uint64_t y, uint64_t r, uint64_t c)
{
    return (struct sdpa_tensor){true, type, {x, y, r, c}, {y * r * c, r * c, c, 1}};
}

static struct sdpa_problem plain(uint64_t b, uint64_t h, uint64_t hk, uint64_t m, uint64_t n,
                                 uint64_t d)
{
    struct sdpa_problem p = {
        .batch = b, .heads = h, .kv_heads = hk, .m = m, .n = n, .d = d, .e = d, .scale = 0.125};
    p.tensor[SDPA_Q] = p.tensor[SDPA_O] = tensor(DT_F16, b, h, m, d);
    p.tensor[SDPA_K] = p.tensor[SDPA_V] = tensor(DT_F16, b, hk, n, d);
    p.tensor[SDPA_LSE] = tensor(DT_F32, b, h, m, 1);
    return p;
}

static void gradients(struct sdpa_problem *p)
{
    p->backward = true;
    p->tensor[SDPA_DO] = p->tensor[SDPA_DQ] = p->tensor[SDPA_Q];
    p->tensor[SDPA_DK] = p->tensor[SDPA_DV] = p->tensor[SDPA_K];
}

static void lengths(struct sdpa_problem *p)
{
    p->tensor[SDPA_ROWS] = p->tensor[SDPA_LENGTHS] = tensor(DT_I32, p->batch, 1, 1, 1);
}

static void check(const struct cudnn *lib, const char *name, const struct sdpa_problem *p)
{
    struct sdpa_plan plan = {0};
    const char *call = "";
    char text[2000] = "";
    int r = cu_cudnn_graph(lib, NULL, p, &plan, &call);
    if (r)
        lib->LastError(text, sizeof text);
    ok(r == 0, "%s: %zu operations", name, plan.nop);
    if (r)
        tap_note("%s gave %d after %zu operations: %s", call, r, plan.nop, text);
    cu_cudnn_drop(lib, &plan);
}

int main(void)
{
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    struct cudnn lib = {0};
    const char *build = getenv("KAIO_BUILDDIR");
    if (!getenv("KAIO_CUDNN_LIB"))
        setenv("KAIO_CUDNN_LIB", arena_printf(a, "%s/tests/libfakecudnn.so", build ? build : "."),
               1);
    ok(cu_cudnn_load(&lib, d), "the library is there");
    if (d->nerror)
        return tap_done();
    tap_note("%s", lib.name);

    struct sdpa_problem p = plain(2, 4, 4, 128, 256, 64);
    check(&lib, "full", &p);
    p.causal = true;
    check(&lib, "causal from the top", &p);
    p.shift = 128;
    check(&lib, "causal to the last key", &p);
    p.window = 64;
    check(&lib, "window", &p);
    p = plain(2, 8, 2, 128, 128, 128);
    p.causal = true;
    check(&lib, "grouped heads", &p);
    p.cap = 30;
    check(&lib, "soft cap", &p);
    p = plain(2, 4, 4, 128, 128, 64);
    p.causal = true;
    p.tensor[SDPA_SLOPE] = tensor(DT_F32, 1, 4, 1, 1);
    check(&lib, "alibi", &p);
    p = plain(2, 4, 4, 128, 128, 64);
    p.tensor[SDPA_BIAS] = tensor(DT_F16, 1, 4, 128, 128);
    check(&lib, "bias", &p);
    p = plain(2, 4, 4, 128, 128, 64);
    lengths(&p);
    check(&lib, "lengths", &p);
    p.causal = true;
    check(&lib, "lengths and causal", &p);
    p = plain(2, 8, 2, 1, 128, 64);
    p.tensor[SDPA_LSE].is_there = false;
    lengths(&p);
    p.tensor[SDPA_PAGES] = tensor(DT_I32, 2, 1, 8, 1);
    p.tensor[SDPA_K] = p.tensor[SDPA_V] = tensor(DT_F16, 40, 2, 16, 64);
    check(&lib, "pages", &p);
    p = plain(2, 4, 4, 128, 128, 64);
    gradients(&p);
    check(&lib, "backward", &p);
    p.causal = true;
    check(&lib, "backward, causal", &p);
    p = plain(2, 8, 2, 128, 128, 64);
    gradients(&p);
    p.causal = true;
    check(&lib, "backward, grouped heads", &p);
    arena_free(a);
    return tap_done();
}
