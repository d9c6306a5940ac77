/* Every form of every instruction with defined bits, on chosen operands.
 *
 *     sim_opcodes                     the simulator against an H100 (tests/opcodes/h100.golden), as
 *                                     TAP
 *                 --golden=FILE       against that file
 *     sim_opcodes --device=cuda [--write=FILE] [FORM...]
 *                                     a GPU against the simulator; FILE gets what the GPU gave
 *                 --part=K/N          only the K-th of N parts, from 0 on
 *     sim_opcodes --device=cpu --write=FILE
 *                                     the same without a GPU: what the simulator gives
 *     sim_opcodes --list              the forms
 *     sim_opcodes --print[=TARGET]    their kernels for the target; a line of dashes parts modules
 *
 * A FORM is the beginning of a name. Exit status: 0 all the same, 1 some not, 2 usage, 77 no such
 * device.
 */
#include <config.h>

#include "../unit/tap.h"
#include "approx.h"
#include "base/io.h"
#include "golden.h"
#include "run.h"

static struct opc_forms forms;

/* ---- which forms ----------------------------------------------------------------------------- */

struct choice {
    size_t at, end;
    char **names;                    /* NULL at the end; none: all */
    const struct ptx_target *target; /* forms that it has not are left out; NULL: none is */
};

static bool wanted(const struct choice *c, const struct opc_form *f)
{
    if (c->target && (f->sm % 1000 > c->target->sm || (f->sm >= 1000 && !c->target->suffix)))
        return false;
    bool found = !*c->names;
    for (char **name = c->names; *name && !found; name++)
        found = strncmp(f->name, *name, strlen(*name)) == 0;
    return found;
}

static size_t next_forms(struct choice *c, const struct opc_form *f[OPC_MODULE])
{
    size_t n = 0;
    for (; c->at < c->end && n < OPC_MODULE; c->at++)
        if (wanted(c, &forms.list.v[c->at]))
            f[n++] = &forms.list.v[c->at];
    return n;
}

static size_t number_of(const struct opc_form *f)
{
    return (size_t)(f - forms.list.v);
}

/* ---- a device against the simulator ---------------------------------------------------------- */

static const char *const kind_text[OPC_KINDS] = {"special", "ordinary", "raw", "edge"};

static void print_words(const char *before, const uint64_t *word, unsigned n)
{
    fputs(before, stdout);
    for (unsigned k = 0; k < n; k++)
        printf(" %" PRIx64, word[k]);
}

/* Tuples with another result; of each kind a few are shown. */
static unsigned differences(const struct opc_form *f, const uint64_t *got, const uint64_t *want)
{
    static uint64_t tuples[OPC_TUPLES * OPC_SOURCES];
    unsigned n = 0, of[OPC_KINDS] = {0};
    const size_t s = opc_stride(f->nsrc), r = opc_stride(f->nres);
    opc_tuples(f, tuples);
    for (unsigned i = 0; i < OPC_TUPLES; i++) {
        if (memcmp(got + i * r, want + i * r, r * 8) == 0)
            continue;
        n++;
        if (of[i / OPC_BLOCK]++ >= 6)
            continue;
        printf("  %s:", kind_text[i / OPC_BLOCK]);
        print_words("", tuples + i * s, f->nsrc);
        print_words(" gives", got + i * r, f->nres);
        print_words(", simulated", want + i * r, f->nres);
        putchar('\n');
    }
    return n;
}

static int compare(const struct device_ops *ops, FILE *to, struct choice c)
{
    struct opc_machine m, sim;
    const struct opc_form *f[OPC_MODULE];
    uint64_t *got[OPC_MODULE], *want[OPC_MODULE];
    unsigned differ = 0, absent = 0;
    if (!opc_open(&m, ops, OPC_PLAIN) || !opc_open(&sim, &sim_device, OPC_PLAIN)) {
        fputs("sim_opcodes: no such device\n", stderr);
        return 77;
    }
    for (size_t n; (n = next_forms(&c, f));) {
        struct arena *a = arena_new();
        opc_run(&m, a, f, n, got);
        opc_run(&sim, a, f, n, want);
        for (size_t i = 0; i < n; i++) {
            const bool both = got[i] && want[i];
            if (got[i] && to)
                opc_golden_write(to, &forms, number_of(f[i]),
                                 opc_golden_text(a, &forms, number_of(f[i]), got[i]));
            const unsigned bad = both && !f[i]->approx ? differences(f[i], got[i], want[i]) : 0;
            absent += !both;
            differ += bad > 0;
            if (bad || !both)
                printf("%s: %s%s%u differ\n", f[i]->name, got[i] ? "" : "refused, ",
                       want[i] ? "" : "not simulated, ", bad);
        }
        fflush(stdout);
        if (to)
            fflush(to);
        arena_free(a);
    }
    printf("%u forms differ, %u not run\n", differ, absent);
    opc_close(&m);
    opc_close(&sim);
    return differ || absent;
}

/* ---- the simulator against the golden file --------------------------------------------------- */

struct tally {
    unsigned forms, differ, absent, without;
};

