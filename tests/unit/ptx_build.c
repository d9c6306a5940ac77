/* Building modules, the table's look-ups, targets. */
#include <config.h>

#include "ptx/table.h"

#include "ptx_equal.h"

#include <sys/wait.h>
#include <unistd.h>

static struct arena *arena;

/* y[i] = 2 * x[i] over a loop, with one of nearly everything that the builder offers. */
static struct ptx_module *build(const char *target)
{
    struct ptx_module *m = ptx_module_new(arena, ptx_target_find(target, strlen(target)));
    m->header = "kaio: 1\nentry: twice\n";
    ptx_file(m, 1, "a \"quoted\" name.yaml");
    struct ptx_func *f = ptx_entry_new(m, "twice");
    struct ptx_var *x = ptx_param_new(m, f, "x", PTX_U64), *n = ptx_param_new(m, f, "n", PTX_U32);
    struct ptx_builder b = ptx_builder_new(m, f);
    struct ptx_var *s = ptx_array_new(&b, PTX_SHARED, "tile", PTX_B8, 16, 256);
    int32_t px = ptx_reg_new(&b, PTX_U64), v = ptx_reg_new(&b, PTX_F32),
            w = ptx_reg_new(&b, PTX_F32);
    int32_t i = ptx_reg_new(&b, PTX_U32), count = ptx_reg_new(&b, PTX_S32),
            p = ptx_reg_new(&b, PTX_PRED);
    int32_t h = ptx_reg_new(&b, PTX_F16), q = ptx_reg_new(&b, PTX_PRED),
            a = ptx_reg_new(&b, PTX_B64);
    uint32_t loop = ptx_label_new(&b, "loop"), done = ptx_label_new(&b, "done");
    ptx_comment(&b, "load\nthe arguments");
    ptx_loc(&b, 1, 7, 3);
    PTX(&b, "ld.param.u64", ptx_r(px), ptx_mem_var(x, 0));
    PTX(&b, "ld.param.u32", ptx_r(count), ptx_mem_var(n, 0));
    PTX(&b, "mov.u32", ptx_r(i), ptx_special(PTX_SR_TID_X));
    PTX(&b, "mov.u64", ptx_r(a), ptx_sym(s));
    ptx_label_here(&b, loop);
    PTX(&b, "setp.ge.u32", ptx_pair(p, q), ptx_r(i), ptx_r(count));
    PTX_IF(&b, p, "bra", ptx_label(done));
    struct ptx_operand pair = ptx_vec(&b, 2, (struct ptx_operand[]){ptx_r(v), ptx_r(w)});
    PTX(&b, "ld.global.v2.f32", pair, ptx_mem(px, -8));
    PTX(&b, "fma.rn.f32", ptx_r(v), ptx_r(v), ptx_immf32(2), ptx_r(w));
    PTX(&b, "cvt.rn.f16.f32", ptx_r(h), ptx_r(v));
    PTX(&b, "st.global.v2.f32", ptx_mem(px, 0), pair);
    PTX(&b, "st.shared.b16", ptx_mem(a, 2), ptx_r(h));
    PTX(&b, "and.pred", ptx_r(p), ptx_not(q), ptx_r(p));
    PTX(&b, "add.u32", ptx_r(i), ptx_r(i), ptx_imm(-1));
    PTX_UNLESS(&b, q, "bra.uni", ptx_label(loop));
    ptx_label_here(&b, done);
    PTX(&b, "atom.global.add.u32", ptx_sink(), ptx_mem(px, 0), ptx_imm(1));
    PTX0(&b, "ret");
    ptx_finish(&b);
    ptx_settle_version(m);
    return m;
}

static const char want[] = "//@ kaio: 1\n"
                           "//@ entry: twice\n"
                           ".version 6.3\n"
                           ".target sm_75\n"
                           ".address_size 64\n"
                           "\n"
                           ".file\t1 \"a \\\"quoted\\\" name.yaml\"\n"
                           "\n"
                           ".visible .entry twice(\n"
                           "\t.param .u64 x,\n"
                           "\t.param .u32 n\n"
                           ")\n"
                           "{\n"
                           "\t.reg .pred %p<2>;\n"
                           "\t.reg .b16 %h<1>;\n"
                           "\t.reg .b32 %r<2>;\n"
                           "\t.reg .b64 %rd<2>;\n"
                           "\t.reg .f32 %f<2>;\n"
                           "\t.shared .align 16 .b8 tile[256];\n"
                           "\n"
                           "\t// load\n"
                           "\t// the arguments\n"
                           "\t.loc 1 7 3\n"
                           "\tld.param.u64            %rd0, [x];\n"
                           "\tld.param.u32            %r1, [n];\n"
                           "\tmov.u32                 %r0, %tid.x;\n"
                           "\tmov.u64                 %rd1, tile;\n"
                           "$loop_0:\n"
                           "\tsetp.ge.u32             %p0|%p1, %r0, %r1;\n"
                           "\t@%p0 bra                $done_1;\n"
                           "\tld.global.v2.f32        {%f0, %f1}, [%rd0+-8];\n"
                           "\tfma.rn.f32              %f0, %f0, 0f40000000, %f1;\n"
                           "\tcvt.rn.f16.f32          %h0, %f0;\n"
                           "\tst.global.v2.f32        [%rd0], {%f0, %f1};\n"
                           "\tst.shared.b16           [%rd1+2], %h0;\n"
                           "\tand.pred                %p0, !%p1, %p0;\n"
                           "\tadd.u32                 %r0, %r0, -1;\n"
                           "\t@!%p1 bra.uni           $loop_0;\n"
                           "$done_1:\n"
                           "\tatom.global.add.u32     _, [%rd0], 1;\n"
                           "\tret;\n"
                           "}\n";

