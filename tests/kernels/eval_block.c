/* A grid, block by block; a block's threads, which are coroutines where they wait for each
 * other. */
#include <config.h>

#include "kernels/eval_int.h"

#include <sys/mman.h>

/* ---- one thread ------------------------------------------------------------------------------ */

static void run_thread(struct thread *t)
{
    const struct lang_stmt *body = t->block->machine->in->spec->body;
    struct frame frame = {.nlocal = body->nlocal};
    size_t cells = body->nlocal * sizeof *frame.local / sizeof *t->stack + 1;
    t->top = 0;
    frame.local = (struct storage *)(void *)eval_cells(t, cells);
    if (!t->block->machine->fault) {
        memset(frame.local, 0, body->nlocal * sizeof *frame.local);
        t->frame = &frame;
        eval_stmt(t, body);
    }
    t->frame = NULL;
    t->done = true;
}

void eval_meet(struct thread *t, const struct lang_expr *e)
{
    t->meets = e;
    if (t->block->machine->meets)
        swapcontext(&t->context, &t->block->scheduler);
    else
        eval_fault(t, e->span, "threads meet, and nobody expected them to");
}

/* ---- a block --------------------------------------------------------------------------------- */

enum { HOST_STACK = 128 << 10 };

static void coroutine(unsigned low, unsigned high)
{
    run_thread((struct thread *)((uintptr_t)high << 32 | low));
}

/* All threads take turns: each runs until it meets others or ends. */
static void run_together(struct block *b)
{
    b->left = b->nthread;
    for (uint32_t i = 0; i < b->nthread; i++) {
        struct thread *t = &b->thread[i];
        uintptr_t p = (uintptr_t)t;
        getcontext(&t->context);
        t->context.uc_stack.ss_sp = b->host_stacks + (size_t)i * HOST_STACK;
        t->context.uc_stack.ss_size = HOST_STACK;
        t->context.uc_link = &b->scheduler;
        makecontext(&t->context, (void (*)(void))coroutine, 2, (unsigned)p, (unsigned)(p >> 32));
    }
    while (b->left && !b->machine->fault) {
        for (uint32_t i = 0; i < b->nthread && !b->machine->fault; i++) {
            struct thread *t = &b->thread[i];
            if (t->done || t->meets)
                continue;
            swapcontext(&b->scheduler, &t->context);
            b->left -= t->done;
        }
        if (b->left && !meet_settle(b))
            for (uint32_t i = 0; i < b->nthread; i++)
                if (b->thread[i].meets)
                    eval_fault(&b->thread[i], b->thread[i].meets->span, "waits for ever");
    }
}

static void run_block(struct block *b)
{
    if (b->machine->meets) {
        run_together(b);
        return;
    }
    for (uint32_t i = 0; i < b->nthread && !b->machine->fault; i++)
        run_thread(&b->thread[i]);
}

/* ---- shared memory --------------------------------------------------------------------------- */

struct storage *eval_variable(struct block *b, const struct lang_symbol *sym)
{
    struct machine *m = b->machine;
    struct storage *v = ARENA_NEW(m->arena, struct storage);
    v->sym = sym;
    v->count = 1;
    for (uint32_t i = 0; i < sym->rank; i++) {
        int64_t n = m->shared_bytes / (int64_t)dtype_bytes(sym->type, sym->lanes ? sym->lanes : 1);
        if (sym->dims[i])
            n = eval_scalar(&b->thread[0], sym->dims[i]).i;
        v->dim[i] = n > 0 ? (uint64_t)n : 0;
        v->count *= v->dim[i];
    }
    unsigned lanes = sym->lanes ? sym->lanes : 1;
    v->memory = ARENA_NEW(m->arena, struct buffer);
    v->memory->count = v->count * lanes;
    v->memory->data = arena_alloc(m->arena, dtype_bytes(sym->type, v->memory->count));
    *VEC_PUSH(m->arena, &b->shared) = v;
    for (uint32_t k = 0; sym->table && k < sym->table->nlist; k++) {
        union scalar x[LANES_MOST];
        if (!sym->table->list[k])
            continue;
        eval_expr(&b->thread[0], sym->table->list[k], x);
        eval_write(&b->thread[0], v, k, x);
    }
    return v;
}

/* What the body declares as shared; its contents are whatever was there before. */
static void make_shared(struct block *b, const struct lang_stmt *s)
{
    for (uint32_t i = 0; s && i < s->nbody; i++)
        make_shared(b, s->body[i]);
    if (s && s->kind == S_DECL && s->sym->kind == SYM_SHARED)
        eval_variable(b, s->sym);
}

/* Does anything here make threads meet? */
static bool meets_expr(const struct lang_expr *e);

