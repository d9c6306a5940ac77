#include <config.h>

#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

/* --- inputs --- */

struct io_in *io_open(struct arena *a, struct diags *d, const char *path)
{
    struct io_in *in = ARENA_NEW(a, struct io_in);
    struct stat st;
    const bool is_stdin = strcmp(path, "-") == 0;
    in->name = is_stdin ? "<stdin>" : arena_strdup(a, path);
    in->file = is_stdin ? stdin : fopen(path, "rbe");
    in->left = IO_UNKNOWN;
    if (!in->file) {
        diag_error(d, SPAN_NONE, "cannot open '%s': %s", path, strerror(errno));
        return NULL;
    }
    if (fstat(fileno(in->file), &st) != 0 || !S_ISREG(st.st_mode))
        return in;
    /* some files of /proc say that they are empty, and are not; standard input may have been read
     * from */
    const off_t at = ftello(in->file);
    if (st.st_size > 0 && at >= 0 && at <= st.st_size)
        in->left = (uint64_t)(st.st_size - at);
    return in;
}

struct io_in *io_memory(struct arena *a, const char *name, const void *bytes, size_t n)
{
    struct io_in *in = ARENA_NEW(a, struct io_in);
    *in = (struct io_in){.memory = bytes ? bytes : "", .name = name, .left = n};
    return in;
}

bool io_get(struct io_in *in, void *to, size_t n, size_t *got, struct diags *d)
{
    *got = n;
    if (in->memory) {
        *got = n < in->left ? n : (size_t)in->left;
        memcpy(to, in->memory, *got);
        in->memory += *got;
    } else if (n) {
        errno = 0;
        *got = fread(to, 1, n, in->file);
        if (*got < n && ferror(in->file))
            return diag_error(d, SPAN_NONE, "cannot read '%s': %s", in->name,
                              strerror(errno ? errno : EIO));
    }
    if (in->left != IO_UNKNOWN)
        in->left -= *got < in->left ? *got : in->left;
    return true;
}

bool io_skip(struct io_in *in, uint64_t n, struct diags *d)
{
    char chunk[65536];
    size_t got = 1;
    if (in->file && in->left != IO_UNKNOWN && n <= in->left &&
        fseeko(in->file, (off_t)n, SEEK_CUR) == 0) {
        in->left -= n;
        return true;
    }
    for (; n && got; n -= got)
        if (!io_get(in, chunk, n < sizeof chunk ? (size_t)n : sizeof chunk, &got, d))
            return false;
    return true;
}

void io_close(struct io_in *in)
{
    if (in && in->file && in->file != stdin)
        fclose(in->file);
    if (in)
        in->file = NULL;
}

static const struct source *read_text(struct arena *a, struct diags *d, struct io_in *in,
                                      size_t limit)
{
    struct buf text = buf_in(a);
    char chunk[65536];
    size_t n = sizeof chunk;
    if (in->left != IO_UNKNOWN && in->left < limit)
        buf_reserve(&text, (size_t)in->left); /* no copies while it grows */
    while (n == sizeof chunk) {
        if (!io_get(in, chunk, sizeof chunk, &n, d))
            return NULL;
        if (n > limit - text.len) {
            diag_error(d, SPAN_NONE,
                       "'%s' is longer than %zu bytes, the most that is read of a text", in->name,
                       limit);
            return NULL;
        }
        buf_add(&text, chunk, n);
    }
    struct source *s = ARENA_NEW(a, struct source);
    *s = (struct source){.name = in->name, .text = buf_text(&text), .len = text.len};
    return s;
}

const struct source *io_read(struct arena *a, struct diags *d, const char *path, size_t limit)
{
    struct io_in *in = io_open(a, d, path);
    const struct source *s = in ? read_text(a, d, in, limit) : NULL;
    io_close(in);
    return s;
}

