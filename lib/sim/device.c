/* The simulator as a device: memory, modules, launches. */
#include <config.h>

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "sim/check.h"
#include "sim/heap.h"
#include "sim/module.h"
#include "sim/report.h"
#include "sim/system.h"
#include "sim/tensor.h"

struct device {
    struct arena *arena;
    struct device_options options;
    struct sim_build build;
    struct sim_memory memory;
    struct device_module *module; /* of load(); NULL: nothing is loaded */
    struct check *check;          /* NULL: none asked for */
    uint64_t room; /* memory that was left before there were large buffers; 0: not asked */
};

/* In its own arena. */
struct device_module {
    struct arena *arena;
    const struct source *source;
    struct ptx_module *ptx;
    struct sim_symbols symbols;
};

static int sim_count_devices(struct diags *d)
{
    (void)d;
    return 1;
}

static void choose_build(struct sim_build *b)
{
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        sim_exec_fill_avx2(b);
        return;
    }
    sim_exec_fill_baseline(b);
}

void sim_use_baseline(struct device *dev)
{
    sim_exec_fill_baseline(&dev->build);
}

static unsigned worker_threads(const struct device *dev)
{
    enum { MOST = 256 };
    if (dev->options.threads)
        return dev->options.threads < MOST ? dev->options.threads : MOST;
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > MOST ? MOST : (unsigned)n;
}

static enum device_status sim_open(struct arena *a, int ordinal, const struct device_options *opt,
                                   struct device **dev, struct diags *d)
{
    if (ordinal != 0) {
        diag_error(d, SPAN_NONE, "there is one simulator, 'cpu'; no number %d", ordinal);
        return DEVICE_ABSENT;
    }
    struct device *v = ARENA_NEW(a, struct device);
    v->arena = a;
    if (opt)
        v->options = *opt;
    if (v->options.check && !(v->check = sim_check_new(v->options.check))) {
        diag_error(d, SPAN_NONE, "no memory left for the checks");
        return DEVICE_FAILED;
    }
    v->options.threads = worker_threads(v); /* asking the system costs as much as a small launch */
    choose_build(&v->build);
    *dev = v;
    return DEVICE_OK;
}

/* What grids are told: few, so that blocks which take work by turns do so in small problems, and
 * the same for any number of threads. */
enum { MULTIPROCESSORS = 8 };

static void sim_info(struct device *dev, struct device_info *info)
{
    const unsigned n = worker_threads(dev);
    *info = (struct device_info){.kind = "cpu", .multiprocessors = MULTIPROCESSORS};
    snprintf(info->name, sizeof info->name, "kaio simulator (%u thread%s, %s)", n,
             n == 1 ? "" : "s", dev->build.name);
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGE_SIZE);
    if (pages > 0 && page > 0)
        info->memory = (uint64_t)pages * (uint64_t)page;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* What is not a variable or the like, which are not the host's to release. */
static const char BUFFER[] = "buffer";

static enum device_status no_buffer(const struct device *dev, uint64_t bytes, struct diags *d)
{
    if (dev->memory.live == SIM_WINDOWS - SIM_WINDOW_FIRST)
        diag_error(d, SPAN_NONE, "there are %u buffers and variables already, and can be no more",
                   dev->memory.live);
    else
        diag_error(d, SPAN_NONE, "no memory left for a buffer of %" PRIu64 " bytes", bytes);
    return DEVICE_FAILED;
}

/* Can the machine keep what it would promise? Memory is touched after it was allocated, so buffers
 * count as touched. */
static bool fits(struct device *dev, uint64_t bytes, const struct device_label *label,
                 struct diags *d)
{
    enum { SMALL = 1 << 26 };
    char wanted[MEMORY_TEXT], has[MEMORY_TEXT];
    if (dev->options.overcommit || dev->memory.bytes + bytes < SMALL)
        return true;
    struct memory_left left = memory_left();
    if (!dev->room)
        dev->room = left.bytes;
    const uint64_t used = dev->memory.bytes < dev->room ? dev->memory.bytes : dev->room;
    if (left.bytes > dev->room - used)
        left.bytes = dev->room - used;
    if (bytes <= left.bytes)
        return true;
    return diag_error(d, SPAN_NONE,
                      "no memory left for the %s of %s%s%s on the simulator: %s has %s left; with "
                      "overcommit it is tried nevertheless",
                      memory_text(bytes, wanted), label && label->name ? "'" : "",
                      label && label->name ? label->name : "a buffer",
                      label && label->name ? "'" : "", left.by, memory_text(left.bytes, has));
}

