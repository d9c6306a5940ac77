#include <config.h>

#include "golden.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- writing --------------------------------------------------------------------------------- */

static uint32_t digest(const struct opc_form *f, const uint64_t *got, unsigned block)
{
    const size_t n = OPC_BLOCK * opc_stride(f->nres);
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < n; i++) {
        h = (h ^ got[block * n + i]) * 0x9e3779b97f4a7c15;
        h ^= h >> 29;
    }
    return (uint32_t)(h >> (64 - 6 * OPC_LETTERS));
}

static void print_digest(struct buf *b, const struct opc_form *f, const uint64_t *got)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-";
    for (unsigned k = 0; k < OPC_KINDS; k++) {
        const uint32_t h = digest(f, got, k);
        for (unsigned i = OPC_LETTERS; i--;)
            buf_printf(b, "%c", letters[h >> 6 * i & 63]);
    }
}

/* The results that are there in full: some of each kind. */
enum { SAMPLES = 6, SAMPLE_STEP = 89, SAMPLE_FIRST = 5 };
_Static_assert(SAMPLE_FIRST + (SAMPLES - 1) * SAMPLE_STEP < OPC_TUPLES, "samples are tuples");

static void print_samples(struct buf *b, const struct opc_form *f, const uint64_t *got)
{
    for (unsigned k = 0; k < SAMPLES; k++) {
        const uint64_t *r = got + (SAMPLE_FIRST + k * SAMPLE_STEP) * opc_stride(f->nres);
        for (unsigned i = 0; i < f->nres && i < 2; i++)
            buf_printf(b, "%s%" PRIx64, i ? "," : " ", r[i]);
    }
}

static void print_approx(struct buf *b, const struct opc_form *f, const uint64_t *got)
{
    for (unsigned i = 0; i < OPC_TUPLES; i += OPC_APPROX_STEP)
        buf_printf(b, "%s%" PRIx64, i % (OPC_APPROX_STEP * 16) ? " " : "\n  ",
                   got[i * opc_stride(f->nres)]);
}

const char *opc_golden_text(struct arena *a, const struct opc_forms *forms, size_t i,
                            const uint64_t *got)
{
    const struct opc_form *f = &forms->list.v[i];
    struct buf b = buf_in(a);
    if (f->approx) {
        print_approx(&b, f, got);
        return buf_text(&b);
    }
    print_digest(&b, f, got);
    if (i == 0 || f->inst.op != f[-1].inst.op)
        print_samples(&b, f, got);
    return buf_text(&b);
}

void opc_golden_write(FILE *to, const struct opc_forms *forms, size_t i, const char *text)
{
    const struct opc_form *f = &forms->list.v[i];
    const char *name = ptx_op_name(f->inst.op);
    if (i == 0 || strcmp(name, ptx_op_name(f[-1].inst.op)) != 0)
        fprintf(to, "%s\n", name);
    fprintf(to, "%s%s%s\n", f->name + strlen(name), *text == '\n' ? "" : " ", text);
}

/* ---- reading --------------------------------------------------------------------------------- */

struct entry {
    const char *name;
    size_t form;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

static struct entry *index_forms(struct opc_forms *forms)
{
    struct entry *e = ARENA_ARRAY(forms->arena, forms->list.n, struct entry);
    for (size_t i = 0; i < forms->list.n; i++)
        e[i] = (struct entry){forms->list.v[i].name, i};
    qsort(e, forms->list.n, sizeof *e, by_name);
    return e;
}

/* Behind a line and those that begin with a blank below it. */
static const char *entry_end(const char *p)
{
    do {
        p += strcspn(p, "\n");
        p += *p == '\n';
    } while (*p == ' ');
    return p;
}

struct opc_golden opc_golden_read(struct opc_forms *forms, const char *text)
{
    struct opc_golden g = {.text = ARENA_ARRAY(forms->arena, forms->list.n, const char *)};
    const struct entry *index = index_forms(forms);
    const char *name = "";
    for (const char *p = text, *end; *p; p = end) {
        end = entry_end(p);
        const size_t len = strcspn(p, " \n");
        const char *word = arena_strndup(forms->arena, p, len);
        if (*p != '.') {
            name = word;
            if (strcmp(name, "missing") == 0)
                g.missing = (unsigned)strtoul(p + len, NULL, 10);
            continue;
        }
        const struct entry key = {.name = arena_printf(forms->arena, "%s%s", name, word)};
        const struct entry *e = bsearch(&key, index, forms->list.n, sizeof *index, by_name);
        const char *rest = p + len + (p[len] == ' ');
        if (e)
            g.text[e->form] =
                arena_strndup(forms->arena, rest, (size_t)(end - rest - (end > rest)));
        g.strangers += !e;
    }
    return g;
}
