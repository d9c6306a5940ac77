/* The contract of a program. */
#include <config.h>

#include "program/program.h"

#include <string.h>

/* Each line of the steps behind the two blanks that YAML wants. */
static void indented(const char *text, struct buf *out)
{
    for (const char *p = text, *end; *p; p = *end ? end + 1 : end) {
        end = p + strcspn(p, "\n");
        buf_printf(out, "  %.*s\n", (int)(end - p), p);
    }
}

void program_write(const struct program *p, const char *target, struct buf *out)
{
    struct buf steps = buf_in(out->arena);
    p->contract->target = target;
    contract_write(p->contract, out);
    lang_print_steps(&p->steps, 0, &steps);
    buf_puts(out, "steps: |\n");
    indented(buf_text(&steps), out);
}