static enum device_status sim_alloc(struct device *dev, uint64_t bytes,
                                    const struct device_label *label, uint64_t *address,
                                    struct diags *d)
{
    if (!fits(dev, bytes, label, d))
        return DEVICE_FAILED;
    struct sim_buffer *b = sim_mem_alloc(&dev->memory, bytes, label, BUFFER);
    if (b && dev->check && !sim_check_alloc(dev->check, b)) {
        sim_mem_release(&dev->memory, b->base);
        b = NULL;
    }
    if (!b)
        return no_buffer(dev, bytes, d);
    *address = b->base;
    return DEVICE_OK;
}

static enum device_status sim_release(struct device *dev, uint64_t address)
{
    const struct sim_buffer *b = sim_mem_near(&dev->memory, address);
    if (!b || b->what != BUFFER)
        return DEVICE_REFUSED;
    return sim_mem_release(&dev->memory, address) ? DEVICE_OK : DEVICE_REFUSED;
}

static enum device_status sim_bind(struct device *dev, void *host, uint64_t bytes,
                                   uint64_t *address, struct diags *d)
{
    struct sim_buffer *b = sim_mem_bind(&dev->memory, host, bytes, BUFFER);
    if (b && dev->check && !sim_check_alloc(dev->check, b)) {
        sim_mem_release(&dev->memory, b->base);
        b = NULL;
    }
    if (!b)
        return no_buffer(dev, bytes, d);
    sim_check_written(b, b->base, bytes);
    *address = b->base;
    return DEVICE_OK;
}

static enum device_status sim_unbind(struct device *dev, void *host, uint64_t address)
{
    (void)host;
    return sim_release(dev, address);
}

static enum device_status sim_describe(struct device *dev, uint64_t address,
                                       const struct device_label *label, struct diags *d)
{
    struct sim_buffer *b = sim_mem_near(&dev->memory, address);
    if (!b || b->base != address || b->released || b->what != BUFFER) {
        diag_error(d, SPAN_NONE, "no buffer begins at 0x%" PRIx64, address);
        return DEVICE_REFUSED;
    }
    if (sim_mem_label(b, label))
        return DEVICE_OK;
    diag_error(d, SPAN_NONE, "no memory left for the name of a buffer");
    return DEVICE_FAILED;
}

static unsigned char *host_range(struct device *dev, uint64_t address, uint64_t bytes,
                                 struct diags *d)
{
    unsigned char *host = sim_mem_host(&dev->memory, address, bytes);
    if (!host)
        diag_error(d, SPAN_NONE, "%" PRIu64 " bytes at 0x%" PRIx64 " are not inside a buffer",
                   bytes, address);
    return host;
}

static enum device_status sim_write(struct device *dev, uint64_t address, const void *from,
                                    uint64_t bytes, struct diags *d)
{
    unsigned char *to = host_range(dev, address, bytes, d);
    if (!to)
        return DEVICE_REFUSED;
    if (bytes)
        memcpy(to, from, (size_t)bytes);
    sim_check_written(sim_mem_near(&dev->memory, address), address, bytes);
    return DEVICE_OK;
}

