#include <config.h>

#include "bench/plot.h"

#include <math.h>

#include "base/num.h"
#include "bench/report.h"
#include "bench/work.h"

enum { WIDTH = 860, HEIGHT = 480, LEFT = 70, RIGHT = 610, TOP = 60, BOTTOM = 410, LEGEND = 630 };

/* Okabe and Ito's colours, which people tell apart whatever colours they see. */
static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#e69f00", "#56b4e9", "#000000", "#999933"};
enum { COLOURS = sizeof colours / sizeof *colours };

/* ---- gathering ---- */

static const char *varying_number(const struct sweep_points *points)
{
    const struct bench_point *first = &points->v.v[0];
    for (size_t k = 0; k < first->values.n; k++)
        for (size_t i = 1; i < points->v.n && first->values.v[k].type == DT_VOID; i++) {
            const struct bench_value *v = bench_find(&points->v.v[i], first->values.v[k].name);
            if (v && v->f != first->values.v[k].f)
                return v->name;
        }
    return NULL;
}

static const char *axis_of(const struct sweep *sweep, const struct sweep_points *points)
{
    for (size_t i = 0; i < sweep->axes.n; i++)
        if (sweep->axes.v[i].values.n > 1 && sweep->axes.v[i].values.v[0].type == DT_VOID)
            return sweep->axes.v[i].names.v[0];
    return varying_number(points);
}

/* Names that differ, but not as the axis does. */
static void find_names(struct arena *a, struct plot *p, const struct sweep *sweep,
                       const struct sweep_points *points)
{
    const struct bench_point *first = &points->v.v[0];
    for (size_t i = 0; i < sweep->axes.n; i++)
        if (sweep->axes.v[i].values.n > 1 &&
            (!p->x || strcmp(sweep->axes.v[i].names.v[0], p->x) != 0))
            *VEC_PUSH(a, &p->names) = sweep->axes.v[i].names.v[0];
    for (size_t k = 0; k < first->values.n && sweep->axes.n == 0; k++)
        for (size_t i = 1; i < points->v.n && first->values.v[k].type != DT_VOID; i++) {
            const struct bench_value *v = bench_find(&points->v.v[i], first->values.v[k].name);
            if (v && v->type != first->values.v[k].type) {
                *VEC_PUSH(a, &p->names) = v->name;
                break;
            }
        }
}

struct plot plot_begin(struct arena *a, const struct bench *b, const struct sweep *sweep,
                       const struct sweep_points *points, const struct spec *spec)
{
    const struct bench_point *first = &points->v.v[0];
    struct plot p = {.title = b->kernel.source.kernel, .unit = "TB/s"};
    p.x = axis_of(sweep, points);
    find_names(a, &p, sweep, points);
    double bytes = (double)work_footprint(spec, first);
    p.scale = 1e-12;
    p.operations = bytes > 0 && bench_operations(a, spec, first, NULL) / bytes > 20;
    if (p.operations && report_unit_of(a, spec, first) == REPORT_TFLOPS) {
        p.unit = "TFLOP/s";
    } else if (p.operations) {
        p.unit = "GFLOP/s";
        p.scale = 1e-9;
    }
    return p;
}

static struct plot_line *line_of(struct arena *a, struct plot *p, const char *name)
{
    for (size_t i = 0; i < p->lines.n; i++)
        if (strcmp(p->lines.v[i].name, name) == 0)
            return &p->lines.v[i];
    struct plot_line *line = VEC_PUSH(a, &p->lines);
    line->name = arena_strdup(a, name);
    return line;
}

void plot_add(struct arena *a, struct plot *p, const struct bench_row *row)
{
    const struct bench_value *x = p->x ? bench_find(row->point, p->x) : NULL;
    double work = (p->operations ? row->operations : (double)row->bytes) * p->scale;
    if (!p->subtitle)
        p->subtitle = arena_printf(a, "%s, %s", row->bench->dev->info.name,
                                   row->bench->kernel.source.target->name);
    for (size_t i = 0; i < row->nresult && x && x->f > 0; i++) {
        const struct measured *m = &row->result[i];
        struct buf name = buf_in(a);
        if (m->status != RIVAL_OK || m->n == 0)
            continue;
        buf_puts(&name, m->rival->name);
        for (size_t k = 0; k < p->names.n; k++) {
            const struct bench_value *v = bench_find(row->point, p->names.v[k]);
            if (v)
                buf_printf(&name, " %s=%s", v->name, v->text);
        }
        if (row->mode == BENCH_SUSTAINED)
            buf_puts(&name, " sustained");
        struct plot_line *line = line_of(a, p, buf_text(&name));
        *VEC_PUSH(a, &line->v) =
            (struct plot_point){x->f, work / m->median, work / m->worst, work / m->best};
    }
}

/* ---- drawing ---- */

struct frame {
    double x0, x1; /* logarithms */
    double y1, step;
};

static void xml(struct buf *out, const char *s)
{
    for (; *s; s++)
        switch (*s) {
        case '<': buf_puts(out, "&lt;"); break;
        case '>': buf_puts(out, "&gt;"); break;
        case '&': buf_puts(out, "&amp;"); break;
        case '"': buf_puts(out, "&quot;"); break;
        default: buf_putc(out, (unsigned char)*s < 32 ? ' ' : *s); break;
        }
}

static void text(struct buf *out, double x, double y, const char *more, const char *s)
{
    buf_printf(out, "<text x=\"%.1f\" y=\"%.1f\"%s>", x, y, more);
    xml(out, s);
    buf_puts(out, "</text>\n");
}

