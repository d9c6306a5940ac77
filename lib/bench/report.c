#include <config.h>

#include "bench/report.h"

#include <inttypes.h>
#include <time.h>

#include "base/json.h"
#include "base/num.h"
#include "bench/convolution.h"
#include "bench/product.h"

enum { DIGITS = 4, KERNEL_WIDTH = 11, FIGURE_WIDTH = 9 }; /* "1.234e-05" */

static const char *const mode_names[] = {"burst", "sustained"};
static const char *const status_names[] = {"ok", "wrong", "absent", "refused", "failed"};

/* ---- words ---- */

static const char *number(struct arena *a, double v, int digits)
{
    char text[32];
    return arena_strdup(a, num_print_digits(v, digits, text));
}

const char *report_us(struct arena *a, double seconds)
{
    return number(a, seconds * 1e6, DIGITS);
}

static const char *code_name(const struct bench_row *row)
{
    return row->bench->kernel.source.generic ? "generic" : "fixed";
}

const char *report_id(struct arena *a, const struct bench_row *row)
{
    const char *values = bench_point_text(a, row->point);
    return arena_printf(a, "%s%s%s %s %s %s", row->bench->kernel.source.kernel, *values ? " " : "",
                        values, code_name(row), row->bench->kernel.source.target->name,
                        mode_names[row->mode]);
}

/* The command that measures this row alone. */
static const char *repeat(struct arena *a, const struct bench_row *row)
{
    const char *values = bench_point_text(a, row->point);
    const char *c = row->point->case_name;
    return arena_printf(a, "%s%s%s%s%s", row->bench->command, c ? " " : "", c ? c : "",
                        *values ? " " : "", values);
}

static bool has_time(const struct measured *m)
{
    return m->status == RIVAL_OK && m->n > 0;
}

enum report_unit report_unit_of(struct arena *a, const struct spec *s, const struct bench_point *p)
{
    const struct products products = products_find(a, s, p);
    const struct attention_at at = {a, s, p, NULL};
    if (products.v.n || attention_find(&at).is_found || !convolution_find(&at).why)
        return REPORT_TFLOPS;
    return bench_operations(a, s, p, NULL) > 0 ? REPORT_GFLOPS : REPORT_NONE;
}

/* ---- columns ---- */

struct cell {
    const char *head, *text;
    size_t width;
    bool left;
};
struct cells {
    VEC(struct cell) v;
};

static void add(struct arena *a, struct cells *c, const char *head, size_t width, bool left,
                const char *text)
{
    struct cell *cell = VEC_PUSH(a, &c->v);
    *cell = (struct cell){.head = head, .text = text, .left = left};
    cell->width = strlen(head) > width ? strlen(head) : width;
}

/* One figure of a row; text NULL: the heads only are wanted, or there is none. */
static void figure(struct arena *a, struct cells *c, const char *head, bool there, double v)
{
    add(a, c, head, FIGURE_WIDTH, false, there ? number(a, v, DIGITS) : "-");
}

static void rival_cells(const struct report *r, struct arena *a, const struct bench_row *row,
                        struct cells *c)
{
    for (size_t i = 0; i < r->bench->nrival; i++) {
        const char *name = r->bench->rival[i].name;
        const struct measured *m = row ? &row->result[1 + i] : NULL;
        bool timed = m && has_time(m), both = timed && has_time(&row->result[0]);
        figure(a, c, arena_printf(a, "%s us", name), timed, timed ? m->median * 1e6 : 0);
        figure(a, c, arena_printf(a, "/ %s", name), both, both ? m->ratio : 0);
        figure(a, c, arena_printf(a, "worst / %s", name), both,
               both ? m->worst / row->result[0].worst : 0);
    }
}

/* Why the clock was lower than it could be, in a word: "power"; "-" where there is no reason. */
static const char *throttled(const struct conditions *c)
{
    return c->throttle & DEVICE_THROTTLE_THERMAL                              ? "thermal"
           : c->throttle & (DEVICE_THROTTLE_HARDWARE | DEVICE_THROTTLE_BRAKE) ? "hardware"
           : c->throttle & DEVICE_THROTTLE_POWER                              ? "power"
                                                                              : "-";
}

