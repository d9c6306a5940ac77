#include <config.h>

#include "base/memory.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

/* The number of a file that is one number; false where there is no such file, or its text is
 * "max". */
static bool read_number(const char *path, uint64_t *v)
{
    FILE *f = fopen(path, "re");
    const bool good = f && fscanf(f, "%" SCNu64, v) == 1;
    if (f)
        fclose(f);
    return good;
}

/* The number behind a word that begins a line: "MemAvailable:    24080340 kB", "inactive_file
 *                                                                4096". */
static bool read_row(const char *path, const char *word, uint64_t *v)
{
    char line[256];
    bool good = false;
    FILE *f = fopen(path, "re");
    while (f && !good && fgets(line, sizeof line, f))
        good = strncmp(line, word, strlen(word)) == 0 &&
               sscanf(line + strlen(word), "%" SCNu64, v) == 1;
    if (f)
        fclose(f);
    return good;
}

static uint64_t of_machine(const char *root)
{
    char path[PATH_BYTES];
    uint64_t available, swap = 0;
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    if (!read_row(path, "MemAvailable:", &available))
        return UINT64_MAX;
    read_row(path, "SwapFree:", &swap);
    return (available + swap) * 1024;
}

/* The files of a version of control groups. */
struct version {
    const char *mount, *limit, *usage, *reclaimable;
};

/* What a group leaves: of its usage, pages of files give way. */
static uint64_t of_group(const char *folder, const struct version *v)
{
    char path[PATH_BYTES + 64];
    uint64_t limit, usage, files = 0;
    snprintf(path, sizeof path, "%s/%s", folder, v->limit);
    if (!read_number(path, &limit))
        return UINT64_MAX;
    snprintf(path, sizeof path, "%s/%s", folder, v->usage);
    if (!read_number(path, &usage))
        return UINT64_MAX;
    snprintf(path, sizeof path, "%s/memory.stat", folder);
    if (read_row(path, v->reclaimable, &files))
        usage -= files < usage ? files : usage;
    return limit > usage ? limit - usage : 0;
}

/* The least of a group and the groups that it is in. */
static uint64_t of_groups(const char *root, const char *name, const struct version *v)
{
    char folder[PATH_BYTES];
    uint64_t least = UINT64_MAX;
    const int n = snprintf(folder, sizeof folder, "%s%s%s", root, v->mount, name);
    const size_t end = strlen(root) + strlen(v->mount);
    if (n < 0 || (size_t)n >= sizeof folder)
        return least;
    for (;;) {
        const uint64_t left = of_group(folder, v);
        char *slash = strrchr(folder, '/');
        least = left < least ? left : least;
        if (!slash || slash < folder + end)
            return least;
        *slash = '\0';
    }
}

/* Whether a list of words with commas has "memory". */
static bool has_memory(const char *list, size_t len)
{
    static const char word[] = "memory";
    for (const char *p = list; p < list + len; p += strcspn(p, ",:") + 1)
        if (strcspn(p, ",:") == strlen(word) && memcmp(p, word, strlen(word)) == 0)
            return true;
    return false;
}

/* By the lines of /proc/self/cgroup: "4:memory:/user" of version 1, "0::/user" of version 2. */
static uint64_t of_all_groups(const char *root)
{
    static const struct version one = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                       "memory.usage_in_bytes", "total_inactive_file "},
                                two = {"/sys/fs/cgroup", "memory.max", "memory.current",
                                       "inactive_file "};
    char path[PATH_BYTES], line[PATH_BYTES];
    uint64_t least = UINT64_MAX;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        const char *list = strchr(line, ':'), *name = list ? strchr(list + 1, ':') : NULL;
        line[strcspn(line, "\n")] = '\0';
        if (!name || (name > list + 1 && !has_memory(list + 1, (size_t)(name - list - 1))))
            continue;
        const struct version *v = name == list + 1 ? &two : &one;
        const uint64_t left = of_groups(root, strcmp(name + 1, "/") == 0 ? "" : name + 1, v);
        least = left < least ? left : least;
    }
    if (f)
        fclose(f);
    return least;
}

static uint64_t of_address_space(void)
{
    struct rlimit limit;
    uint64_t pages = 0;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        !read_number("/proc/self/statm", &pages))
        return UINT64_MAX;
    const uint64_t used = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

static struct memory_left lesser(struct memory_left a, struct memory_left b)
{
    return b.bytes < a.bytes ? b : a;
}

struct memory_left memory_left_in(const char *root)
{
    return lesser((struct memory_left){of_machine(root), "the machine"},
                  (struct memory_left){of_all_groups(root), "its control group"});
}

struct memory_left memory_left(void)
{
    return lesser(memory_left_in(""),
                  (struct memory_left){of_address_space(), "the limit of address space"});
}

const char *memory_text(uint64_t bytes, char text[MEMORY_TEXT])
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
    double v = (double)bytes;
    int k = 0;
    for (; v >= 999.5; k++)
        v /= 1000;
    snprintf(text, MEMORY_TEXT, "%.3g %s", v, units[k]);
    return text;
}
