/* The command that repeats a row of --run. */
#include <config.h>

#include "trial.h"

static void print_sums(const struct spec_sums *s, struct buf *b)
{
    const char *const names[] = {"depth", "truncation", "products", "weights"};
    const uint64_t values[] = {s->depth, s->truncation, s->products, s->weights};
    for (size_t k = 0; k < sizeof values / sizeof *values; k++)
        if (values[k] != RUN_NOT_GIVEN)
            buf_printf(b, " --%s=%llu", names[k], (unsigned long long)values[k]);
}

const char *trial_repeat(const struct trial *t, const char *fill)
{
    const struct kernel *k = t->k;
    const struct options *o = k->s->opt;
    struct buf b = buf_in(k->s->a);
    buf_printf(&b, "kaio-verify --run -d %s -t %s --seed=%llu", k->s->info.kind, k->s->target->name,
               (unsigned long long)o->seed);
    if (fill && strcmp(fill, trial_given) != 0)
        buf_printf(&b, " --fill=%s", fill);
    if (o->sample)
        buf_printf(&b, " --sample=%llu", (unsigned long long)o->sample);
    if (o->all)
        buf_puts(&b, " --all");
    if (o->repeat)
        buf_printf(&b, " --repeat=%llu", (unsigned long long)o->repeat);
    if (o->steps)
        buf_puts(&b, " --steps");
    if (o->check)
        buf_printf(&b, " --check=%s", o->check_words);
    if (o->suppressions) {
        buf_puts(&b, " --suppressions=");
        buf_shell_word(&b, o->suppressions);
    }
    if (o->check_seed)
        buf_printf(&b, " --check-seed=%llu", (unsigned long long)o->check_seed);
    for (size_t i = 0; i < o->ninclude; i++) {
        buf_puts(&b, " -I ");
        buf_shell_word(&b, o->include[i]);
    }
    for (size_t i = 0; i < o->ndefine; i++)
        buf_printf(&b, " -D %s", spec_define_text(k->s->a, &o->define[i]));
    for (size_t i = 0; i < k->types.n; i++)
        buf_printf(&b, " -D %s", k->types.v[i]);
    if (!k->one_code)
        buf_printf(&b, " --code=%s", code_names[k->is_fixed ? CODE_FIXED : CODE_GENERIC]);
    print_sums(&o->sums, &b);
    print_tolerance(&o->tolerance, &b);
    if (o->max_instructions)
        buf_printf(&b, " --max-instructions=%llu",
                   (unsigned long long)(o->max_instructions + 1 ? o->max_instructions : 0));
    if (o->ptx) {
        buf_puts(&b, " --ptx=");
        print_word(o->ptx, &b);
    }
    buf_printf(&b, " --kernel=%s ", k->spec->name);
    print_word(k->path, &b);
    buf_printf(&b, "%s%s", *t->words ? " " : "", t->words);
    for (size_t i = 0; i < k->s->inputs.n; i++) {
        buf_putc(&b, ' ');
        print_word(k->s->inputs.v[i], &b);
    }
    return buf_text(&b);
}