/* row NULL: the heads. */
static struct cells cells_of(const struct report *r, struct arena *a, const struct bench_row *row)
{
    struct cells c = {0};
    const struct measured *k = row ? &row->result[0] : NULL;
    bool timed = k && has_time(k);
    double limit = (double)r->bench->dev->info.bandwidth;
    if (r->kernels)
        add(a, &c, "kernel", KERNEL_WIDTH, true, row ? row->bench->kernel.source.kernel : "");
    for (size_t i = 0; i < r->names.n; i++) {
        const struct bench_value *v = row ? bench_find(row->point, r->names.v[i]) : NULL;
        add(a, &c, r->names.v[i], r->widths.v[i], v && v->type != DT_VOID, v ? v->text : "-");
    }
    add(a, &c, "code", 7, true, row ? code_name(row) : "");
    if (r->modes)
        add(a, &c, "mode", 9, true, row ? mode_names[row->mode] : "");
    figure(a, &c, "worst us", timed, timed ? k->worst * 1e6 : 0);
    figure(a, &c, "median us", timed, timed ? k->median * 1e6 : 0);
    figure(a, &c, "best us", timed, timed ? k->best * 1e6 : 0);
    double bytes = timed ? (double)row->bytes / k->median : 0;
    figure(a, &c, "TB/s", timed, bytes * 1e-12);
    double rate = timed ? row->operations / k->median : 0;
    if (r->unit != REPORT_NONE)
        figure(a, &c, r->unit == REPORT_TFLOPS ? "TFLOP/s" : "GFLOP/s", rate > 0,
               rate * (r->unit == REPORT_TFLOPS ? 1e-12 : 1e-9));
    if (limit > 0)
        figure(a, &c, "% of limit", timed, 100 * bytes / limit);
    rival_cells(r, a, row, &c);
    bool sensed = row && row->conditions.readings;
    figure(a, &c, "MHz", sensed, sensed ? row->conditions.sm_mhz : 0);
    figure(a, &c, "W", sensed, sensed ? row->conditions.watts : 0);
    figure(a, &c, "C", sensed, sensed ? row->conditions.celsius : 0);
    add(a, &c, "throttled", FIGURE_WIDTH, false, sensed ? throttled(&row->conditions) : "-");
    return c;
}

struct report report_begin(struct arena *a, enum report_format format, const struct bench *b,
                           const struct sweep_points *points, enum report_unit unit, bool kernels)
{
    struct report r = {
        .format = format, .bench = b, .modes = b->sustained > 0, .unit = unit, .kernels = kernels};
    for (size_t i = 0; i < points->v.n; i++)
        for (size_t k = 0; k < points->v.v[i].values.n; k++) {
            const struct bench_value *v = &points->v.v[i].values.v[k];
            size_t at = 0;
            while (at < r.names.n && strcmp(r.names.v[at], v->name) != 0)
                at++;
            if (at == r.names.n) {
                *VEC_PUSH(a, &r.names) = v->name;
                *VEC_PUSH(a, &r.widths) = 0;
            }
            size_t width = strlen(v->text);
            r.widths.v[at] = r.widths.v[at] > width ? r.widths.v[at] : width;
        }
    return r;
}

/* ---- lines ---- */

static void csv_word(struct buf *out, const char *s)
{
    if (!strpbrk(s, ",\"\n")) {
        buf_puts(out, s);
        return;
    }
    buf_putc(out, '"');
    for (; *s; s++) {
        if (*s == '"')
            buf_putc(out, '"');
        buf_putc(out, *s);
    }
    buf_putc(out, '"');
}

static void pad(struct buf *out, size_t n)
{
    while (n-- > 0)
        buf_putc(out, ' ');
}

static void md_word(struct buf *out, const char *s)
{
    for (; *s; s++) {
        if (*s == '|')
            buf_putc(out, '\\');
        buf_putc(out, *s);
    }
}

