/* What --lines answers: a line for each line. */
#include <config.h>

#include "job.h"

#include "base/json.h"

/* No answer has more than a line, nor bytes that are no text. */
static void add_plain(struct buf *out, const char *s)
{
    enum { MOST = 1000 };
    for (size_t n = 0; s[n]; n++) {
        const unsigned char c = (unsigned char)s[n];
        if (n == MOST) {
            buf_puts(out, " ...");
            return;
        }
        if (c < 0x20 || c > 0x7e)
            buf_printf(out, "\\x%02x", c);
        else
            buf_putc(out, (char)c);
    }
}

static const char *first_error(const struct diags *d)
{
    for (size_t i = 0; i < d->list.n; i++)
        if (d->list.v[i].level == DIAG_ERROR)
            return d->list.v[i].text;
    return "the run failed";
}

static bool is_shown(const struct run_param *p)
{
    return run_is_output(p) && !p->destination && !p->unsourced;
}

static void answer_text(const struct request *q, const struct answer *what, struct buf *out)
{
    if (what->skipped) {
        buf_puts(out, "skipped");
    } else if (what->status != CLI_OK) {
        buf_printf(out, "error %d: ", what->status);
        add_plain(out, first_error(q->d));
    } else {
        buf_puts(out, "ok");
        for (size_t i = 0; i < q->run->nparam; i++) {
            const struct run_param *p = &q->run->param[i];
            if (!is_shown(p))
                continue;
            buf_printf(out, "\t%s  ", p->sym->name);
            buffer_print_summary(&p->result, out);
        }
    }
    buf_putc(out, '\n');
}

static void output_json(struct json *j, const struct run_param *p)
{
    enum { FIRST = 6 };
    const struct buffer *b = &p->result;
    const struct buffer_summary s = buffer_summarise(b);
    const enum dtype_class class = dtype_class(b->type);
    json_object(j, p->sym->name);
    json_str(j, "type", dtype_name(b->type));
    json_array(j, "shape");
    for (uint32_t k = 0; k < b->rank; k++)
        json_uint(j, NULL, b->dim[k]);
    json_end(j);
    json_array(j, "first");
    for (uint64_t i = 0; i < b->count && i < FIRST; i++)
        if (dtype_is_float(b->type))
            json_double(j, NULL, dtype_get(b->type, b->data, i));
        else if (class == DTC_I)
            json_int(j, NULL, dtype_get_int(b->type, b->data, i));
        else
            json_uint(j, NULL, (uint64_t)dtype_get_int(b->type, b->data, i));
    json_end(j);
    if (dtype_is_float(b->type)) {
        json_double(j, "min", s.min);
        json_double(j, "max", s.max);
        json_double(j, "mean", s.mean);
        json_uint(j, "nan", s.nan);
        json_uint(j, "inf", s.inf);
    } else if (b->count) {
        if (class == DTC_I) {
            json_int(j, "min", s.imin);
            json_int(j, "max", s.imax);
        } else {
            json_uint(j, "min", (uint64_t)s.imin);
            json_uint(j, "max", (uint64_t)s.imax);
        }
        json_double(j, "mean", s.mean);
    }
    json_end(j);
}

static void answer_json(struct request *q, const struct answer *what, struct buf *out)
{
    struct json j = json_in(out, 0);
    json_object(&j, NULL);
    json_uint(&j, "line", what->line);
    json_int(&j, "status", what->status);
    if (what->skipped)
        json_bool(&j, "skipped", true);
    else if (what->status != CLI_OK)
        json_str(&j, "message", first_error(q->d));
    if (!what->skipped && what->status == CLI_OK) {
        json_object(&j, "outputs");
        for (size_t i = 0; i < q->run->nparam; i++)
            if (is_shown(&q->run->param[i]))
                output_json(&j, &q->run->param[i]);
        json_end(&j);
    }
    if (q->said.len)
        json_str(&j, "printed", buf_text(&q->said));
    json_end(&j);
    buf_putc(out, '\n');
}

void answer_print(const struct job *j, struct request *q, const struct answer *what,
                  struct buf *out)
{
    if (j->json)
        answer_json(q, what, out);
    else
        answer_text(q, what, out);
}
