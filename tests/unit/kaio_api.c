/* The public API, as a program that embeds libkaio uses it. */
#include <config.h>

#include "kaio.h"

#include <stdlib.h>
#include <string.h>

#include "tap.h"

static const char saxpy[] = "kernel: saxpy\n"
                            "params:\n"
                            "  x: in f32[n]\n"
                            "  y: inout f32[n]\n"
                            "  alpha: f32 = 2\n"
                            "compute: |\n"
                            "  y[i] = alpha * x[i] + y[i]\n";

enum { N = 1000 };

static void emit_run_verify(struct kaio *k)
{
    float x[N], y[N], before[N];
    for (int i = 0; i < N; i++) {
        x[i] = (float)i;
        y[i] = before[i] = (float)(i % 7);
    }
    char *ptx = NULL;
    size_t len = 0;
    eq_int(kaio_emit(k, "saxpy.yaml", saxpy, strlen(saxpy), NULL, &ptx, &len), KAIO_OK, "emits");
    ok(ptx && strlen(ptx) == len && strstr(ptx, ".visible .entry saxpy"), "gives the PTX");
    struct kaio_arg args[] = {
        {.name = "x", .data = x, .bytes = sizeof x},
        {.name = "y", .data = y, .bytes = sizeof y},
        {.name = "alpha", .value = "3"},
        {.name = "n", .value = "1000"},
    };
    eq_int(kaio_run(k, "cpu", ptx, len, args, 4), KAIO_OK, "runs");
    eq_str(kaio_messages(k), "", "says nothing");
    int wrong = 0;
    for (int i = 0; i < N; i++)
        wrong += y[i] != 3 * x[i] + before[i];
    eq_int(wrong, 0, "computes");

    args[1] = (struct kaio_arg){.name = "y", .data = before, .bytes = sizeof before, .result = y};
    eq_int(kaio_verify(k, "saxpy.yaml", saxpy, strlen(saxpy), args, 4), KAIO_OK, "verifies");
    y[123] += 1;
    eq_int(kaio_verify(k, "saxpy.yaml", saxpy, strlen(saxpy), args, 4), KAIO_MISMATCH,
           "finds a wrong element");
    ok(strstr(kaio_messages(k), "123") != NULL, "names it");

    args[1] = (struct kaio_arg){.name = "y", .data = y, .bytes = sizeof y - 4};
    memcpy(y, before, sizeof y);
    eq_int(kaio_run(k, "cpu", ptx, len, args, 4), KAIO_BAD_INPUT, "refuses too few bytes");
    ok(memcmp(y, before, sizeof y) == 0, "and leaves them alone");
    eq_int(kaio_run(k, "tpu", ptx, len, args, 4), KAIO_BAD_INPUT, "refuses an unknown device");
    eq_int(kaio_run(k, "cpu", ptx, len / 2, args, 4), KAIO_BAD_INPUT, "refuses half a module");
    free(ptx);
}

static void messages(struct kaio *k)
{
    char *ptx;
    size_t len;
    static const char bad[] = "kernel: k\nparams:\n  y: out f32[n]\ncompute: |\n  y[i] = z[i]\n";
    eq_int(kaio_emit(k, "bad.yaml", bad, strlen(bad), "sm_80", &ptx, &len), KAIO_BAD_INPUT,
           "refuses a bad spec");
    ok(strstr(kaio_messages(k), "bad.yaml:5:10: error:") != NULL, "with the position");
    ok(ptx == NULL && len == 0, "and gives nothing");
    eq_int(kaio_emit(k, "s", saxpy, strlen(saxpy), "sm_1", &ptx, &len), KAIO_BAD_INPUT,
           "refuses an unknown target");
    eq_int(kaio_define(k, "n", 64), KAIO_OK, "takes a definition");
    eq_int(kaio_emit(k, "s", saxpy, strlen(saxpy), "sm_80", &ptx, &len), KAIO_OK, "emits");
    ok(ptx && strstr(ptx, "dims: {n: 64}") != NULL, "for the size that was defined");
    free(ptx);
}

int main(void)
{
    struct kaio *k = kaio_new();
    emit_run_verify(k);
    messages(k);
    kaio_free(k);
    kaio_free(NULL);
    return tap_done();
}
