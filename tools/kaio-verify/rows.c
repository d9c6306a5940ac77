/* Results as text; the other formats are in formats.c. */
#include <config.h>

#include "verify.h"

#include "base/num.h"
#include "data/buffer.h"
#include "ref/report.h"

#include <math.h>

static const char *const words[] = {"PASS", "FAIL", "MISTRUST", "SKIP", "ERROR"};
static const char *const colors[] = {"\033[32m", "\033[31m", "\033[33m", "\033[36m", "\033[31m"};

const char *row_word(enum row_status status)
{
    return words[status];
}

const char *rows_first_error(const struct diags *d)
{
    for (size_t k = 0; k < d->list.n; k++)
        if (d->list.v[k].level == DIAG_ERROR)
            return d->list.v[k].text;
    return "failed";
}

struct row row_of_result(const char *output, const struct compare_result *result)
{
    static const enum row_status of[] = {
        [COMPARE_PASS] = ROW_PASS, [COMPARE_FAIL] = ROW_FAIL, [COMPARE_MISTRUST] = ROW_MISTRUST};
    return (struct row){
        .status = of[result->status], .output = output, .result = result, .why = result->why};
}

struct row row_of_errors(struct arena *a, const char *output, const struct diags *d)
{
    return (struct row){.status = ROW_ERROR,
                        .output = output,
                        .why = arena_strdup(a, rows_first_error(d)),
                        .said = d};
}

const char *row_name(struct arena *a, const struct row *row)
{
    const bool fixed = row->code && row->code == code_names[CODE_FIXED];
    return row->test ? arena_printf(a, "%s%s%s%s", row->test, fixed ? " fixed" : "",
                                    row->fill ? " " : "", row->fill ? row->fill : "")
                     : NULL;
}

void rows_begin(struct rows *r)
{
    if (r->format == FORMAT_TAP)
        fputs("TAP version 14\n", r->out);
    r->suites = buf_in(r->arena);
    r->suite = buf_in(r->arena);
}

const char *row_description(struct arena *a, const struct row *row)
{
    struct buf b = buf_in(a);
    if (row->step)
        buf_printf(&b, "%s: ", row->step);
    if (row->result)
        report_line(row->output, row->result, &b);
    else
        buf_puts(&b, row->why ? row->why : row->about ? row->about : "");
    for (size_t k = 0; k < row->nfrom; k++)
        buf_printf(&b, "%s%s", k ? ", " : "; from the kernel's own ", row->from[k]);
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
const char *row_details(const struct rows *r, const struct row *row)
{
    struct buf b = buf_in(r->arena);
    if (row->status == ROW_FAIL && row->result) {
        if (row->why)
            buf_printf(&b, "    %s\n", row->why);
        tolerance_note(r, &b);
        report_misses(row->result, 4, &b);
        report_map(row->result, 4, &b);
    }
    if (row->status == ROW_MISTRUST && row->result && row->result->is_wide && !row->repeat)
        buf_puts(&b, "    --run --steps judges what a kernel stores on its way, step by step\n");
    if (row->repeat && row->status != ROW_PASS && row->status != ROW_SKIP)
        buf_printf(&b, "    repeat: %s\n", row->repeat);
    return buf_text(&b);
}

static void text_row(const struct rows *r, const struct row *row)
{
    fprintf(r->out, "%s%-8s%s ", r->color ? colors[row->status] : "", words[row->status],
            r->color ? "\033[0m" : "");
    if (row->test)
        fprintf(r->out, "%s  ", row_name(r->arena, row));
    fprintf(r->out, "%s\n", row_description(r->arena, row));
    fputs(row_details(r, row), r->out);
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

void rows_list(struct rows *r, const struct spec *spec, const char *name, const char *values,
               double terms)
{
    struct buf b = buf_in(r->arena);
    struct json j = json_in(&b, 0);
    if (r->format == FORMAT_TEXT) {
        fprintf(r->out, "%s %s  %.3g terms\n", name, values, terms);
        return;
    }
    json_object(&j, NULL);
    json_str(&j, "kernel", spec->name);
    json_str(&j, "test", name);
    json_object(&j, "types");
    for (size_t i = 0; i < spec->types.n; i++)
        json_str(&j, spec->types.v[i].name, dtype_name(spec->types.v[i].chosen));
    json_end(&j);
    json_str(&j, "values", values + (*values == ' '));
    json_double(&j, "terms", terms);
    json_end(&j);
    fprintf(r->out, "%s\n", buf_text(&b));
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
        junit_end(r);
    }
    return r->count[ROW_FAIL] || r->count[ROW_MISTRUST] ? CLI_CHECK_FAILED : CLI_OK;
}
