/* How reports name instructions, source lines, threads and places in memory. */
#include <config.h>

#include "sim/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/io.h"
#include "sim/check.h"
#include "sim/heap.h"

struct span sim_span_of(const struct sim_launch *l, uint32_t op)
{
    const struct ptx_func *f = l->code->func;
    if (!f->items.n)
        return f->span;
    while (op + 1 < l->code->nop && f->items.v[l->code->op[op].item].kind == PTX_I_LABEL)
        op++;
    return f->items.v[l->code->op[op].item].span;
}

const char *sim_dim_text(struct arena *a, const struct device_dim *n, uint64_t i)
{
    return arena_printf(a, "(%" PRIu64 ",%" PRIu64 ",%" PRIu64 ")", i % n->x, i / n->x % n->y,
                        i / n->x / n->y);
}

const char *sim_thread_text(const struct sim_launch *l, uint64_t block, uint32_t thread)
{
    struct arena *a = l->arena;
    return arena_printf(a, "block %s, thread %s", sim_dim_text(a, &l->what->grid, block),
                        sim_dim_text(a, &l->what->block, thread));
}

/* ---- source lines ---------------------------------------------------------------------------- */

/* The name of  .file NUMBER "name"; NULL when the module has none. */
static const char *file_name(const struct sim_launch *l, uint32_t number)
{
    const struct ptx_module *m = l->code->module;
    for (size_t i = 0; i < m->items.n; i++) {
        unsigned n;
        int at = 0;
        const char *text = m->items.v[i].text;
        if (m->items.v[i].kind != PTX_I_TEXT || !text ||
            sscanf(text, ".file %u \"%n", &n, &at) < 1 || !at || n != number)
            continue;
        return arena_strndup(l->arena, text + at, strcspn(text + at, "\""));
    }
    return NULL;
}

/* The file that a .loc names, read once; NULL when it is not to be had. What it holds outlives the
 * launch, as d does. */
static const struct source *source_file(struct sim_launch *l, uint32_t number, const char *name,
                                        struct diags *d)
{
    struct stat st;
    for (size_t i = 0; i < l->sources.n; i++)
        if (l->sources.v[i].file == number)
            return l->sources.v[i].text;
    struct sim_source *s = VEC_PUSH(l->arena, &l->sources);
    s->file = number;
    if (stat(name, &st) == 0 && S_ISREG(st.st_mode))
        s->text =
            io_read(d->arena, diags_new(l->arena), arena_strdup(d->arena, name), IO_TEXT_LIMIT);
    return s->text;
}

/* A line from a column on; no length when the source has no such line. */
static struct span line_span(const struct source *src, uint32_t line, uint32_t column)
{
    const char *p = src->text, *end = p + src->len;
    for (; line > 1 && p < end; line--) {
        const char *eol = memchr(p, '\n', (size_t)(end - p));
        p = eol ? eol + 1 : end;
    }
    const char *eol = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
    const size_t len = (size_t)((eol ? eol : end) - p), skip = column ? column - 1 : 0;
    if (line > 1 || skip >= len)
        return (struct span){0};
    return (struct span){src, (size_t)(p - src->text) + skip, 1};
}

/* here: said of a line that is shown; there: behind the name of a place that can't be. */
static void note_place(struct sim_launch *l, const struct ptx_item *loc, const char *here,
                       const char *there, struct diags *d)
{
    const char *name = file_name(l, loc->file);
    const struct source *src = name ? source_file(l, loc->file, name, d) : NULL;
    const struct span at = src ? line_span(src, loc->line, loc->column) : SPAN_NONE;
    if (at.len)
        diag_note(d, at, "%s", here);
    else
        diag_note(d, SPAN_NONE, "%s:%u:%u %s", name ? name : "line", loc->line, loc->column, there);
}

/* The .loc that holds for item i, or the one of that place that comes before it; NULL: none. */
static const struct ptx_item *loc_before(const struct ptx_func *f, uint32_t i,
                                         const struct ptx_item *place)
{
    while (i-- > 0) {
        const struct ptx_item *it = &f->items.v[i];
        if (it->kind == PTX_I_LOC &&
            (!place ||
             (it->file == place->file && it->line == place->line && it->column == place->column)))
            return it;
    }
    return NULL;
}

