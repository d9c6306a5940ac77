#include <config.h>

#include "run/messages.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/io.h"
#include "data/message.h"

bool messages_wanted(const struct run *r)
{
    for (size_t i = 0; i < r->contract->launches.n; i++) {
        const struct contract_launch *l = &r->contract->launches.v[i];
        for (size_t k = 0; k < l->args.n; k++)
            if (l->args.v[k].is_messages)
                return true;
    }
    return false;
}

enum device_status messages_allocate(struct run *r, const struct device_ops *ops,
                                     struct device *dev, uint64_t record_bytes,
                                     struct message_buffer *b)
{
    const struct device_label label = {.name = "messages", .type = "", .element_bits = 32};
    *b = (struct message_buffer){.ops = ops, .dev = dev};
    if (!messages_wanted(r))
        return DEVICE_OK;
    b->bytes = MESSAGE_HEADER + (record_bytes & ~UINT64_C(3));
    return ops->alloc(dev, b->bytes, &label, &b->address, r->d);
}

void messages_release(struct message_buffer *b)
{
    if (b->address)
        b->ops->release(b->dev, b->address);
    b->address = 0;
}

enum device_status messages_reset(struct run *r, const struct message_buffer *b)
{
    enum { PIECE = 1 << 16 };
    static const unsigned char zeros[PIECE];
    const struct message_header header = {.capacity = (b->bytes - MESSAGE_HEADER) / 4};
    enum device_status status = DEVICE_OK;
    if (!b->address)
        return status;
    for (uint64_t at = MESSAGE_HEADER; at < b->bytes && status == DEVICE_OK; at += PIECE) {
        uint64_t left = b->bytes - at;
        status = b->ops->write(b->dev, b->address + at, zeros, left < PIECE ? left : PIECE, r->d);
    }
    if (status == DEVICE_OK)
        status = b->ops->write(b->dev, b->address, &header, sizeof header, r->d);
    return status;
}

/* ---- reading ---- */

static struct device_dim thread_of(uint32_t flat, const struct device_dim *n)
{
    return (struct device_dim){flat % n->x, flat / n->x % n->y, flat / n->x / n->y};
}

/* The record at words[*at], and *at moved behind it; false when there is none that a kernel could
 * have written. */
static bool read_record(const struct run *r, const struct device_launch *l, const uint32_t *words,
                        size_t n, size_t *at, struct run_message *m)
{
    const struct device_dim *b = &l->block, *g = &l->grid;
    if (n - *at < MESSAGE_RECORD)
        return false;
    const uint32_t *w = words + *at;
    const uint32_t id = w[0] >> MESSAGE_THREAD_BITS,
                   thread = w[0] & ((1u << MESSAGE_THREAD_BITS) - 1);
    if (id < 1 || id > r->contract->messages.n)
        return false;
    const struct contract_message *what = &r->contract->messages.v[id - 1];
    const size_t words_of = MESSAGE_RECORD + message_args_words(what->ntype, what->type);
    *m = (struct run_message){.what = what,
                              .block = {w[1], w[2] & 0xffff, w[2] >> 16},
                              .thread = thread_of(thread, b),
                              .words = w + MESSAGE_RECORD,
                              .order = *at};
    if (words_of > n - *at || m->block.x >= g->x || m->block.y >= g->y || m->block.z >= g->z ||
        thread >= (uint64_t)b->x * b->y * b->z)
        return false;
    *at += words_of;
    return true;
}

static int compare_dim(const struct device_dim *x, const struct device_dim *y)
{
    if (x->z != y->z)
        return x->z < y->z ? -1 : 1;
    if (x->y != y->y)
        return x->y < y->y ? -1 : 1;
    return (x->x > y->x) - (x->x < y->x);
}

/* By block, then thread, then as the thread issued them. */
static int by_thread(const void *a, const void *b)
{
    const struct run_message *x = a, *y = b;
    int c = compare_dim(&x->block, &y->block);
    if (c == 0)
        c = compare_dim(&x->thread, &y->thread);
    return c ? c : (x->order > y->order) - (x->order < y->order);
}

/* ---- assertions ---- */