/* Says which kinds of tuples differ, and what the simulator gives where the file has it in full. */
static void show_difference(const struct opc_form *f, const char *want, const char *got)
{
    struct buf b = buf_in(forms.arena);
    if (strlen(want) < OPC_DIGEST) {
        tap_note("%s: the golden line is cut off", f->name);
        return;
    }
    for (unsigned k = 0; k < OPC_KINDS; k++)
        if (strncmp(want + k * OPC_LETTERS, got + k * OPC_LETTERS, OPC_LETTERS) != 0)
            buf_printf(&b, " %s", kind_text[k]);
    tap_note("%s differs on%s operands", f->name, buf_text(&b));
    if (strcmp(want + OPC_DIGEST, got + OPC_DIGEST) != 0)
        tap_note("  want%s\n#   got %s", want + OPC_DIGEST, got + OPC_DIGEST);
}

static void replay_some(struct opc_machine *m, const struct opc_golden *g,
                        const struct opc_form *const *f, size_t n, struct tally *t)
{
    struct arena *a = arena_new();
    uint64_t *got[OPC_MODULE];
    opc_run(m, a, f, n, got);
    for (size_t i = 0; i < n; i++) {
        const char *want = g->text[number_of(f[i])];
        t->forms++;
        t->absent += !got[i];
        t->without += !want;
        if (!want || !got[i])
            continue;
        const char *text = opc_golden_text(a, &forms, number_of(f[i]), got[i]);
        if (strcmp(text, want) == 0)
            continue;
        t->differ++;
        show_difference(f[i], want, text);
    }
    arena_free(a);
}

/* With KAIO_QUICK each form is replayed on one kind of simulator, in turn: what code a form runs
 * shows in a third of the time. */
static bool is_replayed(const struct opc_machine *m, size_t form)
{
    return !getenv("KAIO_QUICK") || form % OPC_HOWS == (size_t)m->how;
}

/* All forms of one instruction, from number at on; those in a module that come together. Returns
 * the next number. */
static size_t replay_name(struct opc_machine *m, const struct opc_golden *g, size_t at)
{
    const struct opc_form *f[OPC_MODULE];
    const char *name = ptx_op_name(forms.list.v[at].inst.op);
    struct tally t = {0};
    size_t n = 0;
    for (; at < forms.list.n && strcmp(name, ptx_op_name(forms.list.v[at].inst.op)) == 0; at++) {
        if (forms.list.v[at].approx || (m->how == OPC_PARTIAL && forms.list.v[at].warp) ||
            !is_replayed(m, at))
            continue;
        f[n++] = &forms.list.v[at];
        if (n == OPC_MODULE) {
            replay_some(m, g, f, n, &t);
            n = 0;
        }
    }
    if (n)
        replay_some(m, g, f, n, &t);
    if (t.forms)
        ok(!t.differ && !t.absent, "%s: %u forms as on an H100%s", name, t.forms - t.without,
           opc_how_text[m->how]);
    return at;
}

/* ---- approximations -------------------------------------------------------------------------- */

struct worst {
    double promised, ulp, apart, hardware;
    unsigned special; /* results for special operands that differ from the hardware's */
};

static void measure_sample(const struct opc_form *f, const uint64_t *tuple, uint64_t sim,
                           uint64_t gpu, struct worst *w)
{
    for (unsigned h = 0; h < opc_halves(f); h++) {
        const struct opc_error e = opc_error(f, tuple, gpu, h);
        const double apart = opc_apart(f, sim, gpu, h);
        if (e.open)
            continue;
        if (!e.special) {
            w->hardware = fmax(w->hardware, e.promised);
            w->apart = fmax(w->apart, apart);
        } else if (apart > 0) {
            w->special++;
            tap_note("%s of %" PRIx64 " %" PRIx64 " is %" PRIx64 ", on an H100 %" PRIx64, f->name,
                     tuple[0], f->nsrc > 1 ? tuple[1] : 0, sim, gpu);
        }
    }
}

static struct worst measure(const struct opc_form *f, const uint64_t *got, const char *text)
{
    static uint64_t tuples[OPC_TUPLES * OPC_SOURCES];
    const unsigned s = opc_stride(f->nsrc), r = opc_stride(f->nres);
    struct worst w = {0};
    opc_tuples(f, tuples);
    for (unsigned i = 0; i < OPC_TUPLES; i++) {
        for (unsigned h = 0; h < opc_halves(f); h++) {
            const struct opc_error e = opc_error(f, tuples + i * s, got[i * r], h);
            w.promised = fmax(w.promised, e.promised);
            w.ulp = fmax(w.ulp, e.ulp);
        }
        if (i % OPC_APPROX_STEP)
            continue;
        char *end;
        const uint64_t gpu = strtoull(text, &end, 16);
        text = end;
        measure_sample(f, tuples + i * s, got[i * r], gpu, &w);
    }
    return w;
}

