/* A module on a device, and runs of it. */
#include <config.h>

#include "job.h"

#include "base/io.h"

int job_status(const struct job *j, enum device_status s)
{
    switch (s) {
    case DEVICE_OK: return CLI_OK;
    case DEVICE_REFUSED: return CLI_BAD_INPUT;
    case DEVICE_FAULT: return j->check ? CLI_CHECK_FAILED : CLI_DEVICE_FAILED;
    case DEVICE_FAILED: return CLI_DEVICE_FAILED;
    case DEVICE_ABSENT: return CLI_NO_DEVICE;
    }
    return CLI_DEVICE_FAILED;
}

/* ---- preparing ---- */

static bool read_suppressions(struct job *j)
{
    bool good = true;
    for (size_t i = 0; i < j->suppression_files.n; i++) {
        const struct source *s = io_read(j->a, j->d, j->suppression_files.v[i], IO_TEXT_LIMIT);
        good = s && suppress_read(j->a, &j->suppressions, s, device_finding_kind, j->d) && good;
    }
    j->device_options.suppressions = &j->suppressions;
    return good;
}

/* Suppressions that were not needed, though they are for what was launched. */
void job_report_unused(struct job *j, const struct contract *const *c, size_t n)
{
    VEC(const char *) entry = {0};
    for (size_t k = 0; k < n; k++)
        for (const char *const *one = run_entries(j->a, c[k]); *one; one++)
            *VEC_PUSH(j->a, &entry) = *one;
    *VEC_PUSH(j->a, &entry) = NULL;
    suppress_unused(&j->suppressions, entry.v, j->d);
}

static bool read_weights(struct job *j)
{
    bool good = true;
    for (size_t i = 0; i < j->weight_files.n; i++)
        good = safetensors_find(j->a, j->weight_files.v[i], &j->weights, j->d) && good;
    return good;
}

int job_prepare(struct job *j, const char **why)
{
    device_settle(j->a, &j->device, why);
    j->from.gpu = j->device.ops == &cuda_device;
    if (!read_suppressions(j) || !read_weights(j) ||
        !launchable_read(j->a, &j->from, &j->program, j->d))
        return CLI_BAD_INPUT;
    for (size_t i = 0; i < j->program.narg; i++)
        *VEC_PUSH(j->a, &j->args) = j->program.arg[i];
    return CLI_OK;
}

int job_open(struct job *j, struct diags *d)
{
    const struct device_ops *ops = j->device.ops;
    j->dev_arena = arena_new();
    enum device_status status =
        ops->open(j->dev_arena, j->device.ordinal, &j->device_options, &j->dev, d);
    if (status != DEVICE_OK) {
        j->dev = NULL;
        job_close(j);
        return job_status(j, status);
    }
    status = ops->load(j->dev, j->program.ptx, d);
    if (status == DEVICE_REFUSED && ops == &cuda_device && j->program.module)
        diag_note(d, SPAN_NONE, "the simulator may run it: -d cpu");
    if (status != DEVICE_OK)
        job_close(j);
    return job_status(j, status);
}

void job_close(struct job *j)
{
    keep_free(j->keep);
    if (j->dev)
        j->device.ops->close(j->dev);
    arena_free(j->dev_arena);
    j->keep = NULL;
    j->dev = NULL;
    j->dev_arena = NULL;
}

/* ---- while a launch runs ---- */

static void show_progress(void *ctx, uint64_t done, uint64_t blocks)
{
    struct job *j = ctx;
    j->progress.total = blocks;
    progress_step(&j->progress, done);
    lines_watch(j);
}

/* What printf() of a kernel said; of timed launches nothing more. */
static void show_print(void *ctx, const char *text, size_t n)
{
    struct job *j = ctx;
    progress_clear(&j->progress);
    if (j->now && j->now->talk)
        fwrite(text, 1, n, j->now->talk);
    else if (j->now)
        buf_add(&j->now->said, text, n);
}

/* What a launch of a program said with print(). */
static void show_said(void *ctx, const char *text, size_t n)
{
    struct job *j = ctx;
    show_print(j, text, n);
    if (j->now && j->now->talk)
        fflush(j->now->talk);
}

void job_watch(struct job *j)
{
    _Static_assert(sizeof(sig_atomic_t) == sizeof(int), "a device watches an int");
    j->device_options.interrupted = j->stop;
    j->device_options.progress = show_progress;
    j->device_options.progress_ctx = j;
    j->run_options.interrupted = j->stop;
    j->run_options.say = show_said;
    j->run_options.say_ctx = j;
    j->device_options.print = show_print;
    j->device_options.print_ctx = j;
}

/* ---- a run ---- */

int request_bind(struct job *j, struct request *q)
{
    const struct contract *c = launchable_kernel(&j->program, q->kernel, q->d);
    if (!c)
        return CLI_BAD_INPUT;
    q->run = run_new(q->a, c, q->d);
    q->run->memory.simulated = j->device.ops == &sim_device;
    q->run->memory.overcommit = j->device_options.overcommit;
    q->run->keep = j->keep;
    run_arg_list args = {0};
    for (size_t i = 0; i < q->narg; i++)
        *VEC_PUSH(q->a, &args) = q->arg[i];
    weights_complete(q->a, c, &j->weights, &args);
    return run_bind_args(q->run, args.v, args.n, q->stdin_user) &&
                   run_check(q->run, j->program.module)
               ? CLI_OK
               : CLI_BAD_INPUT;
}

/* A launch that a signal stops says where its threads stand; all else is ended at once. */
static enum device_status execute_interruptibly(struct job *j, struct request *q)
{
    cli_catch_signals(&j->cli, j->stop);
    j->now = q;
    const enum device_status status =
        run_execute(q->run, j->program.module, j->device.ops, j->dev, &j->run_options, NULL);
    j->now = NULL;
    if (status == DEVICE_OK)
        cli_catch_signals(&j->cli, NULL);
    return status;
}

/* What the kernel printed: before anything else, and also when it failed. */
static void tell_messages(struct request *q)
{
    struct buf text = buf_in(q->a);
    run_print_messages(q->run, &text);
    if (q->talk)
        fwrite(buf_text(&text), 1, text.len, q->talk);
    else
        buf_add(&q->said, buf_text(&text), text.len);
}

int request_execute(struct job *j, struct request *q)
{
    if (!run_open_outputs(q->run))
        return CLI_BAD_INPUT;
    progress_begin(&j->progress,
                   arena_printf(q->a, "simulating %s, block", q->run->contract->kernel), 0,
                   j->quiet);
    const enum device_status status = q->device = execute_interruptibly(j, q);
    progress_clear(&j->progress);
    j->progress.enabled = false; /* not while time is taken */
    tell_messages(q);
    if (status != DEVICE_OK) {
        run_discard_outputs(q->run);
        return job_status(j, status);
    }
    return run_write_outputs(q->run) ? CLI_OK : CLI_BAD_INPUT;
}