struct span io_line(struct arena *a, const char *path, size_t line)
{
    struct stat st;
    /* a name out of somebody's PTX: no device, no FIFO, nothing huge, and no error when it is not
     * there */
    if (line == 0 || stat(path, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > IO_LINE_LIMIT)
        return SPAN_NONE;
    const struct source *src = io_read(a, diags_new(a), path, IO_LINE_LIMIT);
    const char *p = src ? src->text : NULL, *end = p ? p + src->len : NULL;
    for (; p && line > 1; line--) {
        p = memchr(p, '\n', (size_t)(end - p));
        p = p ? p + 1 : NULL;
    }
    if (!p || p >= end)
        return SPAN_NONE;
    const char *eol = memchr(p, '\n', (size_t)(end - p));
    eol = eol ? eol : end;
    while (p < eol && (*p == ' ' || *p == '\t'))
        p++;
    while (eol > p && (eol[-1] == ' ' || eol[-1] == '\r'))
        eol--;
    return (struct span){src, (size_t)(p - src->text), (size_t)(eol - p)};
}

bool io_is_stdin(const char *path)
{
    struct stat in, st;
    if (strcmp(path, "-") == 0 || io_descriptor(path) == STDIN_FILENO)
        return true;
    return fstat(STDIN_FILENO, &in) == 0 && S_ISFIFO(in.st_mode) && stat(path, &st) == 0 &&
           st.st_dev == in.st_dev && st.st_ino == in.st_ino;
}

/* --- files that stay as they are --- */

static bool is_in_memory(const char *path)
{
    enum { TMPFS = 0x01021994 };
    const unsigned ramfs = 0x858458f6, hugetlbfs = 0x958458f6;
    struct statfs fs;
    if (statfs(path, &fs) != 0)
        return true;
    const unsigned type = (unsigned)fs.f_type;
    return type == TMPFS || type == ramfs || type == hugetlbfs;
}

static int64_t nanoseconds(struct timespec t)
{
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

bool io_state(const char *path, struct io_state *s)
{
    static const int64_t tick = 2000000000; /* of the coarsest clock of a file system, FAT's */
    struct stat st;
    struct timespec now;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || is_in_memory(path) ||
        clock_gettime(CLOCK_REALTIME, &now) != 0)
        return false;
    *s = (struct io_state){.device = st.st_dev,
                           .inode = st.st_ino,
                           .bytes = (uint64_t)st.st_size,
                           .modified = nanoseconds(st.st_mtim),
                           .changed = nanoseconds(st.st_ctim)};
    return nanoseconds(now) - s->modified > tick;
}

bool io_same_state(const struct io_state *a, const struct io_state *b)
{
    return a->device == b->device && a->inode == b->inode && a->bytes == b->bytes &&
           a->modified == b->modified && a->changed == b->changed;
}

/* --- unfinished outputs ---
 * The one piece of state the library keeps for the process: a signal handler gets no argument.
 * Slots are taken and given back atomically, so outputs may be made by any thread and a signal may
 * come at any time. */

enum { LIVE_MAX = 64 };
static _Atomic(char *) live[LIVE_MAX];

static int live_add(char *tmp)
{
    for (int i = 0; i < LIVE_MAX; i++) {
        char *empty = NULL;
        if (atomic_compare_exchange_strong(&live[i], &empty, tmp))
            return i;
    }
    return -1; /* so many at once: a signal leaves this one behind */
}

static void live_remove(int slot)
{
    if (slot >= 0)
        atomic_store(&live[slot], NULL);
}

void io_remove_unfinished(void)
{
    for (int i = 0; i < LIVE_MAX; i++) {
        char *tmp = atomic_exchange(&live[i], NULL);
        if (tmp)
            unlink(tmp);
    }
}

/* --- outputs --- */

/* Such a path may lead to a regular file, but it means the open descriptor: the file must not be
 * replaced under it. */
int io_descriptor(const char *path)
{
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/", NULL};
    if (strcmp(path, "/dev/stdin") == 0)
        return STDIN_FILENO;
    if (strcmp(path, "/dev/stdout") == 0)
        return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0)
        return STDERR_FILENO;
    for (int i = 0; folders[i]; i++) {
        size_t n = strlen(folders[i]);
        const char *digits = path + n;
        if (strncmp(path, folders[i], n) == 0 && *digits &&
            strspn(digits, "0123456789") == strlen(digits) && strlen(digits) < 7)
            return atoi(digits);
    }
    return -1;
}

static FILE *open_descriptor(int fd)
{
    if (fd == STDOUT_FILENO)
        fflush(stdout); /* what was printed before comes first */
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    FILE *f = copy < 0 ? NULL : fdopen(copy, "wb");
    if (!f && copy >= 0)
        close(copy);
    return f;
}

/* Where a symbolic link leads that leads to nothing yet, one link at a time; NULL: in a circle, or
 * no memory. */
