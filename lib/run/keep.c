#include <config.h>

#include "run/keep.h"

#include "base/io.h"

#include <stdlib.h>

struct keep_wish {
    const char *text;
    bool is_file;
    struct io_state state;
    struct kept *found; /* by text and state; NULL: none */
};

/* The contents of one parameter. */
struct kept {
    struct kept *next;
    const struct contract *contract;
    size_t param;
    char *text;
    bool is_file;
    bool is_state; /* what a program left; text is "" */
    struct io_state state;
    struct buffer shape; /* without data */
    uint64_t address;
};

struct keep {
    const struct device_ops *ops;
    struct device *dev;
    struct kept *list;
};

struct keep *keep_new(const struct device_ops *ops, struct device *dev)
{
    struct keep *k = calloc(1, sizeof *k);
    if (k)
        *k = (struct keep){.ops = ops, .dev = dev};
    return k;
}

static void drop(struct keep *k, struct kept **at)
{
    struct kept *e = *at;
    *at = e->next;
    k->ops->release(k->dev, e->address);
    free(e->text);
    free(e);
}

void keep_free(struct keep *k)
{
    while (k && k->list)
        drop(k, &k->list);
    free(k);
}

bool keep_is_empty(const struct keep *k)
{
    return !k->list;
}

static struct kept **find(const struct run *r, const struct run_param *p)
{
    struct kept **at = &r->keep->list;
    while (*at && ((*at)->contract != r->contract || (*at)->param != (size_t)(p - r->param)))
        at = &(*at)->next;
    return at;
}

static bool fits(const struct kept *e, const struct keep_wish *w)
{
    return strcmp(e->text, w->text) == 0 && e->is_file == w->is_file &&
           (!w->is_file || io_same_state(&e->state, &w->state));
}

const struct buffer *keep_wish(struct run *r, struct run_param *p, const char *text,
                               const char *file)
{
    struct keep_wish w = {.text = text, .is_file = file != NULL};
    if (!r->keep || (file && !io_state(file, &w.state)))
        return NULL;
    struct kept *e = *find(r, p);
    w.found = e && fits(e, &w) ? e : NULL;
    struct keep_wish *kept = ARENA_NEW(r->arena, struct keep_wish);
    *kept = w;
    p->wish = kept;
    return w.found ? &w.found->shape : NULL;
}

static bool same_shape(const struct buffer *a, const struct buffer *b)
{
    return a->type == b->type && a->rank == b->rank &&
           memcmp(a->dim, b->dim, a->rank * sizeof *a->dim) == 0;
}

static bool is_wanted(const struct run_param *p, const struct kept *e)
{
    return e->is_state ? p->unsourced : p->wish && p->wish->found == e;
}

void keep_settle(struct run *r)
{
    for (size_t i = 0; r->keep && i < r->nparam; i++) {
        struct run_param *p = &r->param[i];
        struct kept **at = find(r, p);
        p->kept = *at && is_wanted(p, *at) && same_shape(&(*at)->shape, &p->host) ? *at : NULL;
        if (*at && !p->kept)
            drop(r->keep, at);
    }
}

uint64_t keep_address(const struct kept *e)
{
    return e->address;
}

enum device_status keep_label(struct run *r, const struct device_ops *ops, struct device *dev,
                              uint64_t address, const struct device_label *label)
{
    return r->keep ? ops->describe(dev, address, label, r->d) : DEVICE_OK;
}

/* A copy of the contents as they are now; 0 where there is no memory for it, which is no error. */
static uint64_t copy_of(struct run *r, const struct run_param *p, uint64_t address)
{
    const struct keep *k = r->keep;
    const struct device_label label = {.name = "inputs kept", .type = ""};
    struct diags *unsaid = diags_new(r->arena);
    uint64_t copy;
    if (k->ops->alloc(k->dev, p->host.bytes, &label, &copy, unsaid) != DEVICE_OK)
        return 0;
    if (k->ops->copy(k->dev, copy, address, p->host.bytes, NULL, unsaid) == DEVICE_OK)
        return copy;
    k->ops->release(k->dev, copy);
    return 0;
}

/* False where there is no memory. */
static bool add(struct run *r, const struct run_param *p, const char *text, struct kept like)
{
    struct kept *e = calloc(1, sizeof *e);
    like.text = e ? strdup(text) : NULL;
    if (!like.text) {
        free(e);
        return false;
    }
    *e = like;
    e->next = r->keep->list;
    e->contract = r->contract;
    e->param = (size_t)(p - r->param);
    e->shape = p->host;
    e->shape.data = NULL;
    r->keep->list = e;
    return true;
}

bool keep_buffer(struct run *r, struct run_param *p, uint64_t address)
{
    const bool changes = run_is_output(p);
    if (!r->keep || !p->wish || p->kept || !p->host.bytes || p->decl->is_state)
        return false;
    struct kept e = {.is_file = p->wish->is_file, .state = p->wish->state, .address = address};
    if (changes && !(e.address = copy_of(r, p, address)))
        return false;
    if (add(r, p, p->wish->text, e))
        return !changes;
    if (changes)
        r->keep->ops->release(r->keep->dev, e.address);
    return false;
}

bool keep_state(struct run *r, struct run_param *p, uint64_t address)
{
    if (!r->keep || !p->decl->is_state || !p->host.bytes)
        return false;
    struct kept **at = find(r, p);
    if (*at)
        drop(r->keep, at);
    p->kept = NULL;
    return add(r, p, "", (struct kept){.is_state = true, .address = address});
}
