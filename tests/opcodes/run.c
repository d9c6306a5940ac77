#include <config.h>

#include "run.h"

#include <stdio.h>
#include <string.h>

#include "sim/sim.h"

const char *const opc_how_text[OPC_HOWS] = {"", " (baseline)", " (partial warps)"};

bool opc_open(struct opc_machine *m, const struct device_ops *ops, enum opc_how how)
{
    *m = (struct opc_machine){.ops = ops, .arena = arena_new(), .how = how};
    struct diags *d = diags_new(m->arena);
    const struct device_options options = {.threads = 2};
    if (ops->count(d) <= 0 || ops->open(m->arena, 0, &options, &m->dev, d) != DEVICE_OK)
        return false;
    if (how == OPC_BASELINE)
        sim_use_baseline(m->dev);
    return ops->alloc(m->dev, OPC_TUPLES * OPC_SOURCES * 8, NULL, &m->in, d) == DEVICE_OK &&
           ops->alloc(m->dev, OPC_TUPLES * OPC_RESULTS * 8, NULL, &m->out, d) == DEVICE_OK;
}

void opc_close(struct opc_machine *m)
{
    if (m->dev)
        m->ops->close(m->dev);
    arena_free(m->arena);
}

size_t opc_result_bytes(const struct opc_form *f)
{
    return OPC_TUPLES * opc_stride(f->nres) * 8;
}

/* The kernel's parameters: in, out, then the table, then which threads to leave out. */
static bool launch(struct opc_machine *m, const struct opc_form *f, const char *entry,
                   struct diags *d)
{
    unsigned char table[OPC_TABLE];
    uint32_t without;
    struct device_stats stats;
    for (unsigned i = 0; i < OPC_TABLE; i++)
        table[i] = opc_table_byte(i);
    const void *arg[4] = {&m->in, &m->out};
    size_t arg_bytes[4] = {8, 8}, narg = 2;
    if (f->param) {
        arg[narg] = table;
        arg_bytes[narg++] = sizeof table;
    }
    if (m->how == OPC_PARTIAL) {
        arg[narg] = &without;
        arg_bytes[narg++] = sizeof without;
    }
    const struct device_launch l = {.entry = entry,
                                    .grid = {OPC_KINDS, 1, 1},
                                    .block = {OPC_BLOCK, 1, 1},
                                    .args = arg,
                                    .arg_bytes = arg_bytes,
                                    .narg = narg};
    for (without = 0; without < (m->how == OPC_PARTIAL ? 2 : 1); without++)
        if (m->ops->launch(m->dev, &l, 1, &stats, d) != DEVICE_OK)
            return false;
    return true;
}

static bool run_form(struct opc_machine *m, const struct opc_form *f, unsigned number,
                     uint64_t *got, struct diags *d)
{
    static uint64_t tuples[OPC_TUPLES * OPC_SOURCES];
    char entry[16];
    snprintf(entry, sizeof entry, "f%u", number);
    opc_tuples(f, tuples);
    memset(got, 0, opc_result_bytes(f));
    return m->ops->write(m->dev, m->in, tuples, OPC_TUPLES * opc_stride(f->nsrc) * 8, d) ==
               DEVICE_OK &&
           m->ops->write(m->dev, m->out, got, opc_result_bytes(f), d) == DEVICE_OK &&
           launch(m, f, entry, d) &&
           m->ops->read(m->dev, got, m->out, opc_result_bytes(f), d) == DEVICE_OK;
}

static bool load(struct opc_machine *m, struct arena *a, const struct opc_form *const *f, size_t n,
                 struct diags *d)
{
    const char *target = m->ops == &cuda_device ? "sm_90a" : NULL;
    const char *text = opc_module(a, f, n, target, m->how == OPC_PARTIAL);
    return m->ops->load(m->dev, source_new(a, f[0]->name, text, strlen(text)), d) == DEVICE_OK;
}

static void say(const struct diags *d, const char *what)
{
    for (size_t i = 0; i < d->list.n && i < 3; i++)
        printf("# %s: %s\n", what, d->list.v[i].text);
}

void opc_run(struct opc_machine *m, struct arena *a, const struct opc_form *const *f, size_t n,
             uint64_t **got)
{
    struct diags *d = diags_new(a);
    const bool together = load(m, a, f, n, d);
    for (size_t i = 0; i < n; i++) {
        struct diags *mine = diags_new(a);
        got[i] = ARENA_ARRAY(a, OPC_TUPLES * opc_stride(f[i]->nres), uint64_t);
        if ((together || load(m, a, f + i, 1, mine)) &&
            run_form(m, f[i], together ? (unsigned)i : 0, got[i], mine))
            continue;
        say(mine, f[i]->name);
        got[i] = NULL;
    }
}
