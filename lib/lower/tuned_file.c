/* The cache of schedules as a file. */
#include <config.h>

#include "lower/tuned.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cache.h"
#include "base/io.h"
#include "base/json.h"
#include "base/num.h"
#include "spec/yaml.h"

const char *tuned_path(struct arena *a, struct diags *d)
{
    const char *path = cache_path(a, "tuned.json");
    if (path)
        return path;
    diag_error(d, SPAN_NONE,
               "neither XDG_CACHE_HOME nor HOME says where the cache is; name its file");
    return NULL;
}

/* ---- reading: JSON is YAML, and the reader of that bounds what a hostile file can do ---- */

static bool wrong(struct diags *d, struct span s, const char *what)
{
    diag_warning(d, s, "%s; this is left away", what);
    return false;
}

static const struct yaml_value *member(const struct yaml_value *map, const char *key,
                                       enum yaml_kind kind)
{
    const struct yaml_value *v = yaml_get(map, key);
    return v && v->kind == kind ? v : NULL;
}

static const char *text_of(const struct yaml_value *map, const char *key)
{
    const struct yaml_value *v = member(map, key, YAML_SCALAR);
    return v ? v->text : NULL;
}

static bool read_values(struct arena *a, const struct yaml_value *map, bool types,
                        struct tuned_entry *e, struct diags *d)
{
    for (size_t i = 0; i < map->n; i++) {
        const struct yaml_value *v = map->pair[i].value;
        struct spec_define def = {map->pair[i].key->text, 0, DT_VOID};
        int64_t number = 0;
        bool good = v->kind == YAML_SCALAR &&
                    (types ? dtype_parse(v->text, v->len, &def.type)
                           : num_int(v->text, v->len, 0, UINT32_MAX, &number) == NUM_OK);
        if (!good)
            return wrong(d, v->span, types ? "this is no type" : "this is no dimension");
        def.value = (uint64_t)number;
        if (types)
            *VEC_PUSH(a, &e->types) = def;
        else
            *VEC_PUSH(a, &e->dims) = def;
    }
    return true;
}

static bool read_seconds(const struct yaml_value *map, const char *key, double *out,
                         struct diags *d)
{
    const struct yaml_value *v = member(map, key, YAML_SCALAR);
    if (!v)
        return wrong(d, map->span, arena_printf(d->arena, "this entry has no '%s'", key));
    if (num_double(v->text, v->len, out) != NUM_OK || !(*out > 0))
        return wrong(d, v->span, "this is no time");
    return true;
}

static bool read_schedule(const struct yaml_value *map, struct tuned_entry *e, struct diags *d)
{
    const struct yaml_value *v = member(map, "schedule", YAML_SCALAR);
    if (!v)
        return wrong(d, map->span, "this entry has no 'schedule'");
    if (v->style == YAML_PLAIN && strcmp(v->text, "null") == 0)
        return true;
    if (v->text[0] != '{')
        return wrong(d, v->span, "this is no schedule");
    e->schedule = v->text;
    return true;
}

static bool read_entry(struct arena *a, const struct yaml_value *v, struct tuned_entry *e,
                       struct diags *d)
{
    static const char *const keys[] = {"kernel", "hash", "device", "target", "emitter", "code"};
    if (v->kind != YAML_MAP)
        return wrong(d, v->span, "this is no entry");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!text_of(v, keys[i]))
            return wrong(d, v->span, arena_printf(a, "this entry has no '%s'", keys[i]));
    const struct yaml_value *types = member(v, "types", YAML_MAP);
    const struct yaml_value *dims = member(v, "dims", YAML_MAP);
    if (!types || !dims)
        return wrong(d, v->span, "this entry has no 'types' and 'dims'");
    *e = (struct tuned_entry){.kernel = text_of(v, "kernel"),
                              .hash = text_of(v, "hash"),
                              .device = text_of(v, "device"),
                              .target = text_of(v, "target"),
                              .emitter = text_of(v, "emitter"),
                              .generic = strcmp(text_of(v, "code"), "generic") == 0};
    const char *tried = text_of(v, "tried");
    e->tried = tried ? (unsigned)strtoul(tried, NULL, 10) : 0;
    return read_values(a, types, true, e, d) && read_values(a, dims, false, e, d) &&
           read_schedule(v, e, d) && read_seconds(v, "seconds", &e->seconds, d) &&
           read_seconds(v, "builtin_seconds", &e->builtin_seconds, d);
}