static double at_x(const struct frame *f, double x)
{
    return LEFT + (log(x) - f->x0) / (f->x1 - f->x0) * (RIGHT - LEFT);
}

static double at_y(const struct frame *f, double y)
{
    return BOTTOM - y / f->y1 * (BOTTOM - TOP);
}

/* 1, 2 or 5 times a power of ten, of which at most eight make v. */
static double nice_step(double v)
{
    double power = pow(10, floor(log10(v / 8))), n = v / 8 / power;
    return power * (n <= 1 ? 1 : n <= 2 ? 2 : n <= 5 ? 5 : 10);
}

static struct frame frame_of(const struct plot *p)
{
    struct frame f = {.x0 = INFINITY, .x1 = -INFINITY};
    double top = 0;
    for (size_t i = 0; i < p->lines.n; i++)
        for (size_t k = 0; k < p->lines.v[i].v.n; k++) {
            const struct plot_point *at = &p->lines.v[i].v.v[k];
            f.x0 = fmin(f.x0, log(at->x));
            f.x1 = fmax(f.x1, log(at->x));
            top = fmax(top, at->high);
        }
    if (f.x0 == f.x1) {
        f.x0 -= 0.5;
        f.x1 += 0.5;
    }
    f.step = nice_step(top > 0 ? top : 1);
    f.y1 = ceil((top > 0 ? top : 1) / f.step) * f.step;
    return f;
}

static void draw_y_axis(const struct plot *p, const struct frame *f, struct buf *out)
{
    char digits[32];
    for (double y = 0; y <= f->y1 * 1.0001; y += f->step) {
        buf_printf(out, "<path d=\"M%d %.1fH%d\" stroke=\"#dddddd\"/>\n", LEFT, at_y(f, y), RIGHT);
        text(out, LEFT - 8, at_y(f, y) + 4, " text-anchor=\"end\"", num_print_digits(y, 4, digits));
    }
    text(out, 18, (TOP + BOTTOM) / 2.0, " text-anchor=\"middle\" transform=\"rotate(-90 18 235)\"",
         p->unit);
}

/* A tick at each value that was measured, as far as there is room. */
static void draw_x_axis(const struct plot *p, const struct frame *f, struct buf *out)
{
    double last = -INFINITY, done = 0;
    char digits[32];
    for (;;) {
        double next = INFINITY;
        for (size_t i = 0; i < p->lines.n; i++)
            for (size_t k = 0; k < p->lines.v[i].v.n; k++)
                if (p->lines.v[i].v.v[k].x > done)
                    next = fmin(next, p->lines.v[i].v.v[k].x);
        if (!isfinite(next))
            break;
        done = next;
        double x = at_x(f, next);
        buf_printf(out, "<path d=\"M%.1f %dv5\" stroke=\"black\"/>\n", x, BOTTOM);
        if (x - last < 44)
            continue;
        text(out, x, BOTTOM + 20, " text-anchor=\"middle\"", num_print_digits(next, 12, digits));
        last = x;
    }
    text(out, (LEFT + RIGHT) / 2.0, BOTTOM + 44, " text-anchor=\"middle\"", p->x);
}

static void draw_line(const struct plot_line *line, const struct frame *f, size_t number,
                      struct buf *out)
{
    const char *colour = colours[number % COLOURS];
    const char *dash = number / COLOURS % 2 ? " stroke-dasharray=\"6 3\"" : "";
    buf_printf(out, "<path d=\"");
    for (size_t k = 0; k < line->v.n; k++)
        buf_printf(out, "%s%.1f %.1f", k ? "L" : "M", at_x(f, line->v.v[k].x),
                   at_y(f, line->v.v[k].y));
    buf_printf(out, "\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"%s/>\n", colour, dash);
    for (size_t k = 0; k < line->v.n; k++) {
        const struct plot_point *at = &line->v.v[k];
        buf_printf(out, "<path d=\"M%.1f %.1fV%.1f\" stroke=\"%s\"/>", at_x(f, at->x),
                   at_y(f, at->low), at_y(f, at->high), colour);
        buf_printf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", at_x(f, at->x),
                   at_y(f, at->y), colour);
    }
    double y = TOP + 10 + 20.0 * (double)number;
    buf_printf(out, "<path d=\"M%d %.1fh22\" stroke=\"%s\" stroke-width=\"2\"%s/>\n", LEGEND, y,
               colour, dash);
    text(out, LEGEND + 28, y + 4, "", line->name);
}

void plot_print(const struct plot *p, struct buf *out)
{
    struct frame f = frame_of(p);
    double height = fmax(HEIGHT, TOP + 30 + 20.0 * (double)p->lines.n), width = WIDTH;
    for (size_t i = 0; i < p->lines.n; i++) /* 7 for a letter is enough */
        width = fmax(width, LEGEND + 40 + 7 * (double)strlen(p->lines.v[i].name));
    buf_printf(out,
               "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
               "viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\" font-size=\"12\">\n"
               "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
               width, height, width, height);
    text(out, LEFT, 26, " font-size=\"16\" font-weight=\"bold\"", p->title);
    text(out, LEFT, 44, " fill=\"#555555\"", p->subtitle ? p->subtitle : "");
    if (p->lines.n) {
        draw_y_axis(p, &f, out);
        draw_x_axis(p, &f, out);
        buf_printf(out, "<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"black\"/>\n", LEFT, TOP,
                   BOTTOM, RIGHT);
        for (size_t i = 0; i < p->lines.n; i++)
            draw_line(&p->lines.v[i], &f, i, out);
    } else {
        text(out, LEFT, TOP + 30, "", "nothing was measured");
    }
    buf_puts(out, "</svg>\n");
}
