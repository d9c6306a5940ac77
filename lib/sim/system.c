/* printf() and assert() of kernels. */
#include <config.h>

#include "sim/system.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    STRING = 4096, /* bytes of a string that are read */
    FIELD = 999,   /* the widest field, and the most digits */
    FORMATTED =
        4096 /* bytes of one conversion: a number of FIELD digits before and behind the point */
};

const struct system_function *system_function(const char *name)
{
    static const struct system_function all[] = {
        {"vprintf", SIM_H_PRINTF, 2, 1, {true, true}, false},
        {"__assertfail", SIM_H_ASSERTFAIL, 5, 0, {true, true, false, true, true}, false},
        {"malloc", SIM_H_MALLOC, 1, 1, {true}, true},
        {"free", SIM_H_FREE, 1, 0, {true}, false},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].name, name) == 0)
            return &all[i];
    return NULL;
}

/* Bytes at a generic address; false: the warp has stopped, they can't be read. */
static bool fetch(struct sim_warp *w, const struct sim_op *op, uint32_t lane, uint64_t address,
                  uint32_t bytes, void *to)
{
    const unsigned char *from = sim_mem_read(w, lane, address, bytes);
    if (from) {
        memcpy(to, from, bytes);
        return true;
    }
    struct sim_fault *f = &w->block->fault;
    sim_fault_at(w, op, lane, SIM_F_BOUNDS);
    f->address = address;
    f->bytes = bytes;
    f->space = SIM_IN_GENERIC;
    return false;
}

/* A string at an address, as much of it as there is room for. */
static bool fetch_string(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                         uint64_t address, char to[STRING])
{
    uint32_t n = 0;
    do
        if (!fetch(w, op, lane, address + n, 1, &to[n]))
            return false;
    while (to[n++] && n < STRING);
    to[n - 1] = '\0';
    return true;
}

/* ---- formats --------------------------------------------------------------------------------- */

/* Arguments lie one behind the other, each aligned to its size. */
struct printing {
    struct sim_warp *w;
    const struct sim_op *op;
    uint32_t lane;
    uint64_t next; /* argument */
    uint32_t taken;
    char text[STRING]; /* a string argument */
};

static bool take(struct printing *p, uint32_t bytes, uint64_t *bits)
{
    p->next = (p->next + bytes - 1) / bytes * bytes;
    *bits = 0;
    if (!fetch(p->w, p->op, p->lane, p->next, bytes, bits))
        return false;
    p->next += bytes;
    p->taken++;
    return true;
}

/* A conversion's specification: flags, width, precision; whether its argument is long. */
struct conversion {
    char flags[8];
    int width, precision; /* -1: none */
    bool is_long;
    char letter;
};

static bool number(struct printing *p, const char **at, int *n)
{
    uint64_t bits;
    if (**at == '*') {
        ++*at;
        if (!take(p, 4, &bits))
            return false;
        *n = (int32_t)(uint32_t)bits;
    } else {
        for (*n = 0; **at >= '0' && **at <= '9'; ++*at)
            *n = *n <= FIELD ? *n * 10 + (**at - '0') : *n;
    }
    *n = *n > FIELD ? FIELD : *n < -FIELD ? -FIELD : *n;
    return true;
}

/* at: behind the %. */
static bool read_conversion(struct printing *p, const char **at, struct conversion *c)
{
    *c = (struct conversion){.width = -1, .precision = -1};
    for (size_t n = 0; **at && strchr("-+ #0", **at); ++*at)
        if (!strchr(c->flags, **at) && n < sizeof c->flags - 1)
            c->flags[n++] = **at;
    if ((**at == '*' || (**at >= '1' && **at <= '9')) && !number(p, at, &c->width))
        return false;
    if (**at == '.' && (++*at, !number(p, at, &c->precision)))
        return false;
    for (; **at && strchr("hlLqjzt", **at); ++*at)
        c->is_long |= **at != 'h' && **at != 'L';
    c->letter = **at;
    *at += **at != '\0';
    return true;
}

