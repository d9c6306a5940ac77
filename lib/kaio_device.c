/* The public API of devices: memory, modules and launches, on a GPU or on the simulator. */
#include <config.h>

#include "call.h"

#include "base/num.h"
#include "base/suppress.h"
#include "ptx/ptx.h"
#include "run/choose.h"
#include "run/tensor_map.h"

#include <ctype.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>

/* Memory that kaio_alloc() (host NULL) or kaio_bind() gave. */
struct held {
    uint64_t address, bytes;
    void *host;
};

struct kaio_device {
    struct kaio *k;
    struct kaio_device *next;
    struct arena *arena;
    const struct device_ops *ops;
    struct device *dev; /* NULL: it did not open */
    struct device_options options;
    struct device_info info;
    struct device_stats stats; /* of the last launch */
    struct suppressions suppressions;
    struct buf *said; /* what the kernel prints in one; NULL: there is none */
    struct kaio_module *modules;
    struct held *held; /* malloc'd */
    size_t nheld, room;
    volatile sig_atomic_t stop;
};
_Static_assert(sizeof(sig_atomic_t) == sizeof(int), "device_options.interrupted is an int");

struct kaio_module {
    struct kaio_device *dev;
    struct kaio_module *next;
    struct arena *arena; /* its text, and what we know of it */
    const struct source *source;
    const struct ptx_module *ptx; /* NULL: the GPU's driver knows more than we do */
    struct device_module *loaded;
};

static enum kaio_status bad(struct call *c, const char *what)
{
    diag_error(c->d, SPAN_NONE, "%s", what);
    return KAIO_BAD_INPUT;
}

/* ---- options --------------------------------------------------------------------------------- */

struct opening {
    const char *name, *options;
    struct kaio_device *dev;
};

static bool number(struct call *c, const char *name, const char *value, uint64_t most, uint64_t *n)
{
    if (num_uint(value, strlen(value), most, n) == NUM_OK)
        return true;
    return diag_error(c->d, SPAN_NONE, "%s: '%s' is no number from 0 to %" PRIu64, name, value,
                      most);
}

static bool set_check(struct call *c, const char *value, struct device_options *o)
{
    const char *word;
    size_t len;
    return device_parse_check(value, &o->check, &word, &len) ||
           diag_error(c->d, SPAN_NONE,
                      "check: '%.*s' is not memory, init, race, sync, async or all", (int)len,
                      word);
}

static bool set_overcommit(struct call *c, const char *value, struct device_options *o)
{
    o->overcommit = true;
    return !value || diag_error(c->d, SPAN_NONE, "option 'overcommit' takes no value");
}

