/* Any bytes as a launch contract and, behind a line "==", arguments NAME=VALUE, one a line. Buffers
 * are empty and in memory: no file is opened, and nothing large is made. */
#include <config.h>

#include "run/args.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void bind(struct arena *a, const struct contract *c, const char *text, struct diags *d)
{
    struct run *r = run_new(a, c, d);
    VEC(struct run_arg) args = {0};
    for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n"), eq = strcspn(line, "=\n");
        if (eq < n) {
            char *name = arena_strndup(a, line, eq);
            struct run_param *p = run_find_param(r, name);
            if (!p || !run_is_buffer(p))
                *VEC_PUSH(a, &args) = (struct run_arg){
                    .name = name, .value = arena_strndup(a, line + eq + 1, n - eq - 1)};
        }
        line += n + (line[n] == '\n');
    }
    for (size_t i = 0; i < r->nparam; i++)
        if (run_is_input(&r->param[i]))
            *VEC_PUSH(a, &args) = (struct run_arg){.name = r->param[i].sym->name, .data = ""};
    if (run_bind_args(r, args.v, args.n, "the PTX"))
        run_check(r, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    const char *text = arena_strndup(a, (const char *)data, size), *mark = strstr(text, "\n==\n");
    size_t len = mark ? (size_t)(mark - text) + 1 : strlen(text);
    struct contract_file *f = contract_read(a, source_new(a, "fuzz", text, len), d);
    for (size_t i = 0; f && i < f->v.n; i++)
        bind(a, f->v.v[i], mark ? mark + 4 : "", d);
    struct buf out = buf_in(a);
    diags_format(d, "fuzz", false, &out);
    arena_free(a);
    return 0;
}
