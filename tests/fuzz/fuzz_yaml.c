/* Any bytes as a spec file, as programs, and as a launch contract: nothing crashes, nothing takes
 * long, an error is reported when and only when nothing is returned, every diagnostic can be
 * printed, and a contract that was read is written so that it reads as itself again. */
#include <config.h>

#include "program/program.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good)
{
    if (!good)
        abort();
}

static void print(const struct diags *d)
{
    struct buf b = buf_in(d->arena);
    diags_format(d, "fuzz", false, &b);
}

static void contract(struct arena *a, const struct source *src)
{
    struct diags *d = diags_new(a), *again = diags_new(a);
    struct contract_file *f = contract_read(a, src, d);
    struct buf once = buf_in(a), twice = buf_in(a);
    must((f != NULL) == (d->nerror == 0));
    print(d);
    if (!f)
        return;
    for (size_t i = 0; i < f->v.n; i++)
        contract_write(f->v.v[i], &once);
    f = contract_read(a, source_new(a, "again", buf_text(&once), once.len), again);
    print(again);
    must(f != NULL);
    for (size_t i = 0; i < f->v.n; i++)
        contract_write(f->v.v[i], &twice);
    must(strcmp(buf_text(&once), buf_text(&twice)) == 0);
}

/* A program that can be built has a contract that can be read, behind those of its kernels. */
static void program(struct arena *a, const struct spec *s, const struct spec_file *file)
{
    static const struct program_options none;
    struct diags *d = diags_new(a), *again = diags_new(a);
    struct buf b = buf_in(a);
    if (s->program->uses.n) /* which are files */
        return;
    const struct program *p = program_build(a, s, file, &none, "sm_80", d);
    must((p != NULL) == (d->nerror == 0));
    print(d);
    if (!p)
        return;
    for (size_t i = 0; i < p->kernels.n; i++)
        contract_write(contract_of_spec(a, p->kernels.v[i].spec, "sm_80"), &b);
    contract_write(p->contract, &b);
    const bool good = contract_read(a, source_new(a, "contract", buf_text(&b), b.len), again);
    print(again);
    must(good);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    const struct source *src = source_new(a, "fuzz.yaml", (const char *)data, size);
    static const struct spec_define define = {"n", 64, DT_VOID};
    struct spec_file *f = spec_read(a, src, &define, size % 2, d);
    must((f != NULL) == (d->nerror == 0));
    print(d);
    for (size_t i = 0; f && i < f->specs.n; i++) {
        struct buf b = buf_in(a);
        if (f->specs.v[i]->program) {
            program(a, f->specs.v[i], f);
            continue;
        }
        contract_write(contract_of_spec(a, f->specs.v[i], "sm_80"), &b);
        struct diags *again = diags_new(a);
        must(contract_read(a, source_new(a, "contract", buf_text(&b), b.len), again) != NULL);
    }
    contract(a, src);
    arena_free(a);
    return 0;
}