/* The string at a label of a debug section, which is written as bytes; NULL: it is not there. */
static const char *debug_string(const struct sim_launch *l, struct arena *a, const char *label)
{
    const struct ptx_module *m = l->code->module;
    const char *at = arena_printf(l->arena, "\n%s:", label), *p = NULL;
    struct buf b = buf_in(a);
    for (size_t i = 0; i < m->items.n && !p; i++)
        if (m->items.v[i].kind == PTX_I_TEXT && m->items.v[i].text)
            p = strstr(m->items.v[i].text, at);
    for (p = p ? p + strlen(at) : NULL; p;) {
        int skip = 0;
        unsigned char c;
        p += strspn(p, " \t\n,");
        sscanf(p, ".b8 %n", &skip);
        if (sscanf(p + skip, "%hhu", &c) != 1 || !c)
            break;
        buf_putc(&b, (char)c);
        p += skip + (int)strcspn(p + skip, ", \t\n");
    }
    return b.len ? buf_text(&b) : NULL;
}

/* What  .loc ..., function_name LABEL  names. */
static const char *function_name(const struct sim_launch *l, struct arena *a, const char *label)
{
    if (strncmp(label, "$fn_", 4) == 0) /* kaio-emit's, which has no debug sections */
        return arena_strdup(a, label + 4);
    const char *name = debug_string(l, a, label);
    return name ? sim_plain_name(a, name) : arena_strdup(a, label);
}

enum { MOST_CALLS = 8 };

/* A .loc, and the calls, from the inside out, that bring what is there to where it was inlined. */
struct way {
    unsigned n;
    struct ptx_item at[1 + MOST_CALLS];   /* file, line, column */
    const char *function[1 + MOST_CALLS]; /* whose call it is; of the first NULL */
};

/* The way by which a record comes from the source; n 0: nothing says so. */
static struct way way_of(const struct sim_launch *l, struct arena *a, uint32_t op)
{
    struct way w = {0};
    const struct ptx_func *f = l->code->func;
    const struct ptx_item *loc = loc_before(f, l->code->op[op].item, NULL);
    if (!loc)
        return w;
    w.at[w.n++] = *loc;
    while (loc && w.n <= MOST_CALLS) {
        struct ptx_item call = {0};
        char func[128];
        if (sscanf(loc->text, ", function_name %127[^,], inlined_at %u %u %u", func, &call.file,
                   &call.line, &call.column) != 4)
            break;
        w.at[w.n] = call;
        w.function[w.n++] = function_name(l, a, func);
        loc = loc_before(f, (uint32_t)(loc - f->items.v), &call);
    }
    return w;
}

void sim_note_no_lines(struct sim_launch *l, struct diags *d)
{
    const struct ptx_func *f = l->code->func;
    if (!l->check || l->check->told_lines)
        return;
    for (size_t i = 0; i < f->items.n; i++)
        if (f->items.v[i].kind == PTX_I_LOC)
            return;
    l->check->told_lines = true;
    diag_note(d, SPAN_NONE,
              "the PTX does not name the lines of its source: make it with 'kaio-emit -g' or 'nvcc "
              "-lineinfo'");
}

void sim_note_source(struct sim_launch *l, uint32_t op, struct diags *d)
{
    const struct way w = way_of(l, l->arena, op);
    if (w.n)
        note_place(l, &w.at[0], "this is where this instruction comes from",
                   "is where this instruction comes from", d);
    for (unsigned i = 1; i < w.n; i++)
        note_place(l, &w.at[i],
                   arena_printf(l->arena, "in '%s', which is called here", w.function[i]),
                   arena_printf(l->arena, "calls '%s', which it is in", w.function[i]), d);
}

const struct finding_place *sim_sources(const struct sim_launch *l, struct arena *a, uint32_t op,
                                        size_t *n)
{
    const struct way w = way_of(l, a, op);
    struct finding_place *p = ARENA_ARRAY(a, w.n ? w.n : 1, struct finding_place);
    for (*n = 0; *n < w.n; ++*n) {
        const char *name = file_name(l, w.at[*n].file);
        p[*n] = (struct finding_place){.file = name ? arena_strdup(a, name) : NULL,
                                       .line = w.at[*n].line,
                                       .column = w.at[*n].column,
                                       .function = w.function[*n]};
    }
    return p;
}

/* ---- places ---------------------------------------------------------------------------------- */

/* "element 7" or "element [3, 1]" of an array with those extents. */
static const char *element_text(struct arena *a, int64_t i, unsigned ndim, const uint64_t *dim)
{
    struct buf b = buf_in(a);
    uint64_t count = 1, rest = (uint64_t)i;
    for (unsigned k = 0; k < ndim; k++)
        count *= dim[k];
    if (ndim < 2 || i < 0 || rest >= count)
        return arena_printf(a, "element %" PRId64, i);
    for (unsigned k = 0; k < ndim; k++) {
        count /= dim[k];
        buf_printf(&b, "%s%" PRIu64, k ? ", " : "element [", rest / count);
        rest %= count;
    }
    buf_printf(&b, "]");
    return buf_text(&b);
}

