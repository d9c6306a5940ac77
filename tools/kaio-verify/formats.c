/* Results as TAP, JSON lines and JUnit XML. */
#include <config.h>

#include "verify.h"

#include "base/finding.h"
#include "data/buffer.h"
#include "ref/report.h"

#include <math.h>

/* ---- TAP 14 (testanything.org) --------------------------------------------------------------- */

/* A description ends at a newline or at an unescaped '#'. */
static void tap_text(const char *s, FILE *out)
{
    for (; *s; s++) {
        if (*s == '#' || *s == '\\')
            fputc('\\', out);
        fputc(*s == '\n' ? ' ' : *s, out);
    }
}

/* JSON's strings are YAML's. */
static void tap_pair(const char *key, const char *value, struct buf *b)
{
    struct buf text = buf_in(b->arena);
    struct json j = json_in(&text, 0);
    json_str(&j, NULL, value);
    buf_printf(b, "  %s: %s\n", key, buf_text(&text));
}

static void tap_lines(const char *key, const char *s, struct buf *b)
{
    if (!*s)
        return;
    buf_printf(b, "  %s: |\n", key);
    while (*s) {
        size_t n = strcspn(s, "\n");
        buf_printf(b, "    %.*s\n", (int)n, s);
        s += n + (s[n] == '\n');
    }
}

static void tap_diagnostics(const struct rows *r, const struct row *row)
{
    struct buf b = buf_in(r->arena), lines = buf_in(r->arena);
    tap_pair("status", row_word(row->status), &b);
    if (row->why)
        tap_pair("message", row->why, &b);
    if (row->device)
        tap_pair("device", row->device, &b);
    if (row->repeat)
        tap_pair("repeat", row->repeat, &b);
    if (row->result && row->result->wrong) {
        report_misses(row->result, 0, &lines);
        tap_lines("mismatches", buf_text(&lines), &b);
        lines = buf_in(r->arena);
        report_map(row->result, 0, &lines);
        tap_lines("map", buf_text(&lines), &b);
    }
    fprintf(r->out, "  ---\n%s  ...\n", buf_text(&b));
}

