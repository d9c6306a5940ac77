#include <config.h>

#include "cuda/load.h"

#include <ctype.h>
#include <stdlib.h>

bool cu_is_cubin(const struct source *s)
{
    return s->len >= 4 && memcmp(s->text, "\177ELF", 4) == 0;
}

/* ---- the head of a module ---- */

/* A line's text after a directive, or NULL: "  .target sm_90a // x" gives " sm_90a // x". */
static const char *directive(const char *line, const char *end, const char *word)
{
    size_t n = strlen(word);
    while (line < end && (*line == ' ' || *line == '\t'))
        line++;
    if ((size_t)(end - line) <= n || memcmp(line, word, n) != 0 || isalnum((unsigned char)line[n]))
        return NULL;
    return line + n;
}

static unsigned number(const char **p, const char *end)
{
    unsigned v = 0;
    for (; *p < end && **p >= '0' && **p <= '9'; ++*p)
        v = v < 100000 ? v * 10 + (unsigned)(**p - '0') : v;
    return v;
}

static void read_version(struct cu_header *h, const char *p, const char *end)
{
    while (p < end && isspace((unsigned char)*p))
        p++;
    unsigned major = number(&p, end), minor = 0;
    if (p < end && *p == '.') {
        p++;
        minor = number(&p, end);
    }
    h->version = major * 10 + minor;
}

static void read_target(struct cu_header *h, const char *p, const char *end)
{
    const char *sm = memmem(p, (size_t)(end - p), "sm_", 3);
    if (!sm)
        return;
    p = sm + 3;
    h->sm = number(&p, end);
    if (p < end && (*p == 'a' || *p == 'f'))
        h->suffix = *p;
}

struct cu_header cu_header_of(const struct source *ptx)
{
    struct cu_header h = {0};
    const char *p = ptx->text, *end = p + ptx->len;
    while (p < end && (!h.version || !h.sm)) {
        const char *eol = memchr(p, '\n', (size_t)(end - p)), *arg;
        eol = eol ? eol : end;
        struct span line = {ptx, (size_t)(p - ptx->text), (size_t)(eol - p)};
        if (!h.version && (arg = directive(p, eol, ".version"))) {
            read_version(&h, arg, eol);
            h.version_span = line;
        } else if (!h.sm && (arg = directive(p, eol, ".target"))) {
            read_target(&h, arg, eol);
            h.target_span = line;
        }
        p = eol < end ? eol + 1 : end;
    }
    return h;
}

/* ---- parameters ---- */

/* Behind a string that begins at p. */
static const char *skip_string(const char *p, const char *end)
{
    for (p++; p < end && *p != '"'; p++)
        p += *p == '\\' && p + 1 < end;
    return p < end ? p + 1 : end;
}

static const char *skip_comment(const char *p, const char *end)
{
    const bool line = p[1] == '/';
    const char *to = memmem(p + 2, (size_t)(end - p - 2), line ? "\n" : "*/", line ? 1 : 2);
    return to ? to + (line ? 1 : 2) : end;
}

/* Behind white space, comments and strings (names of files, which may be anything). */
static const char *skip(const char *p, const char *end)
{
    while (p < end)
        if (isspace((unsigned char)*p))
            p++;
        else if (*p == '"')
            p = skip_string(p, end);
        else if (end - p >= 2 && *p == '/' && (p[1] == '/' || p[1] == '*'))
            p = skip_comment(p, end);
        else
            break;
    return p;
}

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

/* Behind a word that stands at p, or NULL. */
static const char *word(const char *p, const char *end, const char *text)
{
    const size_t n = strlen(text);
    if ((size_t)(end - p) < n || memcmp(p, text, n) != 0)
        return NULL;
    return p + n < end && is_name(p[n]) ? NULL : p + n;
}