static char *follow(struct arena *a, const char *path)
{
    enum { MOST = 40 }; /* as Linux has it */
    char *at = arena_strdup(a, path), to[PATH_MAX];
    for (int i = 0; i < MOST; i++) {
        const ssize_t n = readlink(at, to, sizeof to);
        const char *slash = strrchr(at, '/');
        const int dir = slash ? (int)(slash - at + 1) : 0;
        if (n < 0 || n == sizeof to)
            return at;
        at = arena_printf(a, "%.*s%.*s", to[0] == '/' ? 0 : dir, at, (int)n, to);
    }
    errno = ELOOP;
    return NULL;
}

/* The path with its symbolic links followed, so that a link stays a link, also one to a file that
 * is still to be made. */
static char *resolve(struct arena *a, const char *path)
{
    char *real = realpath(path, NULL);
    char *copy = real ? arena_strdup(a, real) : follow(a, path);
    free(real);
    return copy;
}

/* Which can only be asked by setting it: one thread at a time, or the mask that another has set
 * stays. */
static mode_t current_umask(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    mode_t mask = umask(0);
    umask(mask);
    pthread_mutex_unlock(&lock);
    return mask;
}

static bool open_temporary(struct arena *a, struct io_out *o, const struct stat *old)
{
    const char *slash = strrchr(o->target, '/');
    int dir = slash ? (int)(slash - o->target + 1) : 0;
    char *tmp = arena_printf(a, "%.*s.kaio-XXXXXX", dir, o->target);
    sigset_t all, before;
    /* between the file's birth and its place in the list no signal may end the process */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int fd = mkostemp(tmp, O_CLOEXEC);
    if (fd >= 0) {
        o->tmp = tmp;
        o->slot = live_add(tmp);
    }
    int error = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    if (fd < 0)
        return false;
    mode_t mask = current_umask();
    fchmod(fd, old ? old->st_mode & 0777 : 0666 & ~mask);
    o->file = fdopen(fd, "wb");
    if (!o->file)
        close(fd);
    return o->file != NULL;
}

struct io_out *io_create(struct arena *a, struct diags *d, const char *path)
{
    struct io_out *o = ARENA_NEW(a, struct io_out);
    struct stat st;
    int fd = strcmp(path, "-") == 0 ? STDOUT_FILENO : io_descriptor(path);
    o->path = arena_strdup(a, fd == STDOUT_FILENO && path[0] == '-' ? "<stdout>" : path);
    o->slot = -1;
    if (fd >= 0) {
        o->file = open_descriptor(fd);
    } else {
        bool exists = stat(path, &st) == 0;
        o->target = resolve(a, path);
        if (!o->target)
            errno = ELOOP;
        else if (!*path)
            errno = ENOENT;
        else if (exists && S_ISDIR(st.st_mode))
            errno = EISDIR;
        else if (exists && access(path, W_OK) != 0)
            o->file = NULL; /* rename() would replace a file the user made read-only */
        else if (exists && !S_ISREG(st.st_mode))
            o->file = fopen(path, "wbe");
        else
            open_temporary(a, o, exists ? &st : NULL);
    }
    if (o->file)
        return o;
    diag_error(d, SPAN_NONE, "cannot write '%s': %s", o->path, strerror(errno));
    io_discard(o);
    return NULL;
}

void io_write(struct io_out *o, const void *p, size_t n)
{
    errno = 0;
    if (fwrite(p, 1, n, o->file) < n && !o->error)
        o->error = errno;
}

bool io_commit(struct io_out *o, struct diags *d)
{
    errno = 0;
    bool good = fflush(o->file) == 0 && !ferror(o->file);
    int error = o->error ? o->error : errno;
    if (fclose(o->file) != 0 && good) {
        good = false;
        error = errno;
    }
    o->file = NULL;
    if (good && o->tmp) {
        good = rename(o->tmp, o->target) == 0;
        error = errno;
        if (good) {
            live_remove(o->slot);
            o->slot = -1;
            o->tmp = NULL;
        }
    }
    if (good)
        return true;
    diag_error(d, SPAN_NONE, "cannot write '%s': %s", o->path, strerror(error ? error : EIO));
    io_discard(o);
    return false;
}

void io_discard(struct io_out *o)
{
    if (!o)
        return;
    if (o->file)
        fclose(o->file);
    o->file = NULL;
    if (o->tmp) {
        unlink(o->tmp);
        live_remove(o->slot);
    }
    o->tmp = NULL;
    o->slot = -1;
}