static const char *place_in_buffer(struct arena *a, const struct sim_buffer *b, int64_t off)
{
    const struct device_label *l = &b->label;
    const unsigned bytes = l->element_bits / 8;
    const char *name = l->name ? arena_printf(a, "'%s'", l->name)
                               : arena_printf(a, "a %s", b->what);
    const char *type = l->type && *l->type ? arena_printf(a, "%s, ", l->type) : "";
    if (bytes && off % bytes == 0)
        return arena_printf(a, "%s of %s (%s%" PRIu64 " elements)",
                            element_text(a, off / bytes, l->ndim, l->dim), name, type,
                            b->bytes / bytes);
    return arena_printf(a, "byte %" PRId64 " of %s (%s%" PRIu64 " bytes)", off, name, type,
                        b->bytes);
}

/* The extents of a variable: from its text when it has several. */
static unsigned extents(const struct ptx_var *v, uint64_t dim[8])
{
    unsigned n = 0;
    for (const char *p = v->shape; p && *p == '[' && n < 8; n++) {
        char *end;
        dim[n] = strtoull(p + 1, &end, 10);
        if (*end != ']' || !dim[n])
            return 0;
        p = end + 1;
    }
    return n;
}

static const char *place_in_var(const struct sim_launch *l, const struct ptx_var *v, int64_t off,
                                unsigned space)
{
    struct arena *a = l->arena;
    const char *where = space == SIM_IN_SHARED ? "shared" : "local";
    const char *name = sim_plain_name(a, v->name);
    const uint64_t one = v->is_array && v->count ? ptx_var_bytes(v) / v->count
                                                 : ptx_type_bits(v->type) / 8;
    uint64_t dim[8];
    const char *shape = !v->is_array ? ""
                        : v->shape   ? v->shape
                        : v->count   ? arena_printf(a, "[%" PRIu64 "]", v->count)
                                     : "[]";
    /* an array of b8 is as likely one of anything else, as nvcc writes it */
    if (!one || off % (int64_t)one || v->type == PTX_B8)
        return arena_printf(a, "byte %" PRId64 " of '%s' (%s %s%s)", off, name, where,
                            ptx_mod_text(v->type), shape);
    return arena_printf(a, "%s of '%s' (%s %s%s)",
                        element_text(a, off / (int64_t)one, extents(v, dim), dim), name, where,
                        ptx_mod_text(v->type), shape);
}

const struct sim_symbol *sim_var_at(const struct sim_launch *l, unsigned space, uint64_t off)
{
    const enum ptx_mod want = space == SIM_IN_SHARED ? PTX_SHARED : PTX_LOCAL;
    const struct sim_symbol *dynamic = NULL;
    for (size_t i = 0; i < l->code->vars.list.n; i++) {
        const struct sim_symbol *s = &l->code->vars.list.v[i];
        if (ptx_space(s->var->space) != want || off < s->address)
            continue;
        if (s->var->is_array && !s->var->count)
            dynamic = s;
        else if (off - s->address < ptx_var_bytes(s->var))
            return s;
    }
    return dynamic;
}

/* The PTX type of an element. */
static enum ptx_mod type_named(const char *name)
{
    for (int m = 1; m < PTX_MOD_COUNT; m++)
        if (ptx_mod_class((enum ptx_mod)m) == PTX_MC_TYPE &&
            strcmp(ptx_mod_text((enum ptx_mod)m), name) == 0)
            return (enum ptx_mod)m;
    return PTX_NONE;
}

void sim_name_arrays(struct arena *a, struct sim_code *code, const struct device_launch *what)
{
    const struct sim_symbol *dynamic = NULL;
    uint64_t base = 0;
    for (size_t i = 0; i < code->vars.list.n; i++) {
        const struct sim_symbol *s = &code->vars.list.v[i];
        if (ptx_space(s->var->space) == PTX_SHARED && s->var->is_array && !s->var->count) {
            dynamic = s;
            base = s->address;
        }
    }
    for (size_t i = 0; dynamic && i < what->narray; i++) {
        const struct device_array *from = &what->array[i];
        struct ptx_var *v = ARENA_NEW(a, struct ptx_var);
        struct buf shape = buf_in(a);
        *v = (struct ptx_var){.name = from->name, .space = PTX_SHARED, .is_array = true};
        v->type =
            type_named(*from->type == 'i' ? arena_printf(a, "s%s", from->type + 1) : from->type);
        v->count = from->ndim ? 1 : 0;
        for (unsigned k = 0; k < from->ndim; k++) {
            v->count *= from->dim[k];
            buf_printf(&shape, "[%" PRIu64 "]", from->dim[k]);
        }
        v->shape = from->ndim > 1 ? buf_text(&shape) : NULL;
        if (v->type && v->count)
            *VEC_PUSH(a, &code->vars.list) = (struct sim_symbol){v, base + from->at};
    }
}

