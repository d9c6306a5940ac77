/* Reading and printing: every file of tests/ptx/good and tests/ptx/nvcc, and small texts for what a
 * file can't show. */
#include <config.h>

#include "ptx/ptx.h"

#include "ptx_equal.h"
#include "ptxas.h"

#include <dirent.h>

static struct arena *arena;

static struct source read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    struct buf b = buf_in(arena);
    char block[4096];
    size_t n;
    while (f && (n = fread(block, 1, sizeof block, f)) > 0)
        buf_add(&b, block, n);
    if (f)
        fclose(f);
    return (struct source){.name = path, .text = buf_text(&b), .len = b.len};
}

static struct ptx_module *parse(const char *name, const char *text, size_t len)
{
    struct diags *d = diags_new(arena);
    struct ptx_module *m = ptx_parse(arena, source_new(arena, name, text, len), d);
    struct buf out = buf_in(arena);
    diags_format(d, "ptx", false, &out);
    if (!m)
        tap_note("%s", buf_text(&out));
    return m;
}

/* ---- files ----------------------------------------------------------------------------------- */

static void check_file(const char *name, const char *path)
{
    struct source src = read_file(path);
    struct ptx_module *m = parse(name, src.text, src.len);
    if (!ok(m != NULL, "%s is read", name))
        return;
    ok(valid(arena, m), "%s is valid", name);
    const char *once = print(arena, m);
    struct ptx_module *again = parse("printed", once, strlen(once));
    if (!ok(again != NULL, "%s is read again when printed", name))
        return;
    ok(same_module(m, again), "%s is the same module again", name);
    eq_str(print(arena, again), once, "%s prints the same again", name);
    if (!ptxas_path()) {
        tap_skip(name, "no ptxas here to judge the printed text");
        return;
    }
    char line[512], said[512] = "";
    FILE *f = ptxas_run(once, strlen(once), m->sm, m->sm_suffix);
    while (f && fgets(line, sizeof line, f))
        if (strstr(line, "error") || strstr(line, "fatal"))
            snprintf(said, sizeof said, "%s", line);
    int status = f ? pclose(f) : -1;
    if (!ok(status == 0, "%s printed by us assembles with ptxas", name))
        tap_note("%s", said);
}

static int is_ptx(const struct dirent *e)
{
    size_t n = strlen(e->d_name);
    return n > 4 && strcmp(e->d_name + n - 4, ".ptx") == 0;
}

static void check_folder(const char *folder)
{
    const char *src = getenv("KAIO_SRCDIR");
    char path[4096], file[8192];
    struct dirent **list;
    snprintf(path, sizeof path, "%s/tests/ptx/%s", src ? src : ".", folder);
    int n = scandir(path, &list, is_ptx, alphasort);
    ok(n > 0, "tests/ptx/%s has files", folder);
    for (int i = 0; i < n; i++) {
        snprintf(file, sizeof file, "%s/%s", path, list[i]->d_name);
        check_file(list[i]->d_name, file);
        free(list[i]);
    }
    if (n > 0)
        free(list);
}

/* A module cut off after any byte is an error or a module, never a crash, and reports lie inside
 * the text. */
static void check_truncation(const char *path)
{
    const char *src = getenv("KAIO_SRCDIR");
    char file[4096];
    snprintf(file, sizeof file, "%s/tests/ptx/%s", src ? src : ".", path);
    struct source whole = read_file(file);
    unsigned outside = 0, silent = 0, modules = 0;
    for (size_t n = 0; n < whole.len; n++) {
        struct arena *a = arena_new();
        struct diags *d = diags_new(a);
        const struct source *s = source_new(a, "cut", whole.text, n);
        struct ptx_module *m = ptx_parse(a, s, d);
        if (m)
            ptx_validate(m, d);
        modules += m != NULL;
        silent += !m && d->nerror == 0;
        for (size_t i = 0; i < d->list.n; i++)
            outside += d->list.v[i].span.src && d->list.v[i].span.off + d->list.v[i].span.len > n;
        arena_free(a);
    }
    ok(whole.len > 100, "%s is there", path);
    eq_int(outside, 0, "%s cut off anywhere: every report points into the text", path);
    eq_int(silent, 0, "%s cut off anywhere: no failure without an error", path);
    ok(modules < whole.len / 2, "%s cut off within a function is refused", path);
}

/* ---- details --------------------------------------------------------------------------------- */

#define HEAD         ".version 8.0\n.target sm_90\n.address_size 64\n"
#define KERNEL(body) HEAD ".entry k()\n{\n" body "ret;\n}\n"

