/* What kaio-emit prints instead of PTX, as text or as one JSON object. */
#ifndef KAIO_EMIT_PRINT_H
#define KAIO_EMIT_PRINT_H

#include "lower/lower.h"
#include "program/program.h"

void print_stats(struct arena *a, const struct ptx_module *m, const char *target, bool json,
                 struct buf *out);
/* tuning: lines on what a cache of tuned schedules had. In words everything that was found, or a
 * summary. */
void print_explain(const struct lower_report *r, const char *target, const char *tuning, bool all,
                   struct buf *out);
void print_explain_json(const struct lower_report *r, const char *target, const char *tuning,
                        struct buf *out);
/* A program's steps and temps; its kernels are in the report. */
void print_program(const struct program *p, const char *target, struct buf *out);
void print_strategies(struct arena *a, bool json, struct buf *out);

#endif
