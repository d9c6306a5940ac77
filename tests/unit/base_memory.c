/* What memory is left: by the machine, by control groups of both versions; and what an arena says
 * when there is none. */
#include <config.h>

#include "base/arena.h"
#include "base/memory.h"
#include "tap.h"

#include <sys/stat.h>
#include <unistd.h>

/* A file under a root folder, with the folders that it is in. */
static void put(const char *root, const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *p = strchr(full + 1, '/'); p; p = strchr(p + 1, '/')) {
        *p = '\0';
        mkdir(full, 0777);
        *p = '/';
    }
    FILE *f = fopen(full, "w");
    fputs(text, f);
    fclose(f);
}

static void is_left(const char *root, uint64_t bytes, const char *by, const char *what)
{
    const struct memory_left left = memory_left_in(root);
    ok(left.bytes == bytes, "%s: %" PRIu64 " bytes, %" PRIu64 " are said", what, bytes, left.bytes);
    eq_str(left.by, by, "%s: by whom", what);
}

static void of_machine(void)
{
    is_left("nowhere", UINT64_MAX, "the machine", "where nothing says anything");
    put("m", "/proc/meminfo",
        "MemTotal: 900 kB\nMemFree: 1 kB\nMemAvailable:   500 kB\nSwapTotal: 9 kB\nSwapFree: 7 "
        "kB\n");
    is_left("m", 507 * 1024, "the machine", "available with swap");
    put("m", "/proc/self/cgroup", "9:cpuset:/\n0::/\n");
    is_left("m", 507 * 1024, "the machine", "groups without limits");
    put("m", "/sys/fs/cgroup/memory.max", "max\n");
    put("m", "/sys/fs/cgroup/memory.current", "5\n");
    is_left("m", 507 * 1024, "the machine", "a group whose limit is max");
}

static void of_groups(void)
{
    put("two", "/proc/meminfo", "MemAvailable: 500 kB\n");
    put("two", "/proc/self/cgroup", "0::/a/b\n");
    put("two", "/sys/fs/cgroup/a/b/memory.max", "400000\n");
    put("two", "/sys/fs/cgroup/a/b/memory.current", "100000\n");
    put("two", "/sys/fs/cgroup/a/b/memory.stat", "anon 1\ninactive_file 50000\n");
    is_left("two", 350000, "its control group", "version 2, whose files give way");
    put("two", "/sys/fs/cgroup/a/memory.max", "200000\n");
    put("two", "/sys/fs/cgroup/a/memory.current", "150000\n");
    is_left("two", 50000, "its control group", "the group around it");
    put("two", "/sys/fs/cgroup/a/memory.current", "250000\n");
    is_left("two", 0, "its control group", "a group that has more than its limit");

    put("one", "/proc/meminfo", "MemAvailable: 500 kB\n");
    put("one", "/proc/self/cgroup", "5:cpu:/x\n4:hugetlb,memory:/x/y\n0::/\n");
    put("one", "/sys/fs/cgroup/memory/x/y/memory.limit_in_bytes", "9223372036854771712\n");
    put("one", "/sys/fs/cgroup/memory/x/y/memory.usage_in_bytes", "100000\n");
    is_left("one", 500 * 1024, "the machine", "version 1 without a limit");
    put("one", "/sys/fs/cgroup/memory/memory.limit_in_bytes", "300000\n");
    put("one", "/sys/fs/cgroup/memory/memory.usage_in_bytes", "100000\n");
    put("one", "/sys/fs/cgroup/memory/memory.stat", "total_inactive_file 1000\n");
    is_left("one", 201000, "its control group", "version 1, in a container's own root");
}

static void text(void)
{
    char t[MEMORY_TEXT];
    eq_str(memory_text(0, t), "0 bytes", "none");
    eq_str(memory_text(999, t), "999 bytes", "bytes");
    eq_str(memory_text(40000000000, t), "40 GB", "gigabytes");
    eq_str(memory_text(999999999, t), "1 GB", "not 1000 MB");
    eq_str(memory_text(UINT64_MAX, t), "18.4 EB", "the most");
}

static void of_arena(void)
{
    struct arena *volatile a = arena_new();
    volatile bool caught = false;
    if (setjmp(*arena_guard(a)))
        caught = true;
    else
        arena_purpose(a, "x"), arena_alloc(a, (size_t)1 << 46);
    ok(caught && strncmp(arena_failure(a), "x takes 70.4 TB; ", 17) == 0 &&
           strstr(arena_failure(a), " left"),
       "an arena says what for, how much, and what is left: %s", arena_failure(a));
    arena_purpose(a, NULL);
    if (!setjmp(*arena_guard(a)))
        arena_alloc(a, (size_t)1 << 46);
    ok(strncmp(arena_failure(a), "70.4 TB more are needed; ", 25) == 0, "or how much: %s",
       arena_failure(a));
    arena_free(a);
}

int main(void)
{
    char folder[] = "/tmp/kaio-memory-XXXXXX";
    if (!mkdtemp(folder) || chdir(folder) != 0)
        return 1;
    of_machine();
    of_groups();
    text();
    of_arena();
    ok(memory_left().bytes > 0, "something is left here");
    return tap_done() | (system("rm -rf \"$PWD\"") != 0);
}