/* "%-5.3" and what follows for the host's printf */
static void spell(const struct conversion *c, const char *length, char to[48])
{
    char width[16] = "", precision[16] = "";
    const bool left = c->width < -1;
    if (c->width != -1)
        snprintf(width, sizeof width, "%d", left ? -c->width : c->width);
    if (c->precision >= 0)
        snprintf(precision, sizeof precision, ".%d", c->precision);
    snprintf(to, 48, "%%%s%s%s%s%s%c", left && !strchr(c->flags, '-') ? "-" : "", c->flags, width,
             precision, length, c->letter);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* made by spell() */
static bool convert(struct printing *p, struct conversion *c, char to[FORMATTED])
{
    char how[48];
    uint64_t bits;
    double x;
    switch (c->letter) {
    case 'd':
    case 'i':
        if (!take(p, c->is_long ? 8 : 4, &bits))
            return false;
        spell(c, "ll", how);
        snprintf(to, FORMATTED, how,
                 c->is_long ? (long long)bits : (long long)(int32_t)(uint32_t)bits);
        return true;
    case 'u':
    case 'o':
    case 'x':
    case 'X':
        if (!take(p, c->is_long ? 8 : 4, &bits))
            return false;
        spell(c, "ll", how);
        snprintf(to, FORMATTED, how, (unsigned long long)bits);
        return true;
    case 'c':
        if (!take(p, 4, &bits))
            return false;
        spell(c, "", how);
        snprintf(to, FORMATTED, how, (int)(unsigned char)bits);
        return true;
    case 'p':
        if (!take(p, 8, &bits))
            return false;
        snprintf(to, FORMATTED, "0x%" PRIx64, bits);
        return true;
    case 's':
        if (!take(p, 8, &bits) || !fetch_string(p->w, p->op, p->lane, bits, p->text))
            return false;
        spell(c, "", how);
        snprintf(to, FORMATTED, how, p->text);
        return true;
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
    case 'a':
    case 'A':
        if (!take(p, 8, &bits))
            return false;
        memcpy(&x, &bits, 8);
        spell(c, "", how);
        snprintf(to, FORMATTED, how, x);
        return true;
    case '%': snprintf(to, FORMATTED, "%%"); return true;
    default: /* as CUDA's: what is no conversion is text */
        snprintf(to, FORMATTED, "%%%c", c->letter);
        return true;
    }
}
#pragma GCC diagnostic pop

static bool print_lane(struct printing *p, const char *format, struct buf *out)
{
    char formatted[FORMATTED];
    for (const char *at = format; *at;) {
        struct conversion c;
        if (*at != '%') {
            buf_putc(out, *at++);
            continue;
        }
        at++;
        if (!read_conversion(p, &at, &c) || !convert(p, &c, formatted))
            return false;
        buf_puts(out, formatted);
    }
    return true;
}

const struct sim_op *system_printf(struct sim_warp *w, const struct sim_op *op)
{
    struct sim_launch *l = w->block->launch;
    const struct sim_op *next = op + 1;
    char format[STRING];
    pthread_mutex_lock(&l->lock); /* the arena's, too */
    for (uint32_t left = w->em; left && next; left &= left - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(left);
        struct printing p = {.w = w, .op = op, .lane = lane, .next = sim_wide(w, op->b, lane)};
        struct buf text = buf_in(l->arena);
        if (!fetch_string(w, op, lane, sim_wide(w, op->a, lane), format) ||
            !print_lane(&p, format, &text)) {
            next = NULL;
            break;
        }
        memcpy(w->r + op->d + 4 * lane, &p.taken, 4);
        if (l->printed + text.len > SIM_PRINT_MOST) {
            l->unprinted++;
            continue;
        }
        l->printed += text.len;
        *VEC_PUSH(l->arena, &l->prints) =
            (struct sim_print){w->block->index, l->prints.n, buf_text(&text), text.len};
    }
    pthread_mutex_unlock(&l->lock);
    return next;
}

static int by_block(const void *x, const void *y)
{
    const struct sim_print *a = x, *b = y;
    if (a->block != b->block)
        return a->block < b->block ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

void system_print(struct sim_launch *l, void (*print)(void *ctx, const char *text, size_t n),
                  void *ctx, struct diags *d)
{
    if (l->prints.n)
        qsort(l->prints.v, l->prints.n, sizeof *l->prints.v, by_block);
    for (size_t i = 0; print && i < l->prints.n; i++)
        print(ctx, l->prints.v[i].text, l->prints.v[i].n);
    if (l->unprinted)
        diag_warning(d, SPAN_NONE,
                     "%" PRIu64 " calls of printf in kernel '%s' are not shown: those before "
                     "them printed %d bytes",
                     l->unprinted, l->what->entry, SIM_PRINT_MOST);
    l->prints.n = 0;
    l->printed = l->unprinted = 0;
}

/* ---- assertions ------------------------------------------------------------------------------ */

const struct sim_op *system_assertfail(struct sim_warp *w, const struct sim_op *op)
{
    struct sim_launch *l = w->block->launch;
    const uint32_t lane = (uint32_t)__builtin_ctz(w->em);
    char condition[STRING], file[STRING], function[STRING];
    uint32_t line;
    memcpy(&line, w->r + op->c + 4 * lane, 4);
    if (!fetch_string(w, op, lane, sim_wide(w, op->a, lane), condition) ||
        !fetch_string(w, op, lane, sim_wide(w, op->b, lane), file) ||
        !fetch_string(w, op, lane, sim_wide(w, op->e, lane), function))
        return NULL;
    sim_fault_at(w, op, lane, SIM_F_ASSERT);
    pthread_mutex_lock(&l->lock);
    w->block->fault.text = arena_printf(l->arena, "assertion '%s' failed at %s:%u, in %s",
                                        condition, file, line, function);
    pthread_mutex_unlock(&l->lock);
    return NULL;
}
