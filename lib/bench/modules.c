#include <config.h>

#include "bench/modules.h"

#include <pthread.h>
#include <unistd.h>

enum { MOST_THREADS = 32 }; /* each compilation takes memory, too */

struct job {
    const struct source *ptx;
    struct arena *a; /* of d; the thread's until it is done */
    struct diags *d;
    struct device_module *module;
    enum device_status status;
    bool done;
};

struct modules {
    const struct bench_device *dev;
    const volatile int *interrupted;
    struct job *job;
    size_t n, next; /* jobs; the first that nobody has begun with */
    bool stop;
    pthread_mutex_t lock; /* of next, stop, and of jobs that are not done */
    pthread_cond_t news;
    pthread_t thread[MOST_THREADS];
    unsigned nthread;
};

static void compile(struct modules *m, struct job *j)
{
    const struct bench_device *b = m->dev;
    j->a = arena_new();
    if (!j->a) {
        j->status = DEVICE_FAILED;
        return;
    }
    j->d = diags_new(j->a);
    j->status = b->ops->enter(b->dev, j->d);
    if (j->status == DEVICE_OK)
        j->status = b->ops->load_module(b->dev, j->ptx, &j->module, j->d);
}

static void *work(void *arg)
{
    struct modules *m = arg;
    pthread_mutex_lock(&m->lock);
    while (m->next < m->n && !m->stop) {
        struct job *j = &m->job[m->next++];
        pthread_mutex_unlock(&m->lock);
        if (*m->interrupted)
            j->status = DEVICE_REFUSED;
        else
            compile(m, j);
        pthread_mutex_lock(&m->lock);
        j->done = true;
        pthread_cond_broadcast(&m->news);
    }
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

struct modules *modules_begin(struct arena *a, const struct bench_device *dev,
                              const struct source *const *ptx, size_t n, unsigned threads,
                              const volatile int *interrupted)
{
    struct modules *m = ARENA_NEW(a, struct modules);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t most = threads ? threads : cores < 1 ? 1 : (size_t)cores;
    most = most < n ? most : n;
    most = most < MOST_THREADS ? most : MOST_THREADS;
    m->dev = dev;
    m->interrupted = interrupted;
    m->n = n;
    m->job = ARENA_ARRAY(a, n, struct job);
    for (size_t i = 0; i < n; i++)
        m->job[i].ptx = ptx[i];
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->news, NULL);
    while (most > 1 && m->nthread < most &&
           pthread_create(&m->thread[m->nthread], NULL, work, m) == 0)
        m->nthread++;
    return m;
}

enum device_status modules_take(struct modules *m, size_t i, struct device_module **out,
                                struct diags *d)
{
    struct job *j = &m->job[i];
    pthread_mutex_lock(&m->lock);
    while (m->nthread && !j->done)
        pthread_cond_wait(&m->news, &m->lock);
    pthread_mutex_unlock(&m->lock);
    if (!j->done)
        compile(m, j);
    j->done = true;
    *out = j->module;
    j->module = NULL;
    if (j->d)
        diags_append(d, j->d);
    else if (j->status == DEVICE_FAILED)
        diag_error(d, SPAN_NONE, "no memory left to compile a module");
    return j->status;
}

void modules_end(struct modules *m)
{
    pthread_mutex_lock(&m->lock);
    m->stop = true;
    pthread_mutex_unlock(&m->lock);
    for (unsigned i = 0; i < m->nthread; i++)
        pthread_join(m->thread[i], NULL);
    for (size_t i = 0; i < m->n; i++) {
        if (m->job[i].module)
            m->dev->ops->unload_module(m->dev->dev, m->job[i].module);
        arena_free(m->job[i].a);
    }
    pthread_cond_destroy(&m->news);
    pthread_mutex_destroy(&m->lock);
}