static void line(const struct report *r, const struct cells *c, bool head, struct buf *out)
{
    for (size_t i = 0; i < c->v.n; i++) {
        const struct cell *cell = &c->v.v[i];
        const char *text = head ? cell->head : cell->text;
        size_t width = strlen(text), room = cell->width > width ? cell->width - width : 0;
        if (r->format == REPORT_CSV) {
            buf_puts(out, i ? "," : "");
            csv_word(out, strcmp(text, "-") == 0 ? "" : text);
            continue;
        }
        buf_puts(out, r->format == REPORT_MD ? (i ? " " : "| ") : i ? "  " : "");
        pad(out, cell->left ? 0 : room);
        md_word(out, text);
        if (cell->left && (i + 1 < c->v.n || r->format == REPORT_MD))
            pad(out, room);
        buf_puts(out, r->format == REPORT_MD ? " |" : "");
    }
}

void report_head(const struct report *r, struct buf *out)
{
    struct cells c = cells_of(r, out->arena, NULL);
    if (r->format == REPORT_JSON)
        return;
    line(r, &c, true, out);
    buf_puts(out, r->format == REPORT_CSV ? ",status,why\n" : "\n");
    if (r->format != REPORT_MD)
        return;
    for (size_t i = 0; i < c.v.n; i++)
        buf_printf(out, "%s%s", i ? "" : "|", c.v.v[i].left ? ":--|" : "--:|");
    buf_putc(out, '\n');
}

/* The first thing that went wrong in a row, with the name of whom. */
static const char *trouble(struct arena *a, const struct bench_row *row, const char **status)
{
    for (size_t i = 0; i < row->nresult; i++) {
        const struct measured *m = &row->result[i];
        if (m->status == RIVAL_OK || (i > 0 && m->status == RIVAL_ABSENT))
            continue;
        *status = status_names[m->status];
        return i ? arena_printf(a, "%s: %s", m->rival->name, m->why) : m->why;
    }
    *status = "ok";
    return "";
}

/* ---- JSON ---- */

static void json_result(struct json *j, const struct bench_row *row, size_t i)
{
    const struct measured *m = &row->result[i], *k = &row->result[0];
    json_object(j, NULL);
    json_str(j, "name", m->rival->name);
    json_str(j, "status", status_names[m->status]);
    if (m->why)
        json_str(j, "why", m->why);
    if (m->rival->mistrust)
        json_str(j, "mistrust", m->rival->mistrust);
    if (m->rival->note)
        json_str(j, "note", m->rival->note);
    if (m->rival->choice)
        json_str(j, "choice", m->rival->choice);
    if (has_time(m)) {
        json_object(j, "seconds");
        json_double(j, "worst", m->worst);
        json_double(j, "median", m->median);
        json_double(j, "best", m->best);
        json_end(j);
        if (i && has_time(k)) {
            json_object(j, "ratio");
            json_double(j, "worst", m->worst / k->worst);
            json_double(j, "median", m->ratio);
            json_end(j);
        }
        json_array(j, "samples");
        for (unsigned s = 0; s < m->n; s++)
            json_double(j, NULL, m->sample[s]);
        json_end(j);
        json_uint(j, "executions_per_sample", m->per_round);
        json_uint(j, "executions_per_graph", m->graph ? m->per_graph : 0);
        json_uint(j, "launches", m->rival->launches);
        json_uint(j, "bytes", m->rival->bytes);
        json_uint(j, "sets", m->rival->nset);
        json_uint(j, "set_bytes", m->rival->set_bytes);
        json_uint(j, "elements_checked", m->rival->checked.compared);
        json_double(j, "largest_error_of_bound", m->rival->checked.max_bound);
    }
    json_end(j);
}

void bench_json_values(struct json *j, const struct bench_point *p)
{
    json_object(j, "values");
    for (size_t i = 0; i < p->values.n; i++) {
        const struct bench_value *v = &p->values.v[i];
        if (v->type != DT_VOID)
            json_str(j, v->name, v->text);
        else if (v->whole)
            json_int(j, v->name, v->i);
        else
            json_double(j, v->name, v->f);
    }
    json_end(j);
}