static void check_header(void)
{
    static const char text[] = "//@ kaio: 1\n//@\n//@   indented: yes\r\n//@no space\n" HEAD
                               "//@ not one\n.entry k() { ret; }\n";
    struct ptx_module *m = parse("header", text, strlen(text));
    if (!ok(m != NULL, "a module with a header is read"))
        return;
    eq_str(m->header, "kaio: 1\n\n  indented: yes\nno space\n",
           "the header is the lines behind //@");
    ok(strncmp(print(arena, m),
               "//@ kaio: 1\n//@\n//@   indented: yes\n//@ no space\n.version 8.0\n", 60) == 0,
       "the header is printed first");
    static const char later[] = "\n//@ too late\n" HEAD;
    m = parse("later", later, strlen(later));
    eq_str(m ? m->header : NULL, "", "a //@ line that is not the first is no header");
    ok(m && m->items.n == 1 && m->items.v[0].kind == PTX_I_COMMENT, "but a comment");
}

static const struct ptx_item *nth(const struct ptx_func *f, enum ptx_item_kind kind, size_t n)
{
    for (size_t i = 0; i < f->items.n; i++)
        if (f->items.v[i].kind == kind && n-- == 0)
            return &f->items.v[i];
    return NULL;
}

static void check_spans(void)
{
    static const char text[] =
        KERNEL("\t.reg .b32 %r<3>;\n\n  add.u32 %r1,\n %r1, %r2; // behind\n");
    const struct source *s = source_new(arena, "spans", text, strlen(text));
    struct ptx_module *m = ptx_parse(arena, s, diags_new(arena));
    const struct ptx_item *it = m ? nth(ptx_find_entry(m, "k"), PTX_I_INST, 0) : NULL;
    if (!ok(it != NULL, "an instruction over two lines is read"))
        return;
    struct line_col at = span_line_col(it->span);
    eq_int(at.line, 8, "its span begins in its line");
    eq_int(at.col, 3, "and column");
    eq_int(it->span.len, strlen("add.u32 %r1,\n %r1, %r2"), "and covers it");
}

static void check_scopes(void)
{
    static const char text[] = KERNEL(".reg .b32 %r<4>; .reg .pred p;\n"
                                      "{ .reg .b64 %r<2>; mov.u64 %r1, 1; }\n"
                                      "L: @p bra L;\n"
                                      "{ @p bra L; L: @p bra L; }\n"
                                      "mov.u32 %r1, 1;\n");
    struct ptx_module *m = parse("scopes", text, strlen(text));
    if (!ok(m != NULL, "blocks may hide names"))
        return;
    const struct ptx_func *f = ptx_find_entry(m, "k");
    eq_int(f->regs.v[nth(f, PTX_I_INST, 0)->inst.operand[0].reg].type, PTX_B64,
           "the inner register in the block");
    eq_int(f->regs.v[nth(f, PTX_I_INST, 4)->inst.operand[0].reg].type, PTX_B32,
           "the outer one behind it");
    eq_int(nth(f, PTX_I_INST, 1)->inst.operand[0].label, 0, "the outer label outside");
    eq_int(nth(f, PTX_I_INST, 2)->inst.operand[0].label, 1,
           "the inner label within, though it comes later");
}