bool tuned_parse(struct arena *a, const struct source *text, struct tuned_cache *out,
                 struct diags *d)
{
    *out = (struct tuned_cache){0};
    struct diags *own = diags_new(a);
    struct yaml_stream *stream = yaml_read(a, text, own);
    for (size_t i = 0; i < own->list.n; i++)
        if (own->list.v[i].level == DIAG_ERROR)
            return wrong(d, own->list.v[i].span, own->list.v[i].text);
    const struct yaml_value *top = stream && stream->docs.n == 1 ? stream->docs.v[0] : NULL;
    const char *version = top && top->kind == YAML_MAP ? text_of(top, "kaio_tuned") : NULL;
    const struct yaml_value *entries = version ? member(top, "entries", YAML_LIST) : NULL;
    if (!entries || strcmp(version, "1") != 0)
        return wrong(d, top ? top->span : source_all(text),
                     "this is no cache of kaio-bench --tune");
    for (size_t i = 0; i < entries->n; i++) {
        struct tuned_entry e;
        if (read_entry(a, entries->item[i], &e, d))
            *VEC_PUSH(a, &out->v) = e;
    }
    return true;
}

/* *corrupt: there is a file, and it is no cache. False: it cannot be read. */
static bool read_file(struct arena *a, const char *path, struct tuned_cache *out, bool *corrupt,
                      struct diags *d)
{
    struct stat st;
    *out = (struct tuned_cache){0};
    *corrupt = false;
    if (stat(path, &st) != 0 && errno == ENOENT)
        return true;
    struct diags *own = diags_new(a);
    const struct source *text = io_read(a, own, path, YAML_MAX_BYTES);
    if (!text)
        return wrong(d, SPAN_NONE, own->list.v[0].text);
    if (text->len > 0)
        *corrupt = !tuned_parse(a, text, out, d);
    return true;
}

void tuned_read(struct arena *a, const char *path, struct tuned_cache *out, struct diags *d)
{
    bool corrupt;
    read_file(a, path, out, &corrupt, d);
}

/* ---- writing ---- */

static void write_values(struct json *j, const char *key, const struct spec_define *v, size_t n)
{
    json_object(j, key);
    for (size_t i = 0; i < n; i++)
        if (v[i].type != DT_VOID)
            json_str(j, v[i].name, dtype_name(v[i].type));
        else
            json_uint(j, v[i].name, v[i].value);
    json_end(j);
}

static void write_entry(const struct tuned_entry *e, struct buf *out)
{
    struct json j = json_in(out, 0);
    json_object(&j, NULL);
    json_str(&j, "kernel", e->kernel);
    json_str(&j, "hash", e->hash);
    json_str(&j, "device", e->device);
    json_str(&j, "target", e->target);
    json_str(&j, "emitter", e->emitter);
    write_values(&j, "types", e->types.v, e->types.n);
    write_values(&j, "dims", e->dims.v, e->dims.n);
    json_str(&j, "code", e->generic ? "generic" : "fixed");
    json_str(&j, "schedule", e->schedule);
    json_double(&j, "seconds", e->seconds);
    json_double(&j, "builtin_seconds", e->builtin_seconds);
    json_uint(&j, "tried", e->tried);
    json_end(&j);
}

static bool write_file(struct arena *a, const char *path, const struct tuned_cache *c,
                       struct diags *d)
{
    struct buf text = buf_in(a);
    buf_puts(&text, "{\"kaio_tuned\": 1, \"entries\": [\n");
    for (size_t i = 0; i < c->v.n; i++) {
        write_entry(&c->v.v[i], &text);
        buf_puts(&text, i + 1 < c->v.n ? ",\n" : "\n");
    }
    buf_puts(&text, "]}\n");
    struct io_out *out = io_create(a, d, path);
    if (!out)
        return false;
    io_write(out, buf_text(&text), text.len);
    return io_commit(out, d);
}

static int lock(struct arena *a, const char *path, struct diags *d)
{
    const char *name = arena_printf(a, "%s.lock", path);
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    int r = -1;
    if (fd >= 0)
        while ((r = flock(fd, LOCK_EX)) != 0 && errno == EINTR)
            ;
    if (r == 0)
        return fd;
    diag_error(d, SPAN_NONE, "cannot lock '%s': %s", name, strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

bool tuned_add(struct arena *a, const char *path, const struct tuned_entry *e, struct diags *d)
{
    struct tuned_cache c;
    bool corrupt = false;
    cache_make_folders(a, path);
    int fd = lock(a, path, d);
    if (fd < 0)
        return false;
    /* what is wrong with it was said when it was read first */
    bool good = read_file(a, path, &c, &corrupt, diags_new(a));
    if (corrupt)
        rename(path, arena_printf(a, "%s.corrupt", path));
    const struct tuned_entry *old = tuned_find(&c, e, e->device);
    if (!good)
        diag_error(d, SPAN_NONE, "cannot read '%s'", path);
    else if (old)
        c.v.v[old - c.v.v] = *e;
    else
        *VEC_PUSH(a, &c.v) = *e;
    good = good && write_file(a, path, &c, d);
    close(fd); /* and unlocks */
    return good;
}
