/* Results as text, TAP, JSON lines or JUnit XML. */
#include <config.h>

#include "verify.h"

#include "base/num.h"
#include "data/buffer.h"
#include "ref/report.h"

#include <math.h>

static const char *const words[] = {"PASS", "FAIL", "MISTRUST", "SKIP", "ERROR"};
static const char *const colors[] = {"\033[32m", "\033[31m", "\033[33m", "\033[36m", "\033[31m"};

void rows_begin(struct rows *r)
{
    if (r->format == FORMAT_TAP)
        fputs("TAP version 13\n", r->out);
    r->junit = buf_in(r->arena);
}

static const char *describe(struct arena *a, const struct row *row)
{
    struct buf b = buf_in(a);
    if (row->result)
        report_line(row->output, row->result, &b);
    else
        buf_puts(&b, row->why ? row->why : "");
    return buf_text(&b);
}

static void tolerance_note(const struct rows *r, struct buf *b)
{
    char t[32];
    if (!r->tolerance.given)
        return;
    buf_puts(b, "    tolerance instead of the bound:");
    if (r->tolerance.rtol > 0)
        buf_printf(b, " rtol %s", num_print(r->tolerance.rtol, t));
    if (r->tolerance.atol > 0)
        buf_printf(b, " atol %s", num_print(r->tolerance.atol, t));
    if (r->tolerance.ulp >= 0)
        buf_printf(b, " ulp %s", num_print(r->tolerance.ulp, t));
    buf_putc(b, '\n');
}

/* What stands under a row that is not a pass. */
static const char *details(const struct rows *r, const struct row *row)
{
    struct buf b = buf_in(r->arena);
    if (row->status == ROW_FAIL && row->result) {
        if (row->why)
            buf_printf(&b, "    %s\n", row->why);
        tolerance_note(r, &b);
        report_misses(row->result, 4, &b);
        report_map(row->result, 4, &b);
    }
    if (row->repeat && row->status != ROW_PASS && row->status != ROW_SKIP)
        buf_printf(&b, "    repeat: %s\n", row->repeat);
    return buf_text(&b);
}

static void text_row(const struct rows *r, const struct row *row)
{
    fprintf(r->out, "%s%-8s%s ", r->color ? colors[row->status] : "", words[row->status],
            r->color ? "\033[0m" : "");
    if (row->test)
        fprintf(r->out, "%s%s%s  ", row->test, row->fill ? " " : "", row->fill ? row->fill : "");
    fprintf(r->out, "%s\n", describe(r->arena, row));
    fputs(details(r, row), r->out);
}

static void tap_row(const struct rows *r, const struct row *row)
{
    bool good = row->status == ROW_PASS || row->status == ROW_SKIP;
    fprintf(r->out, "%sok %zu - %s %s%s%s", good ? "" : "not ", r->n, row->test ? row->test : "",
            row->fill ? row->fill : "", row->fill ? " " : "",
            row->status == ROW_SKIP ? "" : describe(r->arena, row));
    fprintf(r->out, row->status == ROW_SKIP ? "# SKIP %s\n" : "\n", row->why);
    for (const char *s = details(r, row); *s;) {
        size_t n = strcspn(s, "\n");
        fprintf(r->out, "# %.*s\n", (int)n, s);
        s += n + (s[n] == '\n');
    }
}

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
    json_double(j, "relative_l2", c->rms_want > 0 ? c->rms_error / c->rms_want : c->rms_error);
    if (c->wrong)
        json_misses(j, r, c);
}

static void json_row(const struct rows *r, const struct row *row)
{
    struct buf b = buf_in(r->arena);
    struct json j = json_in(&b, 0);
    json_object(&j, NULL);
    json_str(&j, "status", words[row->status]);
    if (row->test)
        json_str(&j, "test", row->test);
    if (row->why)
        json_str(&j, "why", row->why);
    if (row->device)
        json_str(&j, "device", row->device);
    if (row->target)
        json_str(&j, "target", row->target);
    if (row->fill)
        json_str(&j, "fill", row->fill);
    if (row->has_seed)
        json_uint(&j, "seed", row->seed);
    if (row->seconds > 0)
        json_double(&j, "seconds", row->seconds);
    if (row->result)
        json_result(&j, r, row);
    if (row->repeat)
        json_str(&j, "repeat", row->repeat);
    json_end(&j);
    fprintf(r->out, "%s\n", buf_text(&b));
}

static void xml(struct buf *b, const char *s)
{
    for (; *s; s++)
        switch (*s) {
        case '<': buf_puts(b, "&lt;"); break;
        case '>': buf_puts(b, "&gt;"); break;
        case '&': buf_puts(b, "&amp;"); break;
        case '"': buf_puts(b, "&quot;"); break;
        default: buf_putc(b, (unsigned char)*s < 32 && *s != '\n' ? ' ' : *s); break;
        }
}

static void junit_row(struct rows *r, const struct row *row)
{
    struct buf *b = &r->junit;
    buf_puts(b, "  <testcase classname=\"");
    xml(b, row->test ? row->test : "files");
    buf_puts(b, "\" name=\"");
    xml(b, row->output ? row->output : "-");
    if (row->fill)
        buf_printf(b, " %s", row->fill);
    buf_printf(b, "\" time=\"%.3f\">", row->seconds);
    if (row->status == ROW_SKIP) {
        buf_puts(b, "<skipped message=\"");
        xml(b, row->why);
        buf_puts(b, "\"/>");
    } else if (row->status != ROW_PASS) {
        buf_printf(b, "<%s message=\"", row->status == ROW_ERROR ? "error" : "failure");
        xml(b, describe(r->arena, row));
        buf_puts(b, "\">");
        xml(b, details(r, row));
        buf_printf(b, "</%s>", row->status == ROW_ERROR ? "error" : "failure");
    }
    buf_puts(b, "</testcase>\n");
}

void rows_add(struct rows *r, const struct row *row)
{
    r->n++;
    r->count[row->status]++;
    r->seconds += row->seconds;
    switch (r->format) {
    case FORMAT_TEXT: text_row(r, row); break;
    case FORMAT_TAP: tap_row(r, row); break;
    case FORMAT_JSON: json_row(r, row); break;
    case FORMAT_JUNIT: junit_row(r, row); break;
    }
    fflush(r->out); /* a row is out when it is known, whatever happens to the next */
}

int rows_end(struct rows *r)
{
    size_t failed = r->count[ROW_FAIL] + r->count[ROW_ERROR];
    if (r->format == FORMAT_TEXT && r->summary) {
        fprintf(r->out, "%zu passed, %zu failed, %zu skipped", r->count[ROW_PASS], failed,
                r->count[ROW_SKIP]);
        if (r->count[ROW_MISTRUST])
            fprintf(r->out, ", %zu not trusted", r->count[ROW_MISTRUST]);
        fputc('\n', r->out);
    } else if (r->format == FORMAT_TAP) {
        fprintf(r->out, "1..%zu\n", r->n);
    } else if (r->format == FORMAT_JUNIT) {
        fprintf(r->out,
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                "<testsuite name=\"kaio-verify\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" "
                "skipped=\"%zu\" "
                "time=\"%.3f\">\n%s</testsuite>\n",
                r->n, r->count[ROW_FAIL] + r->count[ROW_MISTRUST], r->count[ROW_ERROR],
                r->count[ROW_SKIP], r->seconds, buf_text(&r->junit));
    }
    return r->count[ROW_FAIL] || r->count[ROW_MISTRUST] ? CLI_CHECK_FAILED : CLI_OK;
}