static const char *place_in_block(const struct sim_launch *l, unsigned space, uint64_t off,
                                  const struct ptx_var *var)
{
    const uint64_t bytes = space == SIM_IN_SHARED ? l->shared_bytes : l->code->local_bytes;
    const struct sim_symbol *s = NULL;
    if (var)
        for (size_t i = 0; i < l->code->vars.list.n; i++)
            s = l->code->vars.list.v[i].var == var ? &l->code->vars.list.v[i] : s;
    else if (off < bytes)
        s = sim_var_at(l, space, off);
    /* addresses of 32 bits go round below zero */
    const int64_t at = off >> 32 ? (int64_t)off : (int32_t)(uint32_t)off;
    if (s)
        return place_in_var(l, s->var, at - (int64_t)s->address, space);
    return arena_printf(l->arena, "byte %" PRId64 " of the %s memory (%" PRIu64 " bytes)", at,
                        space == SIM_IN_SHARED ? "block's shared" : "thread's local", bytes);
}

/* The space that an address is in by itself, and where in it; what is a little before a window
 * belongs to it. */
static unsigned space_of(unsigned space, uint64_t address, uint64_t *off)
{
    const uint64_t window = (address + INT32_MAX) >> SIM_WINDOW_BITS;
    *off = address;
    if (space != SIM_IN_GENERIC)
        return space;
    if (window == SIM_WINDOW_SHARED)
        *off -= SIM_SHARED_BASE;
    else if (window == SIM_WINDOW_LOCAL)
        *off -= SIM_LOCAL_BASE;
    return window == SIM_WINDOW_SHARED  ? SIM_IN_SHARED
           : window == SIM_WINDOW_LOCAL ? SIM_IN_LOCAL
                                        : SIM_IN_GLOBAL;
}

const char *sim_place_text(const struct sim_launch *l, unsigned space, uint64_t address,
                           const struct ptx_var *var)
{
    struct arena *a = l->arena;
    const uint64_t window = address >> SIM_WINDOW_BITS;
    uint64_t off;
    space = space_of(space, address, &off);
    const uint64_t rank = off >> SIM_RANK_SHIFT;
    if (space == SIM_IN_SHARED && !var && l->ncluster > 1 && rank && rank <= SIM_MAX_CLUSTER)
        return arena_printf(a,
                            "byte %" PRIu64 " of the shared memory of the cluster's block %" PRIu64
                            " (of %u blocks with %" PRIu64 " bytes)",
                            off & ((1u << SIM_RANK_SHIFT) - 1), (off >> SIM_RANK_SHIFT) - 1,
                            l->ncluster, l->shared_bytes);
    if (space == SIM_IN_SHARED || space == SIM_IN_LOCAL)
        return place_in_block(l, space, off, var);
    const struct sim_buffer *b = sim_mem_near(l->memory, address);
    if (b && b->heap)
        return sim_heap_text(a, b->heap, address - b->base);
    if (b)
        return place_in_buffer(a, b, (int64_t)(address - b->base));
    if (window == SIM_WINDOW_SHARED || window == SIM_WINDOW_LOCAL)
        return arena_printf(a, "address 0x%" PRIx64 ", which is %s memory, not global", address,
                            window == SIM_WINDOW_SHARED ? "shared" : "local");
    return arena_printf(a, "address 0x%" PRIx64 ", which is in no buffer", address);
}

struct sim_where sim_place_of(const struct sim_launch *l, unsigned space, uint64_t address,
                              const struct ptx_var *var)
{
    static const char *const name[] = {
        [SIM_IN_GLOBAL] = "global", [SIM_IN_SHARED] = "shared", [SIM_IN_LOCAL] = "local"};
    struct sim_where w = {0};
    space = space_of(space, address, &w.address);
    w.space = name[space];
    if (space == SIM_IN_GLOBAL) {
        const struct sim_buffer *b = sim_mem_near(l->memory, address);
        w.buffer = b ? b->label.name : NULL;
        return w;
    }
    const struct sim_symbol *s =
        var ? NULL : sim_var_at(l, space, w.address & (((uint64_t)1 << SIM_RANK_SHIFT) - 1));
    w.buffer = var ? var->name : s ? s->var->name : NULL;
    return w;
}