static void check_build(void)
{
    struct ptx_module *m = build("sm_75");
    const char *text = print(arena, m);
    eq_str(text, want, "what is built prints");
    ok(valid(arena, m), "and is valid");
    struct diags *d = diags_new(arena);
    struct ptx_module *again = ptx_parse(arena, source_new(arena, "built", text, strlen(text)), d);
    ok(again && same_module(m, again), "and is read as the same module");
}

/* ---- versions -------------------------------------------------------------------------------- */

static unsigned settled(const char *target, const char *mnemonic, size_t n,
                        const struct ptx_operand *o)
{
    struct ptx_module *m = ptx_module_new(arena, ptx_target_find(target, strlen(target)));
    struct ptx_builder b = ptx_builder_new(m, ptx_entry_new(m, "k"));
    ptx_emit(&b, -1, false, mnemonic, n, o);
    PTX0(&b, "ret");
    ptx_settle_version(m);
    return m->version;
}

static void check_versions(void)
{
    eq_int(settled("sm_70", "ret", 0, NULL), 60, "sm_70 needs PTX 6.0");
    eq_int(settled("sm_90a", "ret", 0, NULL), 80, "sm_90a needs PTX 8.0");
    struct ptx_operand o[] = {ptx_r(0), ptx_r(0), ptx_r(0)};
    eq_int(settled("sm_80", "cvt.rn.bf16x2.f32", 3, o), 70,
           "a row's own minimum, no more than the target's");
    eq_int(settled("sm_80", "cvt.rn.satfinite.bf16x2.f32", 3, o), 81, "a word's minimum");
    struct ptx_operand special[] = {ptx_r(0), ptx_special(PTX_SR_CLUSTER_CTARANK)};
    eq_int(settled("sm_70", "mov.u32", 2, special), 78, "a special register's minimum");
}

/* ---- misuse ---------------------------------------------------------------------------------- */

static void typo(struct ptx_builder *b)
{
    PTX(b, "add.u23", ptx_r(0), ptx_r(0), ptx_r(0));
}

static void count(struct ptx_builder *b)
{
    PTX(b, "add.u32", ptx_r(0), ptx_r(0));
}

static void unplaced(struct ptx_builder *b)
{
    PTX(b, "bra", ptx_label(ptx_label_new(b, "nowhere")));
    ptx_finish(b);
}

static void placed_twice(struct ptx_builder *b)
{
    uint32_t l = ptx_label_new(b, "twice");
    ptx_label_here(b, l);
    ptx_label_here(b, l);
}

/* Runs it in a child; what it says on stderr behind the place in the sources, when it ends by
 * abort(). */
static const char *aborts(void (*misuse)(struct ptx_builder *))
{
    static char said[256];
    int fd[2], status;
    memset(said, 0, sizeof said);
    if (pipe(fd) != 0)
        return "no pipe";
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct ptx_module *m = ptx_module_new(arena, ptx_target_find("80", 2));
        struct ptx_builder b = ptx_builder_new(m, ptx_entry_new(m, "k"));
        ptx_reg_new(&b, PTX_U32);
        dup2(fd[1], 2);
        misuse(&b);
        _exit(0);
    }
    close(fd[1]);
    if (read(fd[0], said, sizeof said - 1) < 0)
        said[0] = 0;
    close(fd[0]);
    waitpid(child, &status, 0);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
        return "no abort";
    const char *head = "kaio: internal error: lib/ptx/build.c:";
    const char *text = strncmp(said, head, strlen(head)) == 0 ? strchr(said + strlen(head), ' ')
                                                              : NULL;
    return text ? text + 1 : said;
}

static void check_misuse(void)
{
    eq_str(aborts(typo), "no such instruction: add.u23\n", "a typo in a mnemonic");
    eq_str(aborts(count), "wrong number of operands: add.u32\n", "an operand forgotten");
    eq_str(aborts(unplaced), "label never placed: $nowhere_0\n", "a label forgotten");
    eq_str(aborts(placed_twice), "label placed twice: $twice_0\n", "a label placed twice");
}

