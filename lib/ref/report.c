#include <config.h>

#include "ref/report.h"

#include "base/num.h"
#include "data/buffer.h"

#include <math.h>

static void put_double(struct buf *out, double v)
{
    char text[32];
    buf_puts(out, num_print(v, text));
}

static void put_short(struct buf *out, double v)
{
    buf_printf(out, "%.3g", v);
}

/* " (a sample of 4096)", and in how many rows it lies. */
static void put_sample(const struct compare_result *r, struct buf *out)
{
    buf_puts(out, " (a sample of ");
    if (r->rows)
        buf_printf(out, "%llu: %llu %s", (unsigned long long)r->count, (unsigned long long)r->rows,
                   r->rows == 1 ? "row" : "rows");
    else
        buf_printf(out, "%llu", (unsigned long long)r->count);
    buf_puts(out, ")");
}

void report_line(const char *name, const struct compare_result *r, struct buf *out)
{
    buf_printf(out, "%s %s", name, dtype_name(r->type));
    shape_print(r->rank, r->shape, out);
    buf_puts(out, ": ");
    if (r->wrong)
        buf_printf(out, "%llu of ", (unsigned long long)r->wrong);
    buf_printf(out, "%llu%s", (unsigned long long)r->compared, r->wrong ? " wrong" : " compared");
    if (r->compared < r->count)
        put_sample(r, out);
    if (r->compared && r->max_abs == 0 && !r->wrong) {
        buf_puts(out, r->exact == r->compared ? ", all equal" : ", no error");
    } else if (r->compared && r->max_abs > 0) {
        buf_puts(out, ", largest error ");
        put_short(out, r->max_abs);
        if (dtype_is_float(r->type)) {
            buf_puts(out, ", ");
            put_short(out, r->max_ulp);
            buf_puts(out, " ulp");
        }
        if (isfinite(r->max_bound) && r->max_bound > 0) {
            buf_puts(out, ", ");
            put_short(out, r->max_bound);
            buf_puts(out, " of its bound");
            if (r->count > 1) {
                char at[200];
                compare_position(r, r->worst, at, sizeof at);
                buf_printf(out, " at [%s]", at);
            }
        }
    }
    if (r->unbounded)
        buf_printf(out, ", %llu where any value is allowed", (unsigned long long)r->unbounded);
    if (r->status == COMPARE_MISTRUST)
        buf_printf(out, "; %s", r->why);
}

void report_value(const struct compare_result *r, const struct compare_miss *m, struct buf *out)
{
    if (!m->is_int) {
        put_double(out, m->got);
        buf_printf(out, " (0x%0*llx)", (int)dtype_bits(r->type) / 4, (unsigned long long)m->bits);
    } else if (r->type == DT_U64) {
        buf_printf(out, "%llu", (unsigned long long)m->igot);
    } else {
        buf_printf(out, "%lld", (long long)m->igot);
    }
}

static void put_want(const struct compare_result *r, const struct compare_miss *m, struct buf *out)
{
    if (m->is_int) {
        buf_printf(out, r->type == DT_U64 ? "%llu" : "%lld", (unsigned long long)m->iwant);
        return;
    }
    put_double(out, m->want);
    if (m->lo != m->hi && !isnan(m->want)) {
        buf_puts(out, ", within ");
        put_double(out, m->lo);
        buf_puts(out, " .. ");
        put_double(out, m->hi);
    }
}

void report_misses(const struct compare_result *r, int indent, struct buf *out)
{
    for (size_t k = 0; k < r->nmiss; k++) {
        const struct compare_miss *m = &r->miss[k];
        char at[200];
        compare_position(r, m->flat, at, sizeof at);
        buf_printf(out, "%*s[%s]: got ", indent, "", at);
        report_value(r, m, out);
        buf_puts(out, ", want ");
        put_want(r, m, out);
        buf_putc(out, '\n');
    }
    if (r->wrong > r->nmiss)
        buf_printf(out, "%*sand %llu more\n", indent, "",
                   (unsigned long long)(r->wrong - r->nmiss));
}

void report_within(const struct compare_result *r, struct buf *out)
{
    for (uint32_t d = 0; d < r->rank && d < COMPARE_RANK; d++) {
        const struct compare_stretch *s = &r->stretch[d];
        buf_printf(out, "%s%llu", d ? ", " : "", (unsigned long long)s->first);
        if (s->last > s->first)
            buf_printf(out, "..%llu", (unsigned long long)s->last);
        if (s->step > 1)
            buf_printf(out, " step %llu", (unsigned long long)s->step);
    }
}

/* "all in [0..4, 3, 7..907 step 100]", unless that is everywhere. */
static void report_stretches(const struct compare_result *r, int indent, struct buf *out)
{
    bool everywhere = true;
    for (uint32_t d = 0; d < r->rank && d < COMPARE_RANK; d++)
        everywhere &= r->stretch[d].first == 0 && r->stretch[d].last + 1 == r->shape[d] &&
                      r->stretch[d].step <= 1;
    if (everywhere || r->wrong < 2)
        return;
    buf_printf(out, "%*sall in [", indent, "");
    report_within(r, out);
    buf_puts(out, "]\n");
}

/* '.': none wrong in the cell, '#': all, else the tenths. */
void report_map(const struct compare_result *r, int indent, struct buf *out)
{
    if (!r->wrong || r->count < 2)
        return;
    uint64_t cols = r->rank > 1 ? r->shape[r->rank - 1] : r->cell_cols * COMPARE_MAP_COLS;
    if (r->rank == 1 && cols > r->count)
        cols = r->count;
    uint64_t rows = cols ? (r->count + cols - 1) / cols : 0;
    buf_printf(out,
               "%*swhere (a character is %llu x %llu elements; # all wrong, 1-9 tenths, . none):\n",
               indent, "", (unsigned long long)r->cell_rows, (unsigned long long)r->cell_cols);
    for (uint32_t i = 0; i < r->map_rows; i++) {
        buf_printf(out, "%*s", indent, "");
        for (uint32_t j = 0; j < r->map_cols; j++) {
            uint64_t high = rows - i * r->cell_rows, wide = cols - j * r->cell_cols;
            high = high < r->cell_rows ? high : r->cell_rows;
            wide = wide < r->cell_cols ? wide : r->cell_cols;
            uint64_t first = i * r->cell_rows * cols + j * r->cell_cols;
            uint64_t area = high * wide;
            if (r->rank == 1 &&
                first + wide > r->count) /* the last line of a vector may be short */
                area = r->count > first ? r->count - first : 1;
            uint64_t n = r->map[i][j], tenth = n * 10 / (area ? area : 1);
            char c = !n          ? '.'
                     : n >= area ? '#'
                                 : (char)('0' + (tenth < 1   ? 1
                                                 : tenth > 9 ? 9
                                                             : tenth));
            if (r->rank == 1 && first >= r->count)
                break;
            buf_putc(out, c);
        }
        buf_putc(out, '\n');
    }
    report_stretches(r, indent, out);
}
