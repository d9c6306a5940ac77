/* A comparison as text: for kaio-verify and for kaio_messages(). */
#ifndef KAIO_REF_REPORT_H
#define KAIO_REF_REPORT_H

#include "ref/compare.h"

/* "y f32[4, 1000]: 4000 compared, largest error 0.5 ulp, 0.42 of its bound", without a newline. */
void report_line(const char *name, const struct compare_result *r, struct buf *out);
/* Tell of a failure: the first mismatches, and the picture of where they are. Lines are indented by
 * `indent` spaces. */
void report_misses(const struct compare_result *r, int indent, struct buf *out);
void report_map(const struct compare_result *r, int indent, struct buf *out);
/* When any is wrong: where, by dimension: "0..4, 3, 7..907 step 100". */
void report_within(const struct compare_result *r, struct buf *out);
/* One value: a float with its bits as "1.5 (0x3fc00000)", an integer as decimal. */
void report_value(const struct compare_result *r, const struct compare_miss *m, struct buf *out);

#endif