static void check_values(void)
{
    static const struct {
        const char *text;
        enum ptx_operand_kind kind;
        uint64_t bits;
    } cases[] = {
        {"mov.u32 %r1, 0x10;", PTX_O_IMM, 16},
        {"mov.u32 %r1, 4096U;", PTX_O_IMM, 4096},
        {"mov.u32 %r1, 017;", PTX_O_IMM, 15},
        {"mov.u32 %r1, 0b101;", PTX_O_IMM, 5},
        {"mov.u32 %r1, -3;", PTX_O_IMM, (uint64_t)-3},
        {"mov.u32 %r1, (7 - 2) * 3 % 4;", PTX_O_IMM, 3},
        {"mov.u32 %r1, -7 / 2;", PTX_O_IMM, (uint64_t)-3},
        {"mov.u32 %r1, 0xFFFFFFFFFFFFFFFFU / 2;", PTX_O_IMM, INT64_MAX},
        {"mov.u32 %r1, 1 << 4 | 1;", PTX_O_IMM, 17},
        {"mov.u32 %r1, -8 >> 1;", PTX_O_IMM, (uint64_t)-4},
        {"mov.u32 %r1, 3 > 2 ? 5 : 6;", PTX_O_IMM, 5},
        {"mov.u32 %r1, (.u64)-1 > 0;", PTX_O_IMM, 1},
        {"mov.u32 %r1, !0 + ~0;", PTX_O_IMM, 0},
        {"mov.u32 %r1, WARP_SZ;", PTX_O_IMM, 32},
        {"mov.b32 %r1, 0f3f800000;", PTX_O_F32, 0x3f800000},
        {"add.f32 %f1, %f1, 0.1;", PTX_O_F32, 0x3dcccccd},
        {"add.f32 %f1, %f1, -1e10;", PTX_O_F32, 0xd01502f9},
        {"add.f64 %fd1, %fd1, 0.1;", PTX_O_F64, 0x3fb999999999999a},
        {"add.f64 %fd1, %fd1, 0dBFF0000000000000;", PTX_O_F64, 0xbff0000000000000},
        {"add.f32 %f1, %f1, 0d3FB999999999999A;", PTX_O_F32, 0x3dcccccd},
        {"add.f64 %fd1, %fd1, 0f3F800000;", PTX_O_F64, 0x3ff0000000000000},
        {"mov.u32 %r1, %laneid;", PTX_O_SREG, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *text = arena_printf(
            arena, KERNEL(".reg .b32 %%r<2>; .reg .f32 %%f<2>; .reg .f64 %%fd<2>;\n%s\n"),
            cases[i].text);
        struct ptx_module *m = parse("value", text, strlen(text));
        const struct ptx_item *it = m ? nth(ptx_find_entry(m, "k"), PTX_I_INST, 0) : NULL;
        const struct ptx_operand *o = it ? &it->inst.operand[it->inst.noperand - 1] : NULL;
        ok(o && o->kind == cases[i].kind && o->bits == cases[i].bits, "%s is 0x%" PRIx64,
           cases[i].text, o ? o->bits : 0);
    }
}

/* The order of a mnemonic's words: ptxas does not mind, and neither do we; printed is the manual's
 * order. */
static void check_order(void)
{
    static const char text[] = KERNEL(
        ".reg .b32 %r<4>; .reg .b64 %rd<2>;\natom.global.gpu.acq_rel.add.u32 %r1, [%rd1], 1;\n");
    struct ptx_module *m = parse("order", text, strlen(text));
    ok(m && strstr(print(arena, m), "atom.acq_rel.gpu.global.add.u32 %r1, [%rd1], 1;"),
       "words in another order are read");
}

static void check_vars(void)
{
    static const char text[] = HEAD
        ".shared .align 16 .b8 a[48];\n.global .v4 .f32 q[3];\n.const .u64 p;\n.extern .shared "
        ".f32 dyn[];\n.global .s16 grid[2][5];\n";
    static const struct {
        uint64_t bytes;
        uint32_t align;
    } want[] = {{48, 16}, {48, 16}, {8, 8}, {0, 4}, {20, 2}};
    struct ptx_module *m = parse("vars", text, strlen(text));
    for (size_t i = 0; m && i < m->items.n; i++) {
        const struct ptx_var *v = m->items.v[i].var;
        eq_int(ptx_var_bytes(v), want[i].bytes, "bytes of '%s'", v->name);
        eq_int(ptx_var_align(v), want[i].align, "alignment of '%s'", v->name);
    }
    eq_int(m ? m->items.n : 0, 5, "five variables");
}

/* Twice the text takes about twice the time: 100,000 instructions are read in well under a second,
 * not in minutes. */
static void check_large(void)
{
    struct buf text = buf_in(arena);
    buf_puts(&text, HEAD ".entry k()\n{\n.reg .b32 %r<100000>;\n");
    for (int i = 0; i < 100000; i++)
        buf_printf(&text, "L%d: add.u32 %%r%d, %%r%d, 1; @p%d bra L%d;\n", i, i, 99999 - i, i % 8,
                   99999 - i);
    const char *decl = ".reg .pred p<8>;\n";
    struct buf whole = buf_in(arena);
    size_t body = (size_t)(strstr(buf_text(&text), "{\n") + 2 - buf_text(&text));
    buf_add(&whole, buf_text(&text), body);
    buf_puts(&whole, decl);
    buf_puts(&whole, buf_text(&text) + body);
    buf_puts(&whole, "ret;\n}\n");
    struct ptx_module *m = parse("large", buf_text(&whole), whole.len);
    ok(m && valid(arena, m), "200,000 instructions and 100,000 labels are read and valid");
    const char *once = m ? print(arena, m) : "";
    struct ptx_module *again = parse("large again", once, strlen(once));
    ok(again && same_module(m, again), "and the same when printed");
}

int main(void)
{
    arena = arena_new();
    check_folder("good");
    check_folder("nvcc");
    check_truncation("good/syntax.ptx");
    check_truncation("nvcc/calls_90.ptx");
    check_header();
    check_spans();
    check_scopes();
    check_values();
    check_order();
    check_vars();
    check_large();
    ptxas_clean();
    arena_free(arena);
    return tap_done();
}