static void json_conditions(struct json *j, const struct conditions *c)
{
    json_object(j, "conditions");
    json_double(j, "warm_seconds", c->warm_seconds);
    json_bool(j, "steady", c->steady);
    if (c->missing)
        json_str(j, "no_sensors", c->missing);
    if (c->readings) {
        json_double(j, "sm_mhz", c->sm_mhz);
        json_double(j, "min_sm_mhz", c->min_sm_mhz);
        json_uint(j, "max_sm_mhz", c->max_sm_mhz);
        json_double(j, "memory_mhz", c->memory_mhz);
        json_double(j, "watts", c->watts);
        json_double(j, "limit_watts", c->limit_watts);
        json_uint(j, "celsius", c->celsius);
        json_array(j, "throttled");
        if (c->throttle & DEVICE_THROTTLE_POWER)
            json_str(j, NULL, "power");
        if (c->throttle & DEVICE_THROTTLE_THERMAL)
            json_str(j, NULL, "thermal");
        if (c->throttle & (DEVICE_THROTTLE_HARDWARE | DEVICE_THROTTLE_BRAKE))
            json_str(j, NULL, "hardware");
        json_end(j);
    }
    json_end(j);
}

static void json_environment(struct json *j, const struct bench_row *row)
{
    const struct device_info *info = &row->bench->dev->info;
    char when[32] = "";
    time_t now = time(NULL);
    struct tm tm;
    if (gmtime_r(&now, &tm))
        strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &tm);
    json_object(j, "environment");
    json_str(j, "device", info->name);
    json_uint(j, "sm", info->sm);
    json_uint(j, "multiprocessors", info->multiprocessors);
    json_uint(j, "memory_bytes", info->memory);
    json_uint(j, "l2_bytes", info->l2_bytes);
    json_uint(j, "bandwidth_limit", info->bandwidth);
    json_uint(j, "cuda", info->driver_version);
    if (row->conditions.driver[0])
        json_str(j, "driver", row->conditions.driver);
    json_str(j, "kaio", PACKAGE_VERSION);
    json_str(j, "time", when);
    json_end(j);
}

static void json_row(struct arena *a, const struct bench_row *row, struct buf *out)
{
    struct json j = json_in(out, 0);
    json_object(&j, NULL);
    json_str(&j, "id", report_id(a, row));
    json_str(&j, "status", row->error ? status_names[row->result[0].status] : "ok");
    json_str(&j, "kernel", row->bench->kernel.source.kernel);
    json_str(&j, "spec", row->bench->path);
    if (row->point->case_name)
        json_str(&j, "case", row->point->case_name);
    json_str(&j, "target", row->bench->kernel.source.target->name);
    json_str(&j, "code", code_name(row));
    if (row->bench->kernel.source.schedule)
        json_str(&j, "schedule", row->bench->kernel.source.schedule->text);
    json_str(&j, "mode", mode_names[row->mode]);
    bench_json_values(&j, row->point);
    json_uint(&j, "bytes", row->bytes);
    if (row->operations > 0)
        json_double(&j, "operations", row->operations);
    json_str(&j, "inputs", fill_names[row->fill]);
    json_uint(&j, "seed", row->bench->data.seed);
    json_array(&j, "results");
    for (size_t i = 0; i < row->nresult; i++)
        json_result(&j, row, i);
    json_end(&j);
    json_conditions(&j, &row->conditions);
    json_environment(&j, row);
    json_str(&j, "repeat", repeat(a, row));
    json_end(&j);
    buf_putc(out, '\n');
}

void report_row(const struct report *r, struct arena *a, const struct bench_row *row,
                struct buf *out)
{
    const char *status, *why = trouble(a, row, &status);
    if (r->format == REPORT_JSON) {
        json_row(a, row, out);
        return;
    }
    struct cells c = cells_of(r, a, row);
    line(r, &c, false, out);
    if (r->format == REPORT_CSV) {
        buf_printf(out, ",%s,", status);
        csv_word(out, why);
    } else if (*why) {
        buf_printf(out, "  %s: %s", status, why);
    }
    buf_putc(out, '\n');
}