static bool meets_stmt(const struct lang_stmt *s)
{
    if (!s)
        return false;
    if (meets_expr(s->lhs) || meets_expr(s->rhs) || meets_expr(s->cond) || meets_stmt(s->init) ||
        meets_stmt(s->step))
        return true;
    for (uint32_t i = 0; i < s->nlist; i++)
        if (meets_expr(s->list[i]))
            return true;
    for (uint32_t i = 0; i < s->nbody; i++)
        if (meets_stmt(s->body[i]))
            return true;
    return false;
}

static bool meets_expr(const struct lang_expr *e)
{
    if (!e)
        return false;
    if (e->kind == E_CALL &&
        (e->func ? meets_stmt(e->func->body) : meet_in_block(e->fn) || meet_in_warp(e->fn)))
        return true;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (meets_expr(e->args[i]))
            return true;
    return false;
}

static void start_block(struct block *b)
{
    const uint32_t *n = b->machine->block;
    for (uint32_t i = 0; i < b->nthread; i++) {
        struct thread *t = &b->thread[i];
        t->block = b;
        t->linear = i;
        t->tid[0] = i % n[0];
        t->tid[1] = i / n[0] % n[1];
        t->tid[2] = i / n[0] / n[1];
        t->done = false;
        t->meets = NULL;
    }
}

/* ---- the grid -------------------------------------------------------------------------------- */

static bool look_up(void *ctx, const struct lang_symbol *sym, double *f, int64_t *i)
{
    const struct eval_input *in = ctx;
    if (sym->kind == SYM_DIM) {
        *i = sym->has_value ? (int64_t)sym->value : in->dim[sym->id];
        *f = (double)*i;
        return true;
    }
    union scalar v = in->param[sym->id].value;
    *i = v.i;
    *f = dtype_is_float(sym->type) ? v.f : (double)v.i;
    return sym->kind == SYM_SCALAR;
}

static bool sizes(struct machine *m, struct lang_expr *const *e, uint32_t n, uint32_t out[3])
{
    struct diags *d = diags_new(m->arena);
    for (uint32_t i = 0; i < 3; i++) {
        int64_t v = 1;
        if (i < n && !lang_eval_int(e[i], look_up, (void *)(uintptr_t)m->in, &v, d))
            return false;
        if (v < 0 || v > INT32_MAX)
            return false;
        out[i] = (uint32_t)v;
    }
    return true;
}

static void run_grid(struct machine *m, struct block *b)
{
    for (uint32_t z = 0; z < m->grid[2]; z++)
        for (uint32_t y = 0; y < m->grid[1]; y++)
            for (uint32_t x = 0; x < m->grid[0] && !m->fault; x++) {
                b->at[0] = x;
                b->at[1] = y;
                b->at[2] = z;
                start_block(b);
                run_block(b);
            }
}

/* The host memory that threads run on. */
static bool make_threads(struct arena *a, struct block *b)
{
    struct machine *m = b->machine;
    size_t stacks = m->meets ? b->nthread : 1, bytes = stacks * STACK_CELLS * sizeof(union scalar);
    b->thread = ARENA_ARRAY(a, b->nthread, struct thread);
    b->group = ARENA_ARRAY(a, b->nthread, struct thread *);
    b->host_bytes = bytes + (m->meets ? (size_t)b->nthread * HOST_STACK : 0);
    b->host = mmap(NULL, b->host_bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (b->host == MAP_FAILED)
        return false;
    b->host_stacks = b->host + bytes;
    for (uint32_t i = 0; i < b->nthread; i++)
        b->thread[i].stack = (union scalar *)(void *)b->host +
                             (m->meets ? (size_t)i * STACK_CELLS : 0);
    return true;
}

const char *eval_kernel(struct arena *a, const struct eval_input *in)
{
    const struct spec *s = in->spec;
    struct machine m = {.arena = a, .in = in, .contract = s->math == MATH_DEFAULT};
    if (!s->body || s->math == MATH_FAST)
        return "only exact kernels with a body: are evaluated";
    if (!sizes(&m, s->grid, s->ngrid, m.grid) || !sizes(&m, s->block, s->nblock, m.block))
        return "the grid or the block has no size";
    struct diags *d = diags_new(a);
    if (s->shared && !lang_eval_int(s->shared, look_up, (void *)(uintptr_t)in, &m.shared_bytes, d))
        return "the shared memory has no size";
    if (!sizes(&m, s->cluster, s->ncluster, m.cluster))
        return "the cluster has no size";
    struct block b = {.machine = &m, .nthread = m.block[0] * m.block[1] * m.block[2]};
    if (b.nthread < 1 || b.nthread > 1024)
        return "a block has 1 to 1024 threads";
    m.meets = meets_stmt(s->body);
    if (!make_threads(a, &b))
        return "no memory for the threads";
    start_block(&b);
    make_shared(&b, s->body);
    run_grid(&m, &b);
    munmap(b.host, b.host_bytes);
    return m.fault;
}