static bool set_option(struct call *c, const char *name, const char *value,
                       struct device_options *o)
{
    static const char *const names[] = {"check", "check-seed", "max-instructions", "threads",
                                        "arch",  "heap",       "overcommit",       NULL};
    uint64_t n = 0;
    if (!strcmp(name, "check"))
        return set_check(c, value ? value : "all", o);
    if (!strcmp(name, "overcommit"))
        return set_overcommit(c, value, o);
    for (size_t i = 0; names[i]; i++)
        if (!value && !strcmp(name, names[i]))
            return diag_error(c->d, SPAN_NONE, "option '%s' needs a value: %s=...", name, name);
    if (!strcmp(name, "check-seed"))
        return number(c, name, value, INT64_MAX, &o->seed);
    if (!strcmp(name, "threads")) {
        const bool good = number(c, name, value, 1024, &n);
        o->threads = (unsigned)n;
        return good;
    }
    if (!strcmp(name, "max-instructions")) {
        const bool good = number(c, name, value, INT64_MAX, &n);
        o->max_instructions = n ? n : UINT64_MAX;
        return good;
    }
    if (!strcmp(name, "heap"))
        return number(c, name, value, UINT64_C(1) << 34, &o->heap_bytes);
    if (!strcmp(name, "arch")) {
        const struct ptx_target *t = ptx_target_find(value, strlen(value));
        o->sm = t ? t->sm : 0;
        return t ||
               diag_error(c->d, SPAN_NONE, "arch: '%s' is no target, as sm_80 or sm_90 are", value);
    }
    const char *near = diag_nearest(name, strlen(name), names);
    return diag_error(c->d, SPAN_NONE, "there is no option '%s'%s%s%s", name,
                      near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static bool set_options(struct call *c, const char *text, struct device_options *o)
{
    for (const char *p = text; *p;) {
        const size_t len = strcspn(p, " \t\n");
        char *name = arena_strndup(c->arena, p, len), *value = strchr(name, '=');
        if (value)
            *value++ = '\0';
        if (len && !set_option(c, name, value, o))
            return false;
        p += len + (p[len] != '\0');
    }
    return true;
}

/* ---- devices --------------------------------------------------------------------------------- */

static void listen(void *ctx, const char *text, size_t n)
{
    const struct kaio_device *v = ctx;
    if (v->said)
        call_print(v->said, text, n);
}

static enum kaio_status open_device(struct call *c)
{
    struct opening *in = c->more;
    struct kaio_device *v = in->dev;
    struct device_choice choice;
    const char *why;
    if (!device_parse(in->name ? in->name : "auto", &choice)) {
        diag_error(c->d, SPAN_NONE, "unknown device '%s': it is auto, cpu or cuda[:N]", in->name);
        return KAIO_BAD_INPUT;
    }
    if (!set_options(c, in->options ? in->options : "", &v->options))
        return KAIO_BAD_INPUT;
    if (v->options.check && choice.ops && choice.ops != &sim_device)
        return bad(c, "checks are made by the simulator: the device must be cpu");
    if (v->options.check)
        choice.ops = &sim_device;
    device_settle(c->arena, &choice, &why);
    v->ops = choice.ops;
    v->options.interrupted = &v->stop;
    v->options.suppressions = &v->suppressions;
    v->options.print = listen;
    v->options.print_ctx = v;
    if (setjmp(*arena_guard(v->arena)))
        return bad(c, "not enough memory");
    const enum device_status s = v->ops->open(v->arena, choice.ordinal, &v->options, &v->dev, c->d);
    arena_unguard(v->arena);
    if (s == DEVICE_OK)
        v->ops->info(v->dev, &v->info);
    else
        v->dev = NULL;
    return call_status(s);
}

enum kaio_status kaio_open(struct kaio *k, const char *name, const char *options,
                           struct kaio_device **dev)
{
    struct kaio_device *v = calloc(1, sizeof *v);
    struct opening in = {name, options, v};
    struct call c = {.k = k, .more = &in};
    *dev = NULL;
    if (v)
        v->arena = arena_new();
    if (!v || !v->arena) {
        free(v);
        return call_no_memory(k);
    }
    v->k = k;
    const enum kaio_status s = call_do(&c, open_device);
    if (s != KAIO_OK) {
        arena_free(v->arena);
        free(v);
        return s;
    }
    v->next = k->devices;
    k->devices = *dev = v;
    return s;
}

void kaio_close(struct kaio_device *dev)
{
    if (!dev)
        return;
    struct arena *a = arena_new();
    if (a)
        dev->ops->enter(dev->dev, diags_new(a));
    while (dev->modules)
        kaio_unload(dev->modules);
    for (size_t i = 0; i < dev->nheld; i++)
        if (dev->held[i].host)
            dev->ops->unbind(dev->dev, dev->held[i].host, dev->held[i].address);
        else
            dev->ops->release(dev->dev, dev->held[i].address);
    dev->ops->close(dev->dev);
    for (struct kaio_device **p = &dev->k->devices; *p; p = &(*p)->next)
        if (*p == dev) {
            *p = dev->next;
            break;
        }
    arena_free(a);
    arena_free(dev->arena);
    free(dev->held);
    free(dev);
}

void kaio_close_all(struct kaio *k)
{
    while (k->devices)
        kaio_close(k->devices);
}

const char *kaio_device_kind(const struct kaio_device *dev)
{
    return dev->info.kind;
}

const char *kaio_device_name(const struct kaio_device *dev)
{
    return dev->info.name;
}

unsigned kaio_device_multiprocessors(const struct kaio_device *dev)
{
    return dev->info.multiprocessors;
}

uint64_t kaio_instructions(const struct kaio_device *dev)
{
    return dev->stats.thread_instructions;
}

double kaio_seconds(const struct kaio_device *dev)
{
    return dev->stats.seconds;
}

void kaio_interrupt(struct kaio_device *dev)
{
    dev->stop = 1;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* What a call about memory or a launch is about. */
struct request {
    struct kaio_device *dev;
    struct kaio_module *m;
    uint64_t address, bytes;
    void *host;
    const void *from;
    const char *name, *type;
    bool read_only;
    const struct kaio_shape *shape;
    const struct kaio_value *value;
    size_t nvalue;
};

/* The call in its device; NULL devices come from failed calls that nobody looked at. */
static enum kaio_status on_device(struct request *r, struct call *c, call_work *f)
{
    if (!r->dev)
        return KAIO_BAD_INPUT;
    c->k = r->dev->k;
    c->more = r;
    return call_do(c, f);
}

static bool enter(struct call *c, enum kaio_status *status)
{
    const struct request *r = c->more;
    *status = call_status(r->dev->ops->enter(r->dev->dev, c->d));
    return *status == KAIO_OK;
}

static struct held *find_held(const struct kaio_device *dev, uint64_t address)
{
    for (size_t i = dev->nheld; i-- > 0;)
        if (dev->held[i].address == address)
            return &dev->held[i];
    return NULL;
}

/* Room for one more, before there is one. */
static bool make_room(struct kaio_device *dev)
{
    if (dev->nheld < dev->room)
        return true;
    const size_t room = dev->room ? 2 * dev->room : 16;
    struct held *v = realloc(dev->held, room * sizeof *v);
    if (!v)
        return false;
    dev->held = v;
    dev->room = room;
    return true;
}

static enum kaio_status take_memory(struct call *c)
{
    struct request *r = c->more;
    struct kaio_device *dev = r->dev;
    const struct device_label none = {.type = ""};
    enum kaio_status s;
    if (!enter(c, &s))
        return s;
    if (r->from && (!r->host || (uintptr_t)r->host % 16))
        return bad(c, "memory to bind must be aligned to 16 bytes; or copy it with kaio_write()");
    if (r->from && !r->bytes)
        return bad(c, "there are no bytes to bind");
    if (!make_room(dev))
        return bad(c, "not enough memory");
    s = call_status(r->from ? dev->ops->bind(dev->dev, r->host, r->bytes, &r->address, c->d)
                            : dev->ops->alloc(dev->dev, r->bytes, &none, &r->address, c->d));
    if (s == KAIO_OK)
        dev->held[dev->nheld++] = (struct held){r->address, r->bytes, r->host};
    return s;
}

enum kaio_status kaio_alloc(struct kaio_device *dev, uint64_t bytes, uint64_t *address)
{
    struct request r = {.dev = dev, .bytes = bytes};
    struct call c = {0};
    const enum kaio_status s = on_device(&r, &c, take_memory);
    *address = s == KAIO_OK ? r.address : 0;
    return s;
}

enum kaio_status kaio_bind(struct kaio_device *dev, void *host, uint64_t bytes, uint64_t *address)
{
    struct request r = {.dev = dev, .bytes = bytes, .host = host, .from = &r};
    struct call c = {0};
    const enum kaio_status s = on_device(&r, &c, take_memory);
    *address = s == KAIO_OK ? r.address : 0;
    return s;
}

static enum kaio_status nothing_at(struct call *c, uint64_t address)
{
    diag_error(c->d, SPAN_NONE, "no memory of kaio_alloc() or kaio_bind() begins at 0x%" PRIx64,
               address);
    return KAIO_BAD_INPUT;
}

static enum kaio_status release(struct call *c)
{
    const struct request *r = c->more;
    struct held *h = find_held(r->dev, r->address);
    enum kaio_status s;
    if (!h)
        return nothing_at(c, r->address);
    if (!enter(c, &s))
        return s;
    const enum device_status done = h->host ? r->dev->ops->unbind(r->dev->dev, h->host, h->address)
                                            : r->dev->ops->release(r->dev->dev, h->address);
    *h = r->dev->held[--r->dev->nheld];
    if (done != DEVICE_OK)
        diag_error(c->d, SPAN_NONE, "the device can't release memory");
    return call_status(done);
}

enum kaio_status kaio_release(struct kaio_device *dev, uint64_t address)
{
    struct request r = {.dev = dev, .address = address};
    struct call c = {0};
    return on_device(&r, &c, release);
}

static enum kaio_status move(struct call *c)
{
    const struct request *r = c->more;
    const struct device_ops *ops = r->dev->ops;
    enum kaio_status s;
    if (r->bytes && !(r->from ? r->from : r->host))
        return bad(c, "there is no memory to copy from or to: NULL");
    if (!enter(c, &s))
        return s;
    return call_status(r->from ? ops->write(r->dev->dev, r->address, r->from, r->bytes, c->d)
                               : ops->read(r->dev->dev, r->host, r->address, r->bytes, c->d));
}

enum kaio_status kaio_write(struct kaio_device *dev, uint64_t address, const void *from,
                            uint64_t bytes)
{
    struct request r = {.dev = dev, .address = address, .bytes = bytes, .from = from};
    struct call c = {0};
    return on_device(&r, &c, move);
}

enum kaio_status kaio_read(struct kaio_device *dev, void *to, uint64_t address, uint64_t bytes)
{
    struct request r = {.dev = dev, .address = address, .bytes = bytes, .host = to};
    struct call c = {0};
    return on_device(&r, &c, move);
}

/* "f32[30, 40]"; its elements are no more than bytes. */
static bool read_type(struct call *c, const char *text, uint64_t bytes, struct device_label *l)
{
    const size_t len = strcspn(text, "[");
    VEC(uint64_t) dims = {0};
    enum dtype t;
    if (!dtype_parse(text, len, &t) || t == DT_VOID)
        return diag_error(c->d, SPAN_NONE, "'%s' is no type, as f32 and u8[30, 40] are", text);
    uint64_t most = bytes * 8 / dtype_bits(t), n = 0, count = 1;
    for (const char *p = text + len; *p;) {
        const char *number = p + 1 + strspn(p + 1, " ");
        const size_t digits = strspn(number, "0123456789");
        p = number + digits + strspn(number + digits, " ");
        if ((*p != ',' && strcmp(p, "]") != 0) ||
            num_uint(number, digits, UINT64_MAX, &n) != NUM_OK)
            return diag_error(c->d, SPAN_NONE, "'%s' is no type, as f32 and u8[30, 40] are", text);
        if (!n || count > most / n)
            return diag_error(c->d, SPAN_NONE, "'%s' has none or more than the %" PRIu64 " bytes",
                              text, bytes);
        count *= n;
        *VEC_PUSH(c->arena, &dims) = n;
        p += *p == ']';
    }
    l->type = text;
    l->element_bits = dtype_bits(t);
    l->ndim = (unsigned)dims.n;
    l->dim = dims.v;
    return true;
}

static enum kaio_status describe(struct call *c)
{
    const struct request *r = c->more;
    const struct held *h = find_held(r->dev, r->address);
    struct device_label l = {.name = r->name, .type = "", .read_only = r->read_only};
    if (!h)
        return nothing_at(c, r->address);
    if (!r->name)
        return bad(c, "kaio_describe() needs a name");
    if (r->type && *r->type && !read_type(c, r->type, h->bytes, &l))
        return KAIO_BAD_INPUT;
    return call_status(r->dev->ops->describe(r->dev->dev, r->address, &l, c->d));
}

enum kaio_status kaio_describe(struct kaio_device *dev, uint64_t address, const char *name,
                               const char *type, int read_only)
{
    struct request r = {
        .dev = dev, .address = address, .name = name, .type = type, .read_only = read_only != 0};
    struct call c = {0};
    return on_device(&r, &c, describe);
}

static enum kaio_status finish(struct call *c)
{
    const struct request *r = c->more;
    const enum device_status s = r->dev->ops->finish(r->dev->dev, c->d);
    return s == DEVICE_FAULT ? KAIO_FOUND : call_status(s);
}

enum kaio_status kaio_finish(struct kaio_device *dev)
{
    struct request r = {.dev = dev};
    struct call c = {0};
    return on_device(&r, &c, finish);
}

/* ---- modules --------------------------------------------------------------------------------- */

static enum kaio_status load(struct call *c)
{
    const struct request *r = c->more;
    const bool gpu = r->dev->ops != &sim_device;
    struct kaio_module *m = r->m;
    enum kaio_status s;
    if (setjmp(*arena_guard(m->arena)))
        return bad(c, "not enough memory");
    m->source = source_new(m->arena, c->name ? c->name : "<ptx>", c->text, c->len);
    m->ptx = ptx_parse(m->arena, m->source, gpu ? diags_new(c->arena) : c->d);
    arena_unguard(m->arena);
    if (!m->ptx && !gpu)
        return KAIO_BAD_INPUT;
    if (!enter(c, &s))
        return s;
    return call_status(r->dev->ops->load_module(r->dev->dev, m->source, &m->loaded, c->d));
}

enum kaio_status kaio_load(struct kaio_device *dev, const char *name, const char *ptx, size_t len,
                           struct kaio_module **out)
{
    struct kaio_module *m = dev ? calloc(1, sizeof *m) : NULL;
    struct request r = {.dev = dev, .m = m};
    struct call c = {.name = name, .text = ptx, .len = len};
    *out = NULL;
    if (!dev)
        return KAIO_BAD_INPUT;
    if (!m || !(m->arena = arena_new())) {
        free(m);
        return call_no_memory(dev->k);
    }
    const enum kaio_status s = on_device(&r, &c, load);
    if (s != KAIO_OK) {
        arena_free(m->arena);
        free(m);
        return s;
    }
    m->dev = dev;
    m->next = dev->modules;
    dev->modules = *out = m;
    return s;
}

void kaio_unload(struct kaio_module *m)
{
    if (!m)
        return;
    struct arena *a = arena_new();
    if (a)
        m->dev->ops->enter(m->dev->dev, diags_new(a));
    m->dev->ops->unload_module(m->dev->dev, m->loaded);
    for (struct kaio_module **p = &m->dev->modules; *p; p = &(*p)->next)
        if (*p == m) {
            *p = m->next;
            break;
        }
    arena_free(a);
    arena_free(m->arena);
    free(m);
}

const char *kaio_entry(const struct kaio_module *m, size_t i)
{
    for (size_t k = 0; m->ptx && k < m->ptx->items.n; k++) {
        const struct ptx_item *it = &m->ptx->items.v[k];
        if (it->kind == PTX_I_FUNC && it->func->is_entry && it->func->has_body && i-- == 0)
            return it->func->name;
    }
    return NULL;
}

static const struct ptx_func *find_entry(const struct kaio_module *m, const char *name)
{
    const struct ptx_func *f = m->ptx ? ptx_find_entry(m->ptx, name) : NULL;
    return f && f->has_body ? f : NULL;
}

size_t kaio_param_bytes(const struct kaio_module *m, const char *entry, size_t i)
{
    const struct ptx_func *f = find_entry(m, entry);
    return f && i < f->params.n ? (size_t)ptx_var_bytes(f->params.v[i]) : 0;
}

static enum kaio_status find_symbol(struct call *c)
{
    struct request *r = c->more;
    enum kaio_status s;
    if (!enter(c, &s))
        return s;
    return call_status(
        r->dev->ops->symbol(r->dev->dev, r->m->loaded, r->name, &r->address, &r->bytes, c->d));
}

enum kaio_status kaio_symbol(struct kaio_module *m, const char *name, uint64_t *address,
                             uint64_t *bytes)
{
    struct request r = {.dev = m ? m->dev : NULL, .m = m, .name = name};
    struct call c = {0};
    const enum kaio_status s = on_device(&r, &c, find_symbol);
    *address = s == KAIO_OK ? r.address : 0;
    if (bytes)
        *bytes = s == KAIO_OK ? r.bytes : 0;
    return s;
}

/* ---- tensor maps and suppressions ------------------------------------------------------------ */

static enum kaio_status tensor_map(struct call *c)
{
    const struct request *r = c->more;
    const struct kaio_tensor *t = r->from;
    struct device_tensor_map m = {.address = t->address,
                                  .rank = t->rank,
                                  .swizzle = t->swizzle,
                                  .interleave = t->interleave,
                                  .promotion = t->promotion,
                                  .nan_fill = t->nan_fill != 0,
                                  .tf32 = t->tf32 != 0};
    enum kaio_status s;
    if (t->size != sizeof *t)
        return bad(c, "the size of struct kaio_tensor is not set, or of another version");
    if (!t->type || !dtype_parse(t->type, strlen(t->type), &m.type) || m.type == DT_VOID)
        return bad(c, "the type of a tensor is f16, u8 or the like");
    for (uint32_t i = 0; i < DEVICE_TENSOR_RANK && i < t->rank; i++) {
        m.dim[i] = t->dim[i];
        m.stride[i] = i ? t->stride[i] : device_tensor_element(m.type);
        m.box[i] = t->box[i];
        m.step[i] = t->step[i] ? t->step[i] : 1;
    }
    if (!device_tensor_map_check(&m, NULL, SPAN_NONE, c->d))
        return KAIO_BAD_INPUT;
    if (!enter(c, &s))
        return s;
    return call_status(r->dev->ops->tensor_map(r->dev->dev, &m, r->host, c->d));
}

enum kaio_status kaio_tensor_map(struct kaio_device *dev, const struct kaio_tensor *t, void *map)
{
    struct request r = {.dev = dev, .from = t, .host = map};
    struct call c = {0};
    return on_device(&r, &c, tensor_map);
}

static enum kaio_status suppress(struct call *c)
{
    const struct request *r = c->more;
    struct kaio_device *dev = r->dev;
    if (setjmp(*arena_guard(dev->arena)))
        return bad(c, "not enough memory");
    const struct source *src =
        source_new(dev->arena, r->name ? r->name : "<suppressions>", c->text, c->len);
    const bool good = suppress_read(dev->arena, &dev->suppressions, src, device_finding_kind, c->d);
    arena_unguard(dev->arena);
    return good ? KAIO_OK : KAIO_BAD_INPUT;
}

enum kaio_status kaio_suppress(struct kaio_device *dev, const char *name, const char *text,
                               size_t len)
{
    struct request r = {.dev = dev, .name = name};
    struct call c = {.text = text, .len = len};
    return on_device(&r, &c, suppress);
}

/* ---- launches -------------------------------------------------------------------------------- */

/* Against what we know of the entry, for a GPU's driver may read as many arguments as the entry
 * has. */
static bool check_values(struct call *c, const struct ptx_func *f)
{
    const struct request *r = c->more;
    if (f && r->nvalue != f->params.n)
        return diag_error(c->d, f->span, "kernel '%s' has %zu parameters, the launch gives %zu",
                          f->name, f->params.n, r->nvalue);
    for (size_t i = 0; i < r->nvalue; i++) {
        const struct kaio_value *v = &r->value[i];
        const struct ptx_var *p = f ? f->params.v[i] : NULL;
        if (p && v->bytes != ptx_var_bytes(p))
            return diag_error(c->d, p->span,
                              "parameter '%s' of kernel '%s' has %" PRIu64
                              " bytes, the launch gives %zu",
                              p->name, f->name, ptx_var_bytes(p), v->bytes);
        if (!v->data)
            return diag_error(c->d, SPAN_NONE, "argument %zu of kernel '%s' is NULL", i + 1,
                              r->name);
    }
    return true;
}

static struct device_dim dim_of(const uint32_t v[3])
{
    const bool any = v[0] || v[1] || v[2];
    return (struct device_dim){v[0], any && !v[1] ? 1 : v[1], any && !v[2] ? 1 : v[2]};
}

static enum kaio_status launch(struct call *c)
{
    const struct request *r = c->more;
    struct kaio_device *dev = r->dev;
    struct device_options *o = &dev->options;
    enum kaio_status s;
    if (!r->shape || r->shape->size != sizeof *r->shape)
        return bad(c, "the size of struct kaio_shape is not set, or of another version");
    if (!r->name)
        return bad(c, "kaio_launch() needs the name of an entry");
    if (!check_values(c, find_entry(r->m, r->name)))
        return KAIO_BAD_INPUT;
    if (!enter(c, &s))
        return s;
    const void **args = ARENA_ARRAY(c->arena, r->nvalue, const void *);
    size_t *bytes = ARENA_ARRAY(c->arena, r->nvalue, size_t);
    for (size_t i = 0; i < r->nvalue; i++) {
        args[i] = r->value[i].data;
        bytes[i] = r->value[i].bytes;
    }
    const struct device_launch l = {.entry = r->name,
                                    .grid = dim_of(r->shape->grid),
                                    .block = dim_of(r->shape->block),
                                    .cluster = dim_of(r->shape->cluster),
                                    .shared_bytes = r->shape->shared_bytes,
                                    .args = args,
                                    .arg_bytes = bytes,
                                    .narg = r->nvalue,
                                    .module = r->m->loaded};
    struct buf said = buf_in(c->arena);
    dev->stop = 0;
    dev->stats = (struct device_stats){0};
    dev->said = &said;
    const enum device_status done = dev->ops->launch(dev->dev, &l, 1, &dev->stats, c->d);
    dev->said = NULL;
    call_printed(c->k, &said);
    return done == DEVICE_FAULT && o->check ? KAIO_FOUND : call_status(done);
}

enum kaio_status kaio_launch(struct kaio_module *m, const char *entry,
                             const struct kaio_shape *shape, const struct kaio_value *args,
                             size_t narg)
{
    struct request r = {.dev = m ? m->dev : NULL,
                        .m = m,
                        .name = entry,
                        .shape = shape,
                        .value = args,
                        .nvalue = narg};
    struct call c = {0};
    return on_device(&r, &c, launch);
}