static void check_approx(struct opc_machine *m, const struct opc_form *f, const char *text)
{
    struct arena *a = arena_new();
    uint64_t *got;
    const char *how = opc_how_text[m->how];
    opc_run(m, a, &f, 1, &got);
    const struct opc_promise *p = opc_promise(f);
    if (ok(got && p && text, "%s: there is something to compare%s", f->name, how)) {
        const struct worst w = measure(f, got, text);
        ok(w.promised <= 1, "%s: at most %.2g ulp off, %.2g of what is promised%s", f->name, w.ulp,
           w.promised, how);
        ok(w.hardware <= 1, "%s: an H100 uses %.2g of it", f->name, w.hardware);
        eq_int(w.special, 0, "%s: for special operands they agree, for others to %.3g ulp%s",
               f->name, w.apart, how);
    }
    arena_free(a);
}

/* ---- all ------------------------------------------------------------------------------------- */

/* The tests that have the rest do have it. */
static void check_elsewhere(struct arena *a, const char *dir)
{
    for (size_t i = 0; opc_elsewhere(i); i++) {
        const struct opc_elsewhere *e = opc_elsewhere(i);
        if (!e->test || !*e->test)
            continue;
        struct diags *d = diags_new(a);
        const struct source *src =
            io_read(a, d, arena_printf(a, "%s/tests/unit/%s.c", dir, e->test), (size_t)1 << 20);
        ok(src && strstr(src->text, e->name), "%s is tested by %s", e->name, e->test);
    }
    eq_int(forms.missing.n, 0, "every instruction has a form here, or a test of its own");
    for (size_t i = 0; i < forms.missing.n; i++)
        tap_note("%s", forms.missing.v[i]);
}

static void replay(const struct opc_golden *g, enum opc_how how)
{
    struct opc_machine m;
    if (!ok(opc_open(&m, &sim_device, how), "a simulator%s", opc_how_text[how]))
        return;
    for (size_t at = 0; at < forms.list.n;)
        at = replay_name(&m, g, at);
    for (size_t i = 0; i < forms.list.n; i++)
        if (forms.list.v[i].approx && g->text[i] && is_replayed(&m, i))
            check_approx(&m, &forms.list.v[i], g->text[i]);
    opc_close(&m);
}

/* Forms without a golden result. */
static unsigned count_missing(const struct opc_golden *g)
{
    unsigned n = 0;
    for (size_t i = 0; i < forms.list.n; i++)
        if (!g->text[i] && n++ < 20)
            tap_note("%s has no golden result", forms.list.v[i].name);
    return n;
}

static int check(const char *path)
{
    const char *dir = getenv("KAIO_SRCDIR");
    dir = dir ? dir : ".";
    if (!path)
        path = arena_printf(forms.arena, "%s/tests/opcodes/h100.golden", dir);
    struct diags *d = diags_new(forms.arena);
    const struct source *src = io_read(forms.arena, d, path, (size_t)16 << 20);
    check_elsewhere(forms.arena, dir);
    if (ok(src, "%s", path)) {
        const struct opc_golden g = opc_golden_read(&forms, src->text);
        eq_int(g.strangers, 0, "the file has results only for forms that there are");
        eq_int(count_missing(&g), g.missing, "and, but for those it counts, for all of them");
        for (int how = 0; how < OPC_HOWS; how++)
            replay(&g, (enum opc_how)how);
    }
    return tap_done();
}

static int print(const char *target, struct choice c)
{
    const struct opc_form *f[OPC_MODULE];
    c.target = target ? ptx_target_find(target, strlen(target)) : NULL;
    for (size_t n; (n = next_forms(&c, f));) {
        struct arena *a = arena_new();
        puts("----");
        fputs(opc_module(a, f, n, target, false), stdout);
        arena_free(a);
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct arena *arena = arena_new();
    const char *device = NULL, *path = NULL;
    FILE *to = NULL;
    size_t part, parts;
    int i = 1;
    opc_list_forms(arena, &forms);
    struct choice c = {.end = forms.list.n};
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        c.names = argv + i + 1;
        if (strncmp(argv[i], "--device=", 9) == 0) {
            device = argv[i] + 9;
        } else if (strncmp(argv[i], "--golden=", 9) == 0) {
            path = argv[i] + 9;
        } else if (strncmp(argv[i], "--write=", 8) == 0 && (to = fopen(argv[i] + 8, "w"))) {
            continue;
        } else if (sscanf(argv[i], "--part=%zu/%zu", &part, &parts) == 2 && part < parts) {
            c.at = forms.list.n * part / parts;
            c.end = forms.list.n * (part + 1) / parts;
        } else if (strncmp(argv[i], "--print", 7) == 0) {
            return print(argv[i][7] ? argv[i] + 8 : NULL, c);
        } else if (strcmp(argv[i], "--list") == 0) {
            for (size_t k = 0; k < forms.list.n; k++)
                puts(forms.list.v[k].name);
            return 0;
        } else {
            return 2;
        }
    }
    int status;
    if (device)
        status = compare(strcmp(device, "cpu") == 0 ? &sim_device : &cuda_device, to, c);
    else
        status = check(path);
    if (to && fclose(to))
        status = 1;
    arena_free(arena);
    return status;
}
