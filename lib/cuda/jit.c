#include <config.h>

#include "cuda/jit.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cache.h"
#include "base/io.h"
#include "cuda/load.h"

enum { KEPT_MOST = 1000, KEPT_BYTES = 1 << 16 };

static bool has(const char *s, size_t n, const char *word)
{
    return memmem(s, n, word, strlen(word)) != NULL;
}

bool cu_jit_delicate(const struct source *ptx)
{
    return has(ptx->text, ptx->len, "wgmma.mma_async") || has(ptx->text, ptx->len, "setmaxnreg");
}

/* ---- the log's lines ---- */

/* "ptxas info    : (C7510) Potential Performance Loss: ..." */
static const char *loss(const char *s, size_t n)
{
    return memmem(s, n, "(C75", 4);
}

/* The number before " bytes spill stores" or the like; 0: none. */
static unsigned long count_before(const char *s, size_t n, const char *what)
{
    const char *at = memmem(s, n, what, strlen(what));
    while (at && at > s && at[-1] >= '0' && at[-1] <= '9')
        at--;
    return at ? strtoul(at, NULL, 10) : 0;
}

static bool spills(const char *s, size_t n)
{
    return count_before(s, n, " bytes spill stores") || count_before(s, n, " bytes spill loads");
}

static const char properties[] = "Function properties for ";

const char *cu_jit_verdict(struct arena *a, const char *log)
{
    struct buf out = buf_in(a);
    const char *whose = NULL;
    size_t len = 0;
    while (*log) {
        size_t n = strcspn(log, "\r\n");
        if (has(log, n, properties)) {
            whose = log;
            len = n;
        } else if (loss(log, n) || spills(log, n)) {
            if (spills(log, n) && whose)
                buf_printf(&out, "%.*s\n", (int)len, whose);
            buf_printf(&out, "%.*s\n", (int)n, log);
        }
        log += n + strspn(log + n, "\r\n");
    }
    return buf_text(&out);
}

/* ---- where it belongs ---- */

static const char *line_start(const struct source *ptx, const char *p)
{
    while (p > ptx->text && p[-1] != '\n')
        p--;
    return p;
}

static struct span line_at(const struct source *ptx, const char *p)
{
    const char *end = ptx->text + ptx->len, *eol = memchr(p, '\n', (size_t)(end - p));
    const char *from = line_start(ptx, p);
    while (*from == ' ' || *from == '\t')
        from++;
    eol = eol ? eol : end;
    return (struct span){ptx, (size_t)(from - ptx->text), (size_t)(eol - from)};
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$';
}

/* Where "name" stands behind .entry or .func; NULL: nowhere. */
static const char *find_function(const struct source *ptx, const char *name, size_t n)
{
    const char *p = ptx->text, *end = p + ptx->len;
    while (n && (p = memmem(p, (size_t)(end - p), name, n))) {
        const char *line = line_start(ptx, p);
        size_t before = (size_t)(p - line);
        if ((has(line, before, ".entry") || has(line, before, ".func")) && p > line &&
            !is_word(p[-1]) && (p + n == end || !is_word(p[n])))
            return p;
        p += n;
    }
    return NULL;
}

/* "in the function 'gemm'" */
static const char *named(const struct source *ptx, const char *s, size_t n)
{
    static const char mark[] = "function '";
    const char *at = memmem(s, n, mark, sizeof mark - 1), *end = s + n;
    if (!at)
        return NULL;
    at += sizeof mark - 1;
    const char *quote = memchr(at, '\'', (size_t)(end - at));
    return quote ? find_function(ptx, at, (size_t)(quote - at)) : NULL;
}

/* Where a message belongs: at the line that it says; else at the first instruction that it is
 * about, in the function that it names. */
static struct span place_of(const struct source *ptx, const char *s, size_t n)
{
    static const char mark[] = "around line ";
    const char *line = memmem(s, n, mark, sizeof mark - 1);
    if (line)
        return cu_line_span(ptx, strtoul(line + sizeof mark - 1, NULL, 10));
    const char *word = has(s, n, "setmaxnreg") ? "setmaxnreg" : "wgmma.mma_async";
    const char *from = named(ptx, s, n), *end = ptx->text + ptx->len;
    from = from ? from : ptx->text;
    const char *at = memmem(from, (size_t)(end - from), word, strlen(word));
    return at ? line_at(ptx, at) : SPAN_NONE;
}