/* ---- what is shared, and what is named ------------------------------------------------------- */

static void check_words(void)
{
    struct ptx_module *m = ptx_module_new(arena, ptx_target_find("80", 2));
    struct ptx_words words = {{0}, {0}};
    struct ptx_inst x = {.op = PTX_OP_ADD_INT}, y = {.op = PTX_OP_SUB_INT}, z = x;
    words.type[0] = words.mod[PTX_MC_TYPE] = PTX_U32;
    ptx_set_words(m, &x, &words);
    ptx_set_words(m, &y, &words);
    words.type[0] = words.mod[PTX_MC_TYPE] = PTX_S32;
    ptx_set_words(m, &z, &words);
    ok(x.mod == y.mod && ptx_same_words(&x, &y), "the same words are there once");
    ok(x.type[0] == PTX_U32 && z.type[0] == PTX_S32 && !ptx_same_words(&x, &z),
       "... and stay when there are others");
}

static void check_names(void)
{
    enum { COUNT = 10002 };
    struct ptx_module *m = ptx_module_new(arena, ptx_target_find("80", 2));
    struct ptx_func *f = ptx_entry_new(m, "k");
    struct ptx_builder b = ptx_builder_new(m, f);
    unsigned wrong = 0;
    for (unsigned i = 0; i < COUNT; i++) {
        ptx_reg_new(&b, PTX_F16);
        ptx_reg_new(&b, PTX_B16);
    }
    ptx_finish(&b);
    for (unsigned i = 0; i < 2 * COUNT; i++) {
        const unsigned n = i % COUNT;
        wrong +=
            strcmp(f->regs.v[i].name, arena_printf(arena, i < COUNT ? "%%rs%u" : "%%h%u", n)) != 0;
    }
    eq_int(wrong, 0, "registers of a family are numbered from 0");
}

/* ---- the table ------------------------------------------------------------------------------- */

static void check_table(void)
{
    unsigned wrong = 0;
    for (unsigned m = 1; m < PTX_MOD_COUNT; m++) {
        const char *text = ptx_mod_text((enum ptx_mod)m);
        wrong += ptx_mod_find(text, strlen(text), ptx_mod_class((enum ptx_mod)m)) != m;
        if (ptx_mod_class((enum ptx_mod)m) == PTX_MC_TYPE && ptx_type_bits((enum ptx_mod)m) == 0) {
            tap_note(".%s has no size", text);
            wrong++;
        }
    }
    for (unsigned r = 0; r < PTX_SR_COUNT; r++) {
        const char *text = ptx_sreg_text((enum ptx_sreg)r);
        wrong += ptx_sreg_find(text, strlen(text)) != r;
    }
    eq_int(wrong, 0,
           "every word and special register is found by its text, and every type has a size");
    eq_int(ptx_sreg_find("%tid", 4), PTX_SR_COUNT, "half a name is not found");
    eq_str(ptx_op_name(PTX_OP_SHFL), "shfl", "a row's name");
    eq_int(ptx_op_min_ptx(PTX_OP_TANH_F32), 70, "a row's minimum version");
    eq_int(ptx_op_min_sm(PTX_OP_SETMAXNREG), 90, "a row's minimum target");
    ok(ptx_space(PTX_SHARED_CTA) == PTX_SHARED && ptx_space(PTX_LOCAL) == PTX_LOCAL,
       "a space without its part");
}

static void check_targets(void)
{
    size_t n;
    const struct ptx_target *t = ptx_targets(&n);
    unsigned wrong = 0;
    for (size_t i = 0; i < n; i++) {
        wrong += ptx_target_find(t[i].name, strlen(t[i].name)) != &t[i];
        wrong += ptx_target_find(t[i].name + 3, strlen(t[i].name + 3)) != &t[i];
        wrong += t[i].shared_optin > t[i].shared_per_sm;
    }
    eq_int(wrong, 0, "%zu targets are found with and without sm_", n);
    ok(t[0].sm == 70, "the first is sm_70");
    static const char *const none[] = {"",       "sm_",     "sm_81", "9",
                                       "sm_90b", "sm_90aa", "SM_90", "sm_60"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        ok(!ptx_target_find(none[i], strlen(none[i])), "no target '%s'", none[i]);
    const struct ptx_target *h100 = ptx_target_find("sm_90a", 6);
    ok(h100 && h100->shared_optin == 227 * 1024 && h100->suffix == 'a',
       "sm_90a has 227 KB for a block");
}

int main(void)
{
    arena = arena_new();
    check_build();
    check_versions();
    check_misuse();
    check_words();
    check_names();
    check_table();
    check_targets();
    arena_free(arena);
    return tap_done();
}
