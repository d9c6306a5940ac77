#include <config.h>

#include "bench/baseline.h"

#include "base/num.h"
#include "spec/yaml.h"

/* JSON is YAML, and the reader of that bounds what a hostile file can do. */

static const char *text_of(const struct yaml_value *map, const char *key)
{
    const struct yaml_value *v = map && map->kind == YAML_MAP ? yaml_get(map, key) : NULL;
    return v && v->kind == YAML_SCALAR ? v->text : NULL;
}

static bool seconds_of(const struct yaml_value *row, double *out)
{
    const struct yaml_value *results = yaml_get(row, "results");
    const struct yaml_value *first =
        results && results->kind == YAML_LIST && results->n ? results->item[0] : NULL;
    const struct yaml_value *seconds = first && first->kind == YAML_MAP ? yaml_get(first, "seconds")
                                                                        : NULL;
    const char *median = text_of(seconds, "median");
    return median && num_double(median, strlen(median), out) == NUM_OK && *out > 0;
}

/* A row without a time is none, which is no error. */
static bool read_row(struct arena *a, struct baseline *b, const struct source *line,
                     struct diags *d)
{
    struct yaml_stream *stream = yaml_read(a, line, d);
    if (!stream)
        return false;
    const struct yaml_value *row = stream->docs.n == 1 ? stream->docs.v[0] : NULL;
    const char *id = row ? text_of(row, "id") : NULL, *kernel = row ? text_of(row, "kernel") : NULL;
    const char *status = row ? text_of(row, "status") : NULL;
    double median;
    if (!id || !kernel || !status)
        return diag_error(d, source_all(line), "this is no row of kaio-bench --format=json");
    if (!seconds_of(row, &median))
        return strcmp(status, "ok") != 0 ||
               diag_error(d, source_all(line), "this row is ok and has no time");
    struct baseline_row *to = baseline_find(b, id);
    const char *device = text_of(yaml_get(row, "environment"), "device");
    if (!to)
        to = VEC_PUSH(a, &b->v);
    *to = (struct baseline_row){
        .id = id, .kernel = kernel, .device = device ? device : "", .median = median};
    return true;
}

bool baseline_read(struct arena *a, const struct source *text, struct baseline *out,
                   struct diags *d)
{
    size_t number = 0;
    *out = (struct baseline){0};
    for (const char *p = text->text, *end = p + text->len; p < end;) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        size_t len = (size_t)((stop ? stop : end) - p);
        const char *name = arena_printf(a, "%s, line %zu", text->name, ++number);
        if (len > 0 && !read_row(a, out, source_new(a, name, p, len), d))
            return false;
        p += len + (stop != NULL);
    }
    return out->v.n > 0 || diag_error(d, SPAN_NONE, "'%s' has no row with a time", text->name);
}

struct baseline_row *baseline_find(struct baseline *b, const char *id)
{
    for (size_t i = 0; i < b->v.n; i++)
        if (strcmp(b->v.v[i].id, id) == 0)
            return &b->v.v[i];
    return NULL;
}
