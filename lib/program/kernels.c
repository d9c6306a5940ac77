/* The kernels that a program calls: where they are, how they are read, what they are named. */
#include <config.h>

#include "program/program_int.h"

#include "base/io.h"

#include <stdlib.h>
#include <unistd.h>

/* ---- files ----------------------------------------------------------------------------------- */

static const char *in_folder(struct builder *b, const char *folder, size_t len, const char *path)
{
    return len ? arena_printf(b->a, "%.*s/%s", (int)len, folder, path) : path;
}

const char *const *program_path(struct arena *a, const char *const *first, size_t nfirst, size_t *n)
{
    VEC(const char *) list = {0};
    const char *env = getenv("KAIO_PATH");
    for (size_t i = 0; i < nfirst; i++)
        *VEC_PUSH(a, &list) = first[i];
    for (size_t len; env && *env; env += len + (env[len] == ':')) {
        len = strcspn(env, ":");
        if (len)
            *VEC_PUSH(a, &list) = arena_strndup(a, env, len);
    }
    *VEC_PUSH(a, &list) = KAIO_SPECDIR;
    *n = list.n;
    return list.v;
}

/* Where the file is: beside the program's, or in the first folder of the path that has it. */
static const char *find_path(struct builder *b, const char *path, struct span at)
{
    const char *own = b->spec->src->name, *slash = strrchr(own, '/');
    struct buf looked = buf_in(b->a);
    if (path[0] == '/')
        return path;
    const char *found = in_folder(b, own, slash ? (size_t)(slash - own) : 0, path);
    for (size_t i = 0; access(found, R_OK) != 0; i++) {
        buf_printf(&looked, "%s%s", looked.len ? ", " : "", found);
        if (i == b->opt->npath) {
            diag_error(b->d, at, "there is no file '%s'; looked for %s", path, buf_text(&looked));
            return NULL;
        }
        found = in_folder(b, b->opt->path[i], strlen(b->opt->path[i]), path);
    }
    return found;
}

static const struct source *read_source(struct builder *b, const char *path, struct span at)
{
    const char *found = find_path(b, path, at);
    if (!found)
        return NULL;
    for (size_t i = 0; i < b->sources.n; i++)
        if (strcmp(b->sources.v[i]->name, found) == 0)
            return b->sources.v[i];
    const struct source *src = io_read(b->a, b->d, found, IO_TEXT_LIMIT);
    if (src)
        *VEC_PUSH(b->a, &b->sources) = src;
    return src;
}

/* ---- uses ------------------------------------------------------------------------------------ */

static const struct spec_use *find_decl(const struct builder *b, const char *name)
{
    for (size_t i = 0; i < b->spec->program->uses.n; i++)
        if (strcmp(b->spec->program->uses.v[i].name, name) == 0)
            return &b->spec->program->uses.v[i];
    return NULL;
}

static bool is_kernel_here(const struct builder *b, const char *name)
{
    for (size_t i = 0; i < b->file->specs.n; i++)
        if (!b->file->specs.v[i]->program && strcmp(b->file->specs.v[i]->name, name) == 0)
            return true;
    return false;
}

static bool unknown_use(struct builder *b, const char *name, struct span at)
{
    VEC(const char *) names = {0};
    for (size_t i = 0; i < b->spec->program->uses.n; i++)
        *VEC_PUSH(b->a, &names) = b->spec->program->uses.v[i].name;
    for (size_t i = 0; i < b->file->specs.n; i++)
        if (!b->file->specs.v[i]->program)
            *VEC_PUSH(b->a, &names) = b->file->specs.v[i]->name;
    *VEC_PUSH(b->a, &names) = NULL;
    const char *near = diag_nearest(name, strlen(name), names.v);
    return near ? diag_error(b->d, at, "no kernel is called '%s'; did you mean '%s'?", name, near)
                : diag_error(b->d, at,
                             "no kernel is called '%s'; write 'use: {%s: file.yaml}', or define it "
                             "in a document beside the program",
                             name, name);
}

bool find_use(struct builder *b, const char *name, struct span at, struct use *out)
{
    const struct spec_use *decl = find_decl(b, name);
    *out = (struct use){.decl = decl, .src = b->spec->src, .kernel = name, .name = name};
    if (!decl)
        return is_kernel_here(b, name) || unknown_use(b, name, at);
    out->kernel = decl->kernel;
    if (decl->path)
        return (out->src = read_source(b, decl->path, decl->path_span)) != NULL;
    return decl->kernel
               ? is_kernel_here(b, decl->kernel) || unknown_use(b, decl->kernel, decl->span)
               : diag_error(b->d, decl->span,
                            "'%s' names no kernel; write '{spec: file.yaml}' or "
                            "'{kernel: NAME}'",
                            name);
}

/* ---- reading --------------------------------------------------------------------------------- */

static const char *key_of(struct builder *b, const struct use *use, const define_list *defines)
{
    struct buf key = buf_in(b->a);
    buf_printf(&key, "%s %s %s", use->kernel ? use->kernel : "", use->name,
               use->decl && use->decl->schedule ? use->decl->schedule : "");
    for (size_t i = 0; i < defines->n; i++)
        buf_printf(&key, " %s", spec_define_text(b->a, &defines->v[i]));
    return buf_text(&key);
}

static bool set_schedule(struct builder *b, const struct use *use, struct spec *s)
{
    const char *text = use->decl ? use->decl->schedule : NULL;
    struct diags *own = diags_new(b->a);
    if (!text ||
        spec_set_schedule(b->a, s, source_new(b->a, "<schedule>", text, strlen(text)), own))
        return true;
    return diag_error(b->d, use->decl->schedule_span, "the schedule of '%s' can't be: %s",
                      use->name, own->list.n ? own->list.v[0].text : "it is no map");
}

struct spec *read_kernel(struct builder *b, const struct use *use, const define_list *defines,
                         struct span at)
{
    const char *key = key_of(b, use, defines);
    for (size_t i = 0; i < b->readings.n; i++)
        if (b->readings.v[i]->src == use->src && strcmp(b->readings.v[i]->key, key) == 0)
            return b->readings.v[i]->spec;
    struct spec *s = spec_read_one(b->a, use->src, use->kernel, defines->v, defines->n, b->d);
    if (!s) {
        diag_note(b->d, at, "'%s' is called here", use->name);
        return NULL;
    }
    if (s->program) {
        diag_error(b->d, at, "'%s' is a program, and a program calls kernels", s->name);
        return NULL;
    }
    if (!set_schedule(b, use, s))
        return NULL;
    struct reading *r = ARENA_NEW(b->a, struct reading);
    *r = (struct reading){.src = use->src, .key = key, .spec = s};
    *VEC_PUSH(b->a, &b->readings) = r;
    return s;
}

/* ---- the program's own ----------------------------------------------------------------------- */

static struct program_kernel *add(struct builder *b, struct spec *spec, const char *use,
                                  struct span at)
{
    struct program_kernel *k = VEC_PUSH(b->a, &b->out->kernels);
    *k = (struct program_kernel){spec, at, use};
    return k;
}

struct spec *make_kernel(struct builder *b, const struct use *use, struct spec *spec,
                         struct span at)
{
    for (size_t i = 0; i < b->out->kernels.n; i++)
        if (b->out->kernels.v[i].spec == spec)
            return spec;
    spec->name = take_name(b, arena_printf(b->a, "%s_%s", b->spec->name, use->name));
    return add(b, spec, use->name, at)->spec;
}

void add_kernel(struct builder *b, struct spec *spec, struct span at)
{
    add(b, spec, NULL, at);
}
