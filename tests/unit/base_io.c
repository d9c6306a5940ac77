#include <config.h>

#include "base/cache.h"
#include "base/io.h"
#include "tap.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/kaio-io-XXXXXX";

static const char *slurp(struct arena *a, const char *path)
{
    struct diags *d = diags_new(a);
    const struct source *s = io_read(a, d, path, 1000);
    return s ? s->text : NULL;
}

/* How many files the folder has. */
static int files(void)
{
    DIR *f = opendir(dir);
    int n = 0;
    for (struct dirent *e; (e = readdir(f));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(f);
    return n;
}

static bool put(struct arena *a, const char *path, const char *text)
{
    struct diags *d = diags_new(a);
    struct io_out *o = io_create(a, d, path);
    return o && fputs(text, o->file) >= 0 && io_commit(o, d);
}

static void test_read(struct arena *a)
{
    struct diags *d = diags_new(a);
    ok(put(a, "in", "0123456789"), "a file is written");
    ok(io_read(a, d, "in", 10) != NULL, "a file as long as the limit is read");
    ok(!io_read(a, d, "in", 9), "a longer one is refused");
    ok(strstr(d->list.v[0].text, "longer than 9 bytes") != NULL, "with the limit in the message");
    ok(!io_read(a, d, "nowhere", 9), "a missing file is an error");
    eq_str(d->list.v[1].text, "cannot open 'nowhere': No such file or directory",
           "said as the system says it");
    ok(!io_read(a, d, ".", 9), "a directory is an error");
    ok(io_read(a, d, "/dev/null", 0) != NULL, "nothing is a text too");
    ok(!io_read(a, d, "/dev/zero", 1 << 20), "an endless file is refused");
}

static void test_atomic(struct arena *a)
{
    struct diags *d = diags_new(a);
    struct stat st;
    int before = files();
    put(a, "out", "old");
    chmod("out", 0640);
    struct io_out *o = io_create(a, d, "out");
    fputs("new", o->file);
    fflush(o->file);
    eq_str(slurp(a, "out"), "old", "until the commit the old file stands");
    ok(io_commit(o, d), "the commit succeeds");
    eq_str(slurp(a, "out"), "new", "then the new one does");
    stat("out", &st);
    eq_int(st.st_mode & 0777, 0640, "its mode is the old one's");
    o = io_create(a, d, "out");
    fputs("worse", o->file);
    io_discard(o);
    eq_str(slurp(a, "out"), "new", "a discarded output changes nothing");
    eq_int(files(), before + 1, "no temporary file stays");
}

static void test_mode(struct arena *a)
{
    struct stat st;
    mode_t old = umask(027);
    put(a, "fresh", "x");
    umask(old);
    stat("fresh", &st);
    eq_int(st.st_mode & 0777, 0640, "a new file's mode is what umask leaves");
}

static void test_link(struct arena *a)
{
    struct stat st;
    put(a, "real", "old");
    if (symlink("real", "link") != 0)
        return;
    put(a, "link", "new");
    eq_str(slurp(a, "real"), "new", "a symbolic link is followed");
    lstat("link", &st);
    ok(S_ISLNK(st.st_mode), "and stays a link");
}

/* To what is not there yet, by way of another folder and another link; and in a circle. */
static void test_dangling(struct arena *a)
{
    struct stat st;
    struct diags *d = diags_new(a);
    if (mkdir("far", 0777) != 0 || symlink("far/second", "first") != 0 ||
        symlink("../third", "far/second") != 0 || symlink("round", "round") != 0)
        return;
    ok(put(a, "first", "made"), "a link to nothing is written to");
    eq_str(slurp(a, "third"), "made", "what it leads to is made");
    ok(lstat("first", &st) == 0 && S_ISLNK(st.st_mode) && lstat("far/second", &st) == 0 &&
           S_ISLNK(st.st_mode) && lstat("third", &st) == 0 && S_ISREG(st.st_mode),
       "and links stay links");
    ok(!io_create(a, d, "round") && lstat("round", &st) == 0 && S_ISLNK(st.st_mode),
       "a link to itself is refused");
}

static void test_refused(struct arena *a)
{
    struct diags *d = diags_new(a);
    ok(!io_create(a, d, "no/such/dir/x"), "no folder");
    ok(!io_create(a, d, "."), "a folder");
    ok(!io_create(a, d, ""), "an empty name");
    eq_int(d->nerror, 3, "each is said");
    int before = files();
    struct io_out *o = io_create(a, d, "/dev/full");
    ok(o != NULL, "a device is opened as it is");
    fputs("x", o->file);
    ok(!io_commit(o, d), "a full disk fails the commit");
    eq_str(d->list.v[3].text, "cannot write '/dev/full': No space left on device", "and is named");
    ok(access("/dev/full", F_OK) == 0, "a device is not removed");
    eq_int(files(), before, "no file stays");
}

static void test_signal(struct arena *a)
{
    struct diags *d = diags_new(a);
    int before = files();
    struct io_out *o[100];
    for (int i = 0; i < 60; i++)
        o[i] = io_create(a, d, arena_printf(a, "many%d", i));
    eq_int(files(), before + 60, "outputs in the making are files");
    io_discard(o[5]);
    io_remove_unfinished();
    eq_int(files(), before, "a signal handler can remove them all");
}

static void test_cache(struct arena *a)
{
    setenv("XDG_CACHE_HOME", dir, 1);
    const char *folder = arena_printf(a, "%s/kaio/jit", dir);
    eq_str(cache_path(a, "jit/a"), arena_printf(a, "%s/a", folder), "the cache has its folder");
    setenv("XDG_CACHE_HOME", "here", 1);
    setenv("HOME", "/home/x", 1);
    eq_str(cache_path(a, "jit/a"), "/home/x/.cache/kaio/jit/a", "a relative one is ignored");
    unsetenv("HOME");
    ok(!cache_path(a, "jit/a"), "without a home there is none");
    cache_make_folders(a, arena_printf(a, "%s/a", folder));
    for (int i = 0; i < 5; i++) { /* 3 is the oldest, then 1, 4, 2, 0 */
        static const int age[] = {1, 4, 2, 5, 3};
        const char *path = arena_printf(a, "%s/%d", folder, i);
        const struct timespec t[2] = {{1000000 - age[i], 0}, {1000000 - age[i], 0}};
        ok(put(a, path, "x") && utimensat(AT_FDCWD, path, t, 0) == 0, "file %d", i);
    }
    cache_trim(a, folder, 5);
    ok(access(arena_printf(a, "%s/3", folder), F_OK) == 0, "as many as may be stay");
    cache_trim(a, folder, 2);
    for (int i = 0; i < 5; i++)
        eq_int(access(arena_printf(a, "%s/%d", folder, i), F_OK) == 0, i == 0 || i == 2,
               "of file %d, the newest stay", i);
    cache_trim(a, "/nonexistent", 2);
}

int main(void)
{
    struct arena *a = arena_new();
    if (!mkdtemp(dir) || chdir(dir) != 0)
        return 99;
    test_read(a);
    test_atomic(a);
    test_mode(a);
    test_link(a);
    test_dangling(a);
    test_refused(a);
    test_signal(a);
    test_cache(a);
    arena_free(a);
    char *remove = NULL;
    if (asprintf(&remove, "rm -rf %s", dir) > 0 && system(remove) != 0)
        tap_note("%s stays", dir);
    free(remove);
    return tap_done();
}
