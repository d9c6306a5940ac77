/* A grid, block by block; a block's threads, which are coroutines where they wait for each other. */
#include <config.h>

#include "kernels/eval_int.h"

#include <stdlib.h>

/* ---- one thread ----------------------------------------------------------------------------------- */

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

/* ---- a block -------------------------------------------------------------------------------------- */

static void run_block(struct block *b)
{
    for (uint32_t i = 0; i < b->nthread && !b->machine->fault; i++)
        run_thread(&b->thread[i]);
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

/* ---- the grid ------------------------------------------------------------------------------------- */

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

const char *eval_kernel(struct arena *a, const struct eval_input *in)
{
    const struct spec *s = in->spec;
    struct machine m = {.arena = a, .in = in, .contract = s->math == MATH_DEFAULT};
    if (!s->body || s->math == MATH_FAST)
        return "only exact kernels with a body: are evaluated";
    if (!sizes(&m, s->grid, s->ngrid, m.grid) || !sizes(&m, s->block, s->nblock, m.block))
        return "the grid or the block has no size";
    struct block b = {.machine = &m, .nthread = m.block[0] * m.block[1] * m.block[2]};
    if (b.nthread < 1 || b.nthread > 1024)
        return "a block has 1 to 1024 threads";
    b.thread = ARENA_ARRAY(a, b.nthread, struct thread);
    union scalar *stack = ARENA_ARRAY(a, STACK_CELLS, union scalar);
    for (uint32_t i = 0; i < b.nthread; i++)
        b.thread[i].stack = stack;
    run_grid(&m, &b);
    return m.fault;
}
