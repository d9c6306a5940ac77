#include <config.h>

#include "base/cache.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

const char *cache_path(struct arena *a, const char *file)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && *cache == '/')
        return arena_printf(a, "%s/kaio/%s", cache, file);
    if (home && *home)
        return arena_printf(a, "%s/.cache/kaio/%s", home, file);
    return NULL;
}

void cache_make_folders(struct arena *a, const char *path)
{
    char *p = arena_strdup(a, path);
    for (char *slash = *p ? strchr(p + 1, '/') : NULL; slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(p, 0777);
        *slash = '/';
    }
}

struct file {
    const char *path;
    struct timespec written;
};

static int by_time(const void *a, const void *b)
{
    const struct timespec *x = &((const struct file *)a)->written,
                          *y = &((const struct file *)b)->written;
    if (x->tv_sec != y->tv_sec)
        return (x->tv_sec > y->tv_sec) - (x->tv_sec < y->tv_sec);
    return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

void cache_trim(struct arena *a, const char *folder, size_t most)
{
    VEC(struct file) v = {0};
    DIR *dir = opendir(folder);
    struct stat st;
    if (!dir)
        return;
    for (struct dirent *e; (e = readdir(dir));) {
        const char *path = arena_printf(a, "%s/%s", folder, e->d_name);
        if (lstat(path, &st) == 0 && S_ISREG(st.st_mode))
            *VEC_PUSH(a, &v) = (struct file){path, st.st_mtim};
    }
    closedir(dir);
    if (v.n <= most)
        return;
    qsort(v.v, v.n, sizeof *v.v, by_time);
    for (size_t i = 0; i < v.n - most; i++)
        unlink(v.v[i].path);
}
