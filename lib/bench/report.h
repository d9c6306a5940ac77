/* Rows as text: aligned columns, CSV, Markdown, JSON lines. */
#ifndef KAIO_BENCH_REPORT_H
#define KAIO_BENCH_REPORT_H

#include "bench/bench.h"

/* Of what is counted beside bytes. */
enum report_unit { REPORT_NONE, REPORT_GFLOPS, REPORT_TFLOPS };
/* Of matrix products tera, of other floating-point operations giga, none where there are none. */
enum report_unit report_unit_of(struct arena *a, const struct spec *s, const struct bench_point *p);

enum report_format { REPORT_TABLE, REPORT_CSV, REPORT_JSON, REPORT_MD };

/* The columns, which must be known before the first row is. */
struct report {
    enum report_format format;
    const struct bench *bench;
    VEC(const char *) names; /* of the values of all points */
    VEC(size_t) widths;
    bool modes; /* burst and sustained */
    enum report_unit unit;
    bool kernels; /* there are several */
};

struct report report_begin(struct arena *a, enum report_format format, const struct bench *b,
                           const struct sweep_points *points, enum report_unit unit, bool kernels);
/* The lines before the rows; none for JSON. */
void report_head(const struct report *r, struct buf *out);
/* A row with its newline. a: for what is made meanwhile. */
void report_row(const struct report *r, struct arena *a, const struct bench_row *row,
                struct buf *out);

/* What tells a row from all others of any run: "softmax T=f16 rows=32768 cols=4096 fixed sm_90
 * burst". */
const char *report_id(struct arena *a, const struct bench_row *row);
/* The member "values" of an object: what the names of a point stand for. */
struct json;
void bench_json_values(struct json *j, const struct bench_point *p);
/* "9.2", "0.0123": a time in microseconds. */
const char *report_us(struct arena *a, double seconds);

#endif