static enum device_status sim_read(struct device *dev, void *to, uint64_t address, uint64_t bytes,
                                   struct diags *d)
{
    const unsigned char *from = host_range(dev, address, bytes, d);
    if (!from)
        return DEVICE_REFUSED;
    if (bytes)
        memcpy(to, from, (size_t)bytes);
    return DEVICE_OK;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static enum device_status sim_copy(struct device *dev, uint64_t to, uint64_t from, uint64_t bytes,
                                   struct device_stats *stats, struct diags *d)
{
    unsigned char *dst = host_range(dev, to, bytes, d);
    const unsigned char *src = dst ? host_range(dev, from, bytes, d) : NULL;
    if (!src)
        return DEVICE_REFUSED;
    const double start = now();
    memmove(dst, src, (size_t)bytes);
    sim_check_written(sim_mem_near(&dev->memory, to), to, bytes);
    if (stats)
        *stats = (struct device_stats){.seconds = now() - start};
    return DEVICE_OK;
}

static enum device_status sim_tensor_map(struct device *dev, const struct device_tensor_map *m,
                                         unsigned char to[DEVICE_TENSOR_MAP], struct diags *d)
{
    (void)dev;
    if (!device_tensor_map_check(m, NULL, SPAN_NONE, d))
        return DEVICE_REFUSED;
    sim_tensor_encode(m, to);
    return DEVICE_OK;
}

/* ---- modules and launches -------------------------------------------------------------------- */

static void unload_module(struct device *dev, struct device_module *m)
{
    for (size_t i = 0; i < m->symbols.list.n; i++)
        sim_mem_release(&dev->memory, m->symbols.list.v[i].address);
    sim_heap_forget(dev->memory.heap, m->source);
    arena_free(m->arena);
}

static enum device_status read_module(struct device *dev, struct device_module *m,
                                      const struct source *ptx, struct diags *d)
{
    m->source = ptx;
    m->ptx = ptx_parse(m->arena, ptx, d);
    if (!m->ptx || !ptx_validate(m->ptx, d))
        return DEVICE_REFUSED;
    return sim_place_symbols(m->ptx, &dev->memory, &m->symbols, d);
}

static enum device_status load_module(struct device *dev, const struct source *ptx,
                                      struct device_module **out, struct diags *d)
{
    struct arena *a = arena_new();
    struct device_module *volatile m = NULL;
    *out = NULL;
    if (!a || setjmp(*arena_guard(a))) {
        diag_error(d, SPAN_NONE, "no memory left to load a module");
        if (m)
            unload_module(dev, m);
        else
            arena_free(a);
        return DEVICE_FAILED;
    }
    m = ARENA_NEW(a, struct device_module);
    m->arena = a;
    const enum device_status s = read_module(dev, m, ptx, d);
    arena_unguard(a);
    if (s == DEVICE_OK)
        *out = m;
    else
        unload_module(dev, m);
    return s;
}

static enum device_status sim_load(struct device *dev, const struct source *ptx, struct diags *d)
{
    if (dev->module)
        unload_module(dev, dev->module);
    return load_module(dev, ptx, &dev->module, d);
}

static enum device_status symbol(struct device *dev, const struct device_module *m,
                                 const char *name, uint64_t *address, uint64_t *bytes,
                                 struct diags *d)
{
    (void)dev;
    for (size_t i = 0; i < m->symbols.list.n; i++) {
        const struct sim_symbol *s = &m->symbols.list.v[i];
        if (strcmp(s->var->name, name) != 0)
            continue;
        *address = s->address;
        *bytes = ptx_var_bytes(s->var);
        return DEVICE_OK;
    }
    diag_error(d, SPAN_NONE, "the module has no variable '%s' in global or constant memory", name);
    return DEVICE_REFUSED;
}

static enum device_status run(struct device *dev, struct sim_launch *l, size_t n,
                              struct device_stats *stats, struct diags *d)
{
    for (size_t i = 0; i < n; i++) {
        atomic_store(&l->next_turn, 0);
        atomic_store(&l->begun, 0);
        atomic_store(&l->ended, 0);
        atomic_store(&l->stop_after, UINT64_MAX);
        atomic_store(&l->count, 0);
        const double start = now();
        if (dev->memory.heap)
            dev->memory.heap->launches++;
        if (dev->check)
            sim_check_begin(dev->check, l);
        const bool ok = sim_run_grid(l, worker_threads(dev));
        if (stats)
            stats[i] = (struct device_stats){now() - start, atomic_load(&l->count)};
        system_print(l, dev->options.print, dev->options.print_ctx, d);
        if (!ok)
            sim_report(l, &l->fault, d);
        const bool clean = !dev->check || sim_check_end(dev->check, l, d);
        if (!ok || !clean)
            return l->fault.kind == SIM_F_MEMORY ? DEVICE_FAILED : DEVICE_FAULT;
    }
    return DEVICE_OK;
}

static bool make_heap(struct device *dev)
{
    const uint64_t bytes = dev->options.heap_bytes ? dev->options.heap_bytes : SIM_HEAP_BYTES;
    if (dev->memory.heap)
        return true;
    struct sim_heap *h = sim_heap_new(&dev->memory, bytes);
    dev->memory.heap = h; /* goes with the memory */
    return h && (!dev->check || sim_check_alloc(dev->check, h->buffer));
}

static enum device_status launch_in(struct device *dev, struct arena *a,
                                    const struct device_launch *what, size_t n,
                                    struct device_stats *stats, struct diags *d)
{
    const struct device_module *m = what->module ? what->module : dev->module;
    const struct ptx_func *f = sim_check_launch(m->ptx, what, d);
    if (!f)
        return DEVICE_REFUSED;
    struct sim_params params = sim_pack_params(a, f, what);
    const struct device_label label = {.name = NULL, .read_only = true};
    struct sim_buffer *block = sim_mem_alloc(&dev->memory, params.bytes, &label, "parameter block");
    if (!block) {
        diag_error(d, SPAN_NONE, "no memory left for the parameters of '%s'", what->entry);
        return DEVICE_FAILED;
    }
    memcpy(block->host, params.block, (size_t)params.bytes);
    const struct sim_decode_in in = {.arena = a,
                                     .module = m->ptx,
                                     .func = f,
                                     .build = &dev->build,
                                     .symbols = &m->symbols,
                                     .params = params.block,
                                     .param_base = block->base,
                                     .param_offset = params.offset,
                                     .param_bytes = params.bytes,
                                     .sm = dev->options.sm ? dev->options.sm : m->ptx->sm};
    struct sim_launch l = {
        .what = what, .options = &dev->options, .memory = &dev->memory, .arena = a};
    struct sim_code *code = sim_decode(&in, d);
    if (code)
        sim_name_arrays(a, code, what);
    l.code = code;
    l.nblock = (uint64_t)what->grid.x * what->grid.y * what->grid.z;
    l.build = &dev->build;
    l.cluster = sim_cluster_of(f, what);
    l.ncluster = l.cluster.x * l.cluster.y * l.cluster.z;
    l.threads = what->block.x * what->block.y * what->block.z;
    l.limit = dev->options.max_instructions ? dev->options.max_instructions : DEVICE_INSTRUCTIONS;
    l.seed = dev->options.seed;
    l.interrupted = dev->options.interrupted;
    l.progress = dev->options.progress;
    l.progress_ctx = dev->options.progress_ctx;
    enum device_status s = DEVICE_REFUSED;
    if (l.code && l.code->allocates && !make_heap(dev)) {
        diag_error(d, SPAN_NONE, "no memory left for the heap of kernels");
        s = DEVICE_FAILED;
    } else if (l.code && sim_check_shared(m->ptx, l.code, what, &l.shared_bytes, d)) {
        l.resident = sim_resident(&l);
        pthread_mutex_init(&l.lock, NULL);
        if (dev->check)
            sim_check_instrument(dev->check, &l, &dev->build);
        s = run(dev, &l, n, stats, d);
        pthread_mutex_destroy(&l.lock);
    }
    sim_mem_release(&dev->memory, block->base);
    return s;
}

static enum device_status sim_launch_n(struct device *dev, const struct device_launch *what,
                                       size_t n, struct device_stats *stats, struct diags *d)
{
    if (!what->module && !dev->module) {
        diag_error(d, SPAN_NONE, "no module is loaded");
        return DEVICE_REFUSED;
    }
    struct arena *a = arena_new();
    if (!a) {
        diag_error(d, SPAN_NONE, "no memory left to launch '%s'", what->entry);
        return DEVICE_FAILED;
    }
    enum device_status s;
    if (setjmp(*arena_guard(a))) {
        diag_error(d, SPAN_NONE, "no memory left to launch '%s'", what->entry);
        s = DEVICE_FAILED;
    } else {
        s = launch_in(dev, a, what, n, stats, d);
        arena_unguard(a);
    }
    arena_free(a);
    return s;
}

static enum device_status sim_finish(struct device *dev, struct diags *d)
{
    if (!(dev->options.check & DEVICE_CHECK_MEMORY))
        return DEVICE_OK;
    return sim_heap_leaks(dev->memory.heap, dev->options.suppressions, d) ? DEVICE_OK
                                                                          : DEVICE_FAULT;
}

static enum device_status sim_enter(struct device *dev, struct diags *d)
{
    (void)dev;
    (void)d;
    return DEVICE_OK;
}

static void sim_close(struct device *dev)
{
    if (dev->module)
        unload_module(dev, dev->module);
    sim_mem_free(&dev->memory);
    sim_check_free(dev->check);
}

const struct device_ops sim_device = {
    .kind = "cpu",
    .count = sim_count_devices,
    .open = sim_open,
    .info = sim_info,
    .alloc = sim_alloc,
    .release = sim_release,
    .bind = sim_bind,
    .unbind = sim_unbind,
    .describe = sim_describe,
    .write = sim_write,
    .read = sim_read,
    .copy = sim_copy,
    .load = sim_load,
    .load_module = load_module,
    .unload_module = unload_module,
    .symbol = symbol,
    .launch = sim_launch_n,
    .tensor_map = sim_tensor_map,
    .enter = sim_enter,
    .finish = sim_finish,
    .close = sim_close,
};