/* The first thread of each assertion that did not hold, and how many more there are. */
static void report_failures(struct run *r, size_t from)
{
    const struct contract *c = r->contract;
    const char *source = c->source ? c->source : "the spec";
    for (size_t i = 0; i < c->messages.n; i++) {
        const struct contract_message *what = &c->messages.v[i];
        const struct run_message *first = NULL;
        uint64_t more = 0;
        for (size_t k = from; k < r->messages.v.n && what->is_assert; k++)
            if (r->messages.v.v[k].what == what && first)
                more++;
            else if (r->messages.v.v[k].what == what)
                first = &r->messages.v.v[k];
        if (!first)
            continue;
        const struct device_dim b = first->block, t = first->thread;
        const char *text = what->text ? arena_printf(r->arena, " (\"%s\")", what->text) : "";
        struct span line = io_line(r->arena, source, what->line);
        const char *place =
            line.src ? "" : arena_printf(r->arena, "%s:%" PRIu32 ": ", source, what->line);
        diag_error(r->d, line,
                   "%sassertion failed: %s%s block (%" PRIu32 ",%" PRIu32 ",%" PRIu32
                   ") thread (%" PRIu32 ",%" PRIu32 ",%" PRIu32 ")",
                   place, what->format, text, b.x, b.y, b.z, t.x, t.y, t.z);
        diag_kind(r->d, "assert");
        if (more)
            diag_note(r->d, SPAN_NONE, "it failed in %" PRIu64 " more thread%s", more,
                      more == 1 ? "" : "s");
    }
}

/* Assertions failed and the buffer had no room for any of their records. */
static void report_lost_failures(struct run *r, const struct message_header *h)
{
    const struct contract *c = r->contract;
    const bool known = h->last >= 1 && h->last <= c->messages.n;
    diag_error(r->d, SPAN_NONE, "%s:%" PRIu32 ": assertion failed: %s, in %" PRIu32 " thread%s",
               c->source ? c->source : "the spec", known ? c->messages.v[h->last - 1].line : 0,
               known ? c->messages.v[h->last - 1].format : "?", h->failed,
               h->failed == 1 ? "" : "s");
    diag_kind(r->d, "assert");
}

/* ---- all ---- */

static enum device_status read_records(struct run *r, const struct message_buffer *b,
                                       const struct device_launch *l, size_t n, bool by_time,
                                       bool after_fault)
{
    uint32_t *words = ARENA_ARRAY(r->arena, n + 1, uint32_t);
    const size_t from = r->messages.v.n;
    struct run_message m;
    size_t at = 0;
    enum device_status status =
        b->ops->read(b->dev, words, b->address + MESSAGE_HEADER, 4 * n, r->d);
    if (status != DEVICE_OK)
        return status;
    while (read_record(r, l, words, n, &at, &m))
        *VEC_PUSH(r->arena, &r->messages.v) = m;
    /* what follows is a record that did not fit, or one that the fault kept from being written */
    const bool rest_is_lost = at < n && words[at] == 0;
    if (at < n && !rest_is_lost && !after_fault) {
        diag_error(r->d, SPAN_NONE, "the kernel wrote over the buffer of its messages");
        return DEVICE_FAULT;
    }
    if (!by_time && r->messages.v.n > from)
        qsort(r->messages.v.v + from, r->messages.v.n - from, sizeof m, by_thread);
    report_failures(r, from);
    return DEVICE_OK;
}

enum device_status messages_drain(struct run *r, const struct message_buffer *b,
                                  const struct device_launch *l, bool by_time, bool after_fault)
{
    struct message_header h;
    if (!b->address)
        return DEVICE_OK;
    enum device_status status = b->ops->read(b->dev, &h, b->address, sizeof h, r->d);
    if (status != DEVICE_OK)
        return status;
    const uint64_t capacity = (b->bytes - MESSAGE_HEADER) / 4;
    const size_t errors = r->d->nerror;
    status = read_records(r, b, l, (size_t)(h.claimed < capacity ? h.claimed : capacity), by_time,
                          after_fault);
    if (status != DEVICE_OK)
        return status;
    if (h.lost) {
        diag_warning(r->d, SPAN_NONE, "%" PRIu64 " message%s lost: give --messages=%" PRIu64,
                     h.lost, h.lost == 1 ? " was" : "s were", 4 * h.claimed);
        r->messages.lost += h.lost;
        if (4 * h.claimed > r->messages.needed)
            r->messages.needed = 4 * h.claimed;
    }
    if (h.failed && r->d->nerror == errors)
        report_lost_failures(r, &h);
    return h.failed ? DEVICE_FAULT : DEVICE_OK;
}

void run_print_messages(const struct run *r, struct buf *out)
{
    if (r->messages.said.len)
        buf_add(out, r->messages.said.text, r->messages.said.len);
    for (size_t i = 0; i < r->messages.v.n; i++) {
        const struct run_message *m = &r->messages.v.v[i];
        if (!m->what->is_assert)
            message_print(m->what->format, m->what->type, m->words, out);
    }
}