void tap_row(const struct rows *r, const struct row *row)
{
    bool good = row->status == ROW_PASS || row->status == ROW_SKIP;
    fprintf(r->out, "%sok %zu - ", good ? "" : "not ", r->n);
    if (row->test) {
        tap_text(row_name(r->arena, row), r->out);
        fputc(' ', r->out);
    }
    if (row->status != ROW_SKIP)
        tap_text(row_description(r->arena, row), r->out);
    else {
        fputs("# SKIP ", r->out);
        tap_text(row->why, r->out);
    }
    fputc('\n', r->out);
    if (!good)
        tap_diagnostics(r, row);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void json_misses(struct json *j, const struct rows *r, const struct compare_result *c)
{
    json_array(j, "mismatches");
    for (size_t k = 0; k < c->nmiss; k++) {
        const struct compare_miss *m = &c->miss[k];
        char at[200];
        struct buf v = buf_in(r->arena);
        compare_position(c, m->flat, at, sizeof at);
        json_object(j, NULL);
        json_str(j, "index", at);
        if (m->is_int) {
            json_int(j, "got", m->igot);
            json_int(j, "want", m->iwant);
        } else {
            json_double(j, "got", m->got);
            json_double(j, "want", m->want);
            json_double(j, "low", m->lo);
            json_double(j, "high", m->hi);
        }
        report_value(c, m, &v);
        json_str(j, "text", buf_text(&v));
        json_end(j);
    }
    json_end(j);
}

static void json_result(struct json *j, const struct rows *r, const struct row *row)
{
    const struct compare_result *c = row->result;
    json_str(j, "output", row->output);
    json_str(j, "type", dtype_name(c->type));
    json_array(j, "shape");
    for (uint32_t d = 0; d < c->rank; d++)
        json_uint(j, NULL, c->shape[d]);
    json_end(j);
    json_uint(j, "count", c->count);
    json_uint(j, "compared", c->compared);
    json_uint(j, "wrong", c->wrong);
    json_uint(j, "exact", c->exact);
    json_uint(j, "unbounded", c->unbounded);
    json_double(j, "max_abs", c->max_abs);
    json_double(j, "max_ulp", c->max_ulp);
    json_double(j, "max_bound", c->max_bound);
    if (c->max_bound > 0) {
        char at[200];
        compare_position(c, c->worst, at, sizeof at);
        json_str(j, "worst", at);
    }
    json_double(j, "relative_l2", c->rms_want > 0 ? c->rms_error / c->rms_want : c->rms_error);
    if (c->wrong) {
        struct buf within = buf_in(r->arena);
        report_within(c, &within);
        json_str(j, "within", buf_text(&within));
        json_misses(j, r, c);
    }
}

void json_row(const struct rows *r, const struct row *row)
{
    struct buf b = buf_in(r->arena);
    struct json j = json_in(&b, 0);
    json_object(&j, NULL);
    json_str(&j, "status", row_word(row->status));
    if (row->kernel)
        json_str(&j, "kernel", row->kernel);
    if (row->test)
        json_str(&j, "test", row->test);
    if (row->why)
        json_str(&j, "why", row->why);
    if (row->device)
        json_str(&j, "device", row->device);
    if (row->target)
        json_str(&j, "target", row->target);
    if (row->code)
        json_str(&j, "code", row->code);
    if (row->fill)
        json_str(&j, "fill", row->fill);
    if (row->has_seed)
        json_uint(&j, "seed", row->seed);
    if (row->seconds > 0)
        json_double(&j, "seconds", row->seconds);
    if (row->step)
        json_str(&j, "step", row->step);
    if (row->calls) {
        json_uint(&j, "calls", row->calls);
        json_uint(&j, "checked", row->checked);
    }
    if (row->about)
        json_str(&j, "about", row->about);
    if (row->result)
        json_result(&j, r, row);
    else if (row->output)
        json_str(&j, "output", row->output);
    if (row->nfrom)
        json_array(&j, "from");
    for (size_t k = 0; k < row->nfrom; k++)
        json_str(&j, NULL, row->from[k]);
    if (row->nfrom)
        json_end(&j);
    if (row->repeat)
        json_str(&j, "repeat", row->repeat);
    if (row->said && row->said->list.n) {
        json_array(&j, "findings");
        diags_json_elements(row->said, &j);
        json_end(&j);
    }
    json_end(&j);
    fprintf(r->out, "%s\n", buf_text(&b));
}

/* ---- JUnit: testsuites, one testsuite a kernel, one testcase a row --------------------------- */

/* The length of the UTF-8 sequence at s that XML 1.0 takes; 0: none. */
static size_t xml_char(const unsigned char *s)
{
    size_t n = *s < 0x80                 ? 1
               : *s >= 0xc2 && *s < 0xe0 ? 2
               : *s >= 0xe0 && *s < 0xf0 ? 3
               : *s >= 0xf0 && *s < 0xf5 ? 4
                                         : 0;
    uint32_t c = n > 1 ? *s & (0x7fu >> n) : *s;
    for (size_t k = 1; k < n; k++) {
        if ((s[k] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (s[k] & 0x3fu);
    }
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    bool control = c < 32 && c != '\n' && c != '\t';
    bool bad = c < least[n] || (c >= 0xd800 && c < 0xe000) || c == 0xfffe || c == 0xffff ||
               c > 0x10ffff;
    return control || bad ? 0 : n;
}

static void xml(struct buf *b, const char *s)
{
    while (*s) {
        size_t n = xml_char((const unsigned char *)s);
        switch (n ? *s : 0) {
        case 0: buf_puts(b, "\xef\xbf\xbd"); break; /* U+FFFD */
        case '<': buf_puts(b, "&lt;"); break;
        case '>': buf_puts(b, "&gt;"); break;
        case '&': buf_puts(b, "&amp;"); break;
        case '"': buf_puts(b, "&quot;"); break;
        default:
            for (size_t k = 0; k < n; k++)
                buf_putc(b, s[k]);
        }
        s += n ? n : 1;
    }
}

static void counts(struct buf *b, size_t n, const size_t *count, double seconds)
{
    buf_printf(b, " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\" time=\"%.3f\"", n,
               count[ROW_FAIL] + count[ROW_MISTRUST], count[ROW_ERROR], count[ROW_SKIP], seconds);
}

static void close_suite(struct rows *r)
{
    if (!r->suite_name)
        return;
    struct buf *b = &r->suites;
    buf_puts(b, "  <testsuite name=\"");
    xml(b, r->suite_name);
    buf_putc(b, '"');
    counts(b, r->suite_n, r->suite_count, r->suite_seconds);
    buf_printf(b, ">\n%s  </testsuite>\n", buf_text(&r->suite));
    r->suite = buf_in(r->arena);
    r->suite_name = NULL;
    r->suite_n = 0;
    r->suite_seconds = 0;
    memset(r->suite_count, 0, sizeof r->suite_count);
}

void junit_row(struct rows *r, const struct row *row)
{
    struct buf *b = &r->suite;
    const char *name = row->kernel ? row->kernel : "files";
    if (r->suite_name && strcmp(r->suite_name, name) != 0)
        close_suite(r);
    r->suite_name = arena_strdup(r->arena, name);
    r->suite_n++;
    r->suite_count[row->status]++;
    r->suite_seconds += row->seconds;
    buf_puts(b, "    <testcase classname=\"");
    xml(b, name);
    buf_puts(b, "\" name=\"");
    xml(b, row->test ? row_name(r->arena, row) : "files");
    buf_putc(b, ' ');
    xml(b, row->output ? row->output : "-");
    buf_printf(b, "\" time=\"%.3f\">", row->seconds);
    if (row->status == ROW_SKIP) {
        buf_puts(b, "<skipped message=\"");
        xml(b, row->why);
        buf_puts(b, "\"/>");
    } else if (row->status != ROW_PASS) {
        const char *element = row->status == ROW_ERROR ? "error" : "failure";
        buf_printf(b, "<%s type=\"%s\" message=\"", element, row_word(row->status));
        xml(b, row_description(r->arena, row));
        buf_puts(b, "\">");
        xml(b, row_details(r, row));
        buf_printf(b, "</%s>", element);
    }
    buf_puts(b, "</testcase>\n");
}

void junit_end(struct rows *r)
{
    struct buf head = buf_in(r->arena);
    close_suite(r);
    buf_puts(&head, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"kaio-verify\"");
    counts(&head, r->n, r->count, r->seconds);
    fprintf(r->out, "%s>\n%s</testsuites>\n", buf_text(&head), buf_text(&r->suites));
}