static void warn_loss(const struct source *ptx, const char *s, size_t n, struct diags *d)
{
    const char *code = loss(s, n), *text = memchr(code, ')', (size_t)(s + n - code));
    if (!text)
        return;
    for (text++; *text == ' ';)
        text++;
    diag_warning(d, place_of(ptx, s, n), "the driver's compiler says: %.*s (%.5s)",
                 (int)(s + n - text), text, code + 1);
}

static void warn_spills(const struct source *ptx, const char *name, size_t len, const char *s,
                        size_t n, struct diags *d)
{
    const char *at = find_function(ptx, name, len);
    /* a function that is called keeps its caller's registers in memory: that is no lack of them */
    if (at && has(line_start(ptx, at), (size_t)(at - line_start(ptx, at)), ".func"))
        return;
    diag_warning(d, at ? line_at(ptx, at) : SPAN_NONE,
                 "the driver's compiler finds no registers for all of '%.*s': it stores %lu bytes "
                 "and loads %lu",
                 (int)len, name, count_before(s, n, " bytes spill stores"),
                 count_before(s, n, " bytes spill loads"));
}

void cu_jit_warn(const struct source *ptx, const char *verdict, struct diags *d)
{
    const char *name = "";
    size_t len = 0;
    while (*verdict) {
        size_t n = strcspn(verdict, "\r\n");
        const char *is = memmem(verdict, n, properties, sizeof properties - 1);
        if (is) {
            name = is + sizeof properties - 1;
            len = (size_t)(verdict + n - name);
        } else if (loss(verdict, n)) {
            warn_loss(ptx, verdict, n, d);
        } else if (spills(verdict, n)) {
            warn_spills(ptx, name, len, verdict, n, d);
        }
        verdict += n + strspn(verdict + n, "\r\n");
    }
}

/* ---- what is kept: a line that says of what, the verdict, and a last line ---- */

static uint64_t hash(uint64_t h, const void *p, size_t n)
{
    const unsigned char *s = p;
    for (size_t i = 0; i < n; i++)
        h = (h ^ s[i]) * UINT64_C(0x100000001b3); /* FNV-1a */
    return h;
}

static const char *name_of(struct arena *a, const struct cu_jit *j)
{
    uint64_t h[2] = {UINT64_C(0xcbf29ce484222325), UINT64_C(0x9e3779b97f4a7c15)};
    for (int i = 0; i < 2; i++) {
        h[i] = hash(h[i], &j->sm, sizeof j->sm);
        h[i] = hash(h[i], &j->driver, sizeof j->driver);
        h[i] = hash(h[i], j->ptx->text, j->ptx->len);
    }
    return arena_printf(a, "%016" PRIx64 "%016" PRIx64, h[0], h[1]);
}

static const char *first_line(struct arena *a, const char *name)
{
    return arena_printf(a, "kaio-jit 1 %s\n", name);
}
static const char last_line[] = "end\n";

const char *cu_jit_recall(struct arena *a, const struct cu_jit *j)
{
    const char *name = name_of(a, j), *path = cache_path(a, arena_printf(a, "jit/%s", name));
    const char *first = first_line(a, name);
    size_t head = strlen(first), tail = sizeof last_line - 1;
    const struct source *s = path ? io_read(a, diags_new(a), path, KEPT_BYTES) : NULL;
    if (!s || s->len < head + tail || strlen(s->text) != s->len ||
        memcmp(s->text, first, head) != 0 || strcmp(s->text + s->len - tail, last_line) != 0)
        return NULL;
    return arena_strndup(a, s->text + head, s->len - head - tail);
}

void cu_jit_keep(struct arena *a, const struct cu_jit *j, const char *verdict)
{
    const char *name = name_of(a, j), *path = cache_path(a, arena_printf(a, "jit/%s", name));
    struct diags *unsaid = diags_new(a);
    if (!path || strlen(verdict) > KEPT_BYTES / 2)
        return;
    cache_make_folders(a, path);
    struct io_out *out = io_create(a, unsaid, path);
    if (!out)
        return;
    const char *first = first_line(a, name);
    io_write(out, first, strlen(first));
    io_write(out, verdict, strlen(verdict));
    io_write(out, last_line, sizeof last_line - 1);
    if (io_commit(out, unsaid))
        cache_trim(a, arena_strndup(a, path, (size_t)(strrchr(path, '/') - path)), KEPT_MOST);
}