bool cu_count_params(const struct source *ptx, const char *entry, size_t *n)
{
    const char *p = ptx->text, *end = p + ptx->len, *to = NULL;
    if (cu_is_cubin(ptx)) /* there may be PTX in it, for a debugger */
        return false;
    for (p = skip(p, end); p < end; p = skip(p + 1, end))
        if (*p == '.' && (to = word(p, end, ".entry")) != NULL &&
            (to = word(skip(to, end), end, entry)) != NULL)
            break;
    if (p == end)
        return false;
    *n = 0;
    p = skip(to, end);
    if (p == end || *p != '(')
        return true;
    p = skip(p + 1, end);
    for (*n = p < end && *p != ')'; p < end && *p != ')'; p = skip(p + 1, end))
        *n += *p == ',';
    return true;
}

/* ---- what fits ---- */

/* Which PTX came with which CUDA: PTX ISA manual, "Release Notes". */
static const struct {
    int cuda;
    unsigned ptx;
} releases[] = {
    {11000, 70}, {11010, 71}, {11020, 72}, {11030, 73}, {11040, 74}, {11050, 75}, {11060, 76},
    {11070, 77}, {11080, 78}, {12000, 80}, {12010, 81}, {12020, 82}, {12030, 83}, {12040, 84},
    {12050, 85}, {12060, 85}, {12070, 86}, {12080, 87}, {12090, 88}, {13000, 90},
};

unsigned cu_ptx_of_driver(int cuda_version)
{
    unsigned ptx = releases[0].ptx;
    size_t n = sizeof releases / sizeof *releases;
    if (cuda_version >= releases[n - 1].cuda + 10)
        return 0;
    for (size_t i = 0; i < n && releases[i].cuda <= cuda_version; i++)
        ptx = releases[i].ptx;
    return ptx;
}

bool cu_header_fits(const struct cu_header *h, unsigned sm, int cuda_version, struct diags *d)
{
    unsigned ptx = cu_ptx_of_driver(cuda_version);
    bool fits = !h->suffix         ? h->sm <= sm
                : h->suffix == 'a' ? h->sm == sm
                                   : h->sm / 10 == sm / 10 && h->sm <= sm;
    if (h->sm && !fits)
        return diag_error(d, h->target_span, "the module needs sm_%u%.1s; this device is sm_%u",
                          h->sm, &h->suffix, sm);
    if (h->version && ptx && h->version > ptx)
        return diag_error(
            d, h->version_span,
            "the module is PTX %u.%u; this driver (CUDA %d.%d) compiles PTX up to %u.%u: "
            "update the driver",
            h->version / 10, h->version % 10, cuda_version / 1000, cuda_version % 1000 / 10,
            ptx / 10, ptx % 10);
    return true;
}

/* ---- the JIT's log ---- */

struct span cu_line_span(const struct source *ptx, unsigned long number)
{
    const char *p = ptx->text, *end = p + ptx->len;
    for (unsigned long i = 1; i < number && p < end; i++) {
        const char *eol = memchr(p, '\n', (size_t)(end - p));
        p = eol ? eol + 1 : end;
    }
    if (p == end)
        return SPAN_NONE;
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    const char *eol = memchr(p, '\n', (size_t)(end - p));
    return (struct span){ptx, (size_t)(p - ptx->text), (size_t)((eol ? eol : end) - p)};
}

/* One line of the log; what is not about a line of the input is a note. */
static void report_line(const struct source *ptx, const char *s, size_t n, struct diags *d)
{
    static const char mark[] = ", line ";
    const char *at = memmem(s, n, mark, sizeof mark - 1), *end = s + n;
    struct span where = SPAN_NONE;
    if (at) {
        char *after;
        unsigned long number = strtoul(at + sizeof mark - 1, &after, 10);
        const char *colon = memchr(after, ':', (size_t)(end - after));
        where = cu_line_span(ptx, number);
        if (colon) {
            s = colon + 1;
            while (s < end && *s == ' ')
                s++;
        }
    }
    if (at)
        diag_error(d, where, "the driver's compiler says: %.*s", (int)(end - s), s);
    else
        diag_note(d, SPAN_NONE, "%.*s", (int)(end - s), s);
}

void cu_report_log(const struct source *ptx, const char *log, struct diags *d)
{
    while (*log) {
        size_t n = strcspn(log, "\r\n");
        if (n)
            report_line(ptx, log, n, d);
        log += n + strspn(log + n, "\r\n");
    }
}
