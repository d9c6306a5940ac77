/* The launch contract: what is written is read back as the same contract, and what is wrong is
 * refused. */
#include <config.h>

#include "lang/launch.h"
#include "spec/contract.h"
#include "tap.h"

static const char *errors(struct arena *a, const struct diags *d)
{
    struct buf b = buf_in(a);
    diags_format(d, "test", false, &b);
    return buf_text(&b);
}

static const char saxpy[] =
    "kaio: 1\n"
    "kernel: saxpy\n"
    "source: specs/elementwise/saxpy.yaml\n"
    "target: sm_80\n"
    "params:\n"
    "  x: in f32[n]\n"
    "  y: inout f32[n, max(m, 4)]\n"
    "  q: in i4[n, 2 * m]\n"
    "  alpha: f32 = 2.0\n"
    "  beta: f64\n"
    "  flag: bool = true\n"
    "dims: {m: 4096}\n"
    "require:\n"
    "  - n % 4 == 0\n"
    "  - 'n > 3 ? alpha > 1.0 : true'\n"
    "depth: ceil_div(n, 256) + 8\n"
    "truncation: 6 * ceil_div(n, 4)\n"
    "products: 12\n"
    "weights: 36\n"
    "temps:\n"
    "  $sums: f32[ceil_div(n, 256), 2]\n"
    "  $odd: 'f32[n > 5 ? 1 : n]'\n"
    "  $count: u32[1] = 0\n"
    "  $next: u32[n, 2] = 0 each run\n"
    "launches:\n"
    "  - entry: saxpy_vec\n"
    "    step: 3\n"
    "    when: n % 4 == 0 && n < 2147483648\n"
    "    grid: [ceil_div(n, 1024), min(m, 65535), 2]\n"
    "    block: [256]\n"
    "    cluster: [2]\n"
    "    shared: 1024 * 3\n"
    "    arrays:\n"
    "      - name: tile\n"
    "        type: f32\n"
    "        at: 0\n"
    "        extents: [min(n, 8), 16]\n"
    "      - name: rest\n"
    "        type: f16\n"
    "        at: min(n, 8) * 64\n"
    "        extents: []\n"
    "    args: [x, y, alpha, n, u64 n * 4, i32 -1, 'u32 n > 5 ? 1 : 2', f32 0.5]\n"
    "  - entry: saxpy\n"
    "    grid: ['n > 5 ? ceil_div(n, 256) : 1']\n"
    "    block: [256]\n"
    "    args: [$messages, $count, $sums]\n"
    "messages:\n"
    "  - {print: \"i is %d \\\"of\\\" %g:\\n\\t\\u00e9\\U0001f600\\x07\", types: [i64, f32], line: "
    "12}\n"
    "  - {assert: \"i < n\", message: 'it''s \"too\" many', line: 13}\n"
    "  - {print: plain}\n";

static struct contract_file *read_text(struct arena *a, const char *text, struct diags *d)
{
    return contract_read(a, source_new(a, "<contract>", text, strlen(text)), d);
}

static void test_round_trip(void)
{
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    struct contract_file *f = read_text(a, saxpy, d);
    struct buf once = buf_in(a), twice = buf_in(a);
    eq_str(errors(a, d), "", "the contract is read without complaint");
    if (!f)
        return;
    const struct contract *c = f->v.v[0];
    const struct contract_launch *l = &c->launches.v[0];
    eq_int(l->args.n, 8, "arguments");
    eq_int(l->args.v[0].type, DT_U64, "a buffer is passed as an address");
    eq_int(l->args.v[3].type, DT_U32, "a dimension is passed as u32");
    ok(!l->args.v[4].sym && l->args.v[4].type == DT_U64, "a computed argument has its own type");
    ok(c->dims.v[1]->has_value && c->dims.v[1]->value == 4096, "a dimension fixed at emission");
    ok(l->cluster[0] && !l->cluster[1] && !c->launches.v[1].cluster[0], "cluster is optional");
    ok(l->arrays.n == 2 && strcmp(l->arrays.v[0].name, "tile") == 0 &&
           l->arrays.v[0].extents.n == 2 && l->arrays.v[1].extents.n == 0 &&
           l->arrays.v[1].type == DT_F16,
       "arrays in dynamic shared memory");
    ok(c->launches.v[1].args.v[0].is_messages, "$messages is an argument");
    ok(c->temps.n == 4 && !c->temps.v[0].is_zero && c->temps.v[2].is_zero &&
           c->temps.v[0].sym->rank == 2,
       "temps");
    ok(c->temps.v[3].is_zero && c->temps.v[3].each_run && !c->temps.v[2].each_run &&
           c->temps.v[3].sym->rank == 2,
       "a temp that is cleared before every run");
    ok(c->launches.v[1].args.v[1].sym == c->temps.v[2].sym, "a temp is an argument");
    ok(l->step == 3 && c->launches.v[1].step == 0, "steps");
    eq_int(c->messages.n, 3, "messages");
    eq_str(c->messages.v[0].format, "i is %d \"of\" %g:\n\t\xc3\xa9\xf0\x9f\x98\x80\a", "a format");
    ok(c->messages.v[0].ntype == 2 && c->messages.v[0].type[0] == DT_I64 &&
           c->messages.v[0].type[1] == DT_F32 && c->messages.v[0].line == 12,
       "its types and its line");
    ok(c->messages.v[1].is_assert && !c->messages.v[0].is_assert, "print and assert differ");
    eq_str(c->messages.v[1].text, "it's \"too\" many", "an assertion's message");
    contract_write(c, &once);
    struct contract_file *g = read_text(a, buf_text(&once), d);
    eq_str(errors(a, d), "", "what is written can be read");
    if (g)
        contract_write(g->v.v[0], &twice);
    eq_str(buf_text(&twice), buf_text(&once), "writing, reading and writing gives the same text");
    ok(strstr(buf_text(&once), "u32[n, 2] = 0 each run\n") != NULL,
       "a temp that is cleared is written so");
    ok(strstr(buf_text(&once), "args: [x, y, alpha, n, u64 n * 4"),
       "arguments are written by name");
    contract_write(g->v.v[0], &twice);
    struct contract_file *both = read_text(a, buf_text(&twice), d);
    ok(both && both->v.n == 2, "two kernels are two documents");
    arena_free(a);
}

#define WHERE(names, rest)                                                      \
    "kaio: 1\nkernel: f\nparams:\n  x: in f32[n]\nwhere:\n" names "launches:\n" \
    "  - entry: f_few\n" rest

/* Names under where: stand for their expressions, in those below them too; the writer finds them
 * again. */
static void test_where(void)
{
    static const char text[] = WHERE("  fits_few: n % 4 == 0 && n <= 4096\n"
                                     "  v1: ceil_div(n, 1024) * 3\n"
                                     "  v2: clamp(v1 + 100000, 1, n)\n",
                                     "    when: fits_few\n"
                                     "    grid: [v1, v2]\n"
                                     "    block: [256]\n"
                                     "    args: [x, u64 v2 * 4]\n"
                                     "  - entry: f\n"
                                     "    when: '!fits_few'\n"
                                     "    grid: [v1]\n"
                                     "    block: [256]\n"
                                     "    args: [x]\n");
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    struct contract_file *f = read_text(a, text, d);
    struct buf out = buf_in(a);
    eq_str(errors(a, d), "", "names are read without complaint");
    if (!f)
        return;
    const struct contract_launch *l = f->v.v[0]->launches.v;
    eq_str(lang_expr_text(a, l[0].when), "n % 4 == 0 && n <= 4096", "a condition by its name");
    eq_str(lang_expr_text(a, l[0].grid[1]), "clamp(ceil_div(n, 1024) * 3 + 100000, 1, n)",
           "a name in what another stands for");
    eq_str(lang_expr_text(a, l[1].when), "!(n % 4 == 0 && n <= 4096)", "it stays one operand");
    contract_write(f->v.v[0], &out);
    eq_str(buf_text(&out), text, "the writer names what is said twice, by the same names");
    arena_free(a);
}

static void test_short_stays(void)
{
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    struct contract_file *f = read_text(
        a, WHERE("  k: n * 4\n", "    grid: [k]\n    block: [k]\n    shared: k + 1\n"), d);
    struct buf out = buf_in(a);
    if (f)
        contract_write(f->v.v[0], &out);
    ok(f && !strstr(buf_text(&out), "where"), "what is short gets no name: %s", errors(a, d));
    arena_free(a);
}

/* 2^40 nodes, if they were made. */
static void test_where_is_bounded(void)
{
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    struct buf b = buf_in(a);
    buf_puts(&b, "kaio: 1\nkernel: f\nparams:\n  x: in f32[n]\nwhere:\n  w0: n + 1\n");
    for (int i = 1; i <= 40; i++)
        buf_printf(&b, "  w%d: w%d + w%d\n", i, i - 1, i - 1);
    buf_puts(&b, "launches:\n  - entry: f\n    grid: [w40]\n    block: [1]\n");
    ok(!read_text(a, buf_text(&b), d), "names without end are refused");
    ok(strstr(errors(a, d), "too long"), "and it says why: %s", errors(a, d));
    arena_free(a);
}

/* A tree that shares its operands is numbered once, not 2^64 times. */
static void test_shared_operands(void)
{
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    struct contract_file *f =
        read_text(a, WHERE("  k: n * 4\n", "    grid: [n]\n    block: [k]\n"), d);
    struct contract_launch *l = f->v.v[0]->launches.v;
    struct buf out = buf_in(a);
    for (int i = 0; i < 64; i++)
        l->grid[0] = lx_max(a, l->grid[0], lx_ceil_div_int(a, l->grid[0], 3));
    contract_write(f->v.v[0], &out);
    ok(strstr(buf_text(&out), "  v2: max(v1, ceil_div(v1, 3))\n"), "operands are shared by name");
    arena_free(a);
}

static const char spec_text[] = "kernel: f\n"
                                "params:\n"
                                "  x: |\n"
                                "    in f16[rows, // a comment\n"
                                "           cols]\n"
                                "  y: out f32[rows]\n"
                                "  eps: float = 1e-5\n"
                                "require: [cols % 8 == 0]\n"
                                "compute: |\n"
                                "  y[r] = sum[c](x[r, c]) + eps\n";

#define MAPS(arg)                                                                      \
    "kaio: 1\nkernel: f\nparams:\n  a: in f16[m, k]\n  q: in i4[m, k]\n  alpha: f32\n" \
    "temps: {$t: 'f32[m, 4, k]'}\nlaunches:\n"                                         \
    "  - entry: f\n    grid: [m]\n    block: [128]\n    args: [" arg "]\n"

static const char maps_text[] =
    MAPS("a, {map: a, box: [64, 128]}, max(k, 8) , 'u32 k > 1 ? 2 : 3',\n"
         "  {map: $t, type: u32, at: 'max(k, 4) * 16', dims: [k, 4 * m], strides: [4 * k],\n"
         "   box: [32, min(m, 8)], steps: [1, 2], swizzle: 128, promote: 256, fill: zero},\n"
         "  {map: a, type: bf16, box: [8, 8], interleave: 16, fill: nan},\n"
         "  {map: a, dims: [k, 4, 4, 2], box: [64, 128], lower: [-1, 2 - m], upper: [-1, 0],\n"
         "   steps: [1, 2, 1, 1]}");

static void test_maps(void)
{
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    /* an argument of a plain expression has no type: it is refused, in its place */
    struct contract_file *f = read_text(a, maps_text, d);
    ok(!f && d->nerror == 1 && d->list.v[0].span.len == strlen("max(k, 8)"),
       "expressions between maps keep their commas");
    d = diags_new(a);
    char *text = arena_strndup(a, maps_text, strlen(maps_text));
    memcpy(strstr(text, "max(k, 8) "), "i32 -k * 2", strlen("i32 -k * 2"));
    f = read_text(a, text, d);
    eq_str(errors(a, d), "", "a contract with tensor maps is read without complaint");
    if (!f)
        return;
    const struct contract *c = f->v.v[0];
    const struct contract_launch *l = &c->launches.v[0];
    eq_int(l->args.n, 7, "arguments");
    const struct contract_map *m = l->args.v[1].map, *t = l->args.v[4].map, *b = l->args.v[5].map;
    const struct contract_map *w = l->args.v[6].map;
    ok(!l->args.v[0].map && m && !l->args.v[2].map && !l->args.v[3].map && t && b,
       "three are maps");
    ok(m->sym == c->params.v[0].sym && m->type == DT_F16 && m->rank == 2 && !m->stride[1] &&
           !m->step[0] && !m->at && m->swizzle == 0,
       "defaults");
    eq_str(lang_expr_text(a, m->dim[0]), "k", "the innermost dimension is the first");
    eq_str(lang_expr_text(a, m->dim[1]), "m", "and the outermost the last");
    ok(t->sym == c->temps.v[0].sym && t->type == DT_U32 && t->rank == 2 && t->at && t->stride[1] &&
           t->step[1] && t->swizzle == 128 && t->promote == 256 && !t->nan_fill,
       "everything given");
    ok(b->type == DT_BF16 && b->interleave == 16 && b->nan_fill, "another type of the same size");
    ok(w && w->im2col && !b->im2col && !w->box[2] && w->lower[1] && w->upper[1] && !w->lower[2],
       "one of pixels");
    struct buf once = buf_in(a), twice = buf_in(a);
    contract_write(c, &once);
    ok(strstr(buf_text(&once),
              "    args:\n"
              "      - a\n"
              "      - {map: a, box: [64, 128]}\n"
              "      - i32 -k * 2\n"
              "      - 'u32 k > 1 ? 2 : 3'\n"
              "      - {map: $t, type: u32, at: 'max(k, 4) * 16', dims: [k, 4 * m], strides: [4 * "
              "k], box: [32, min(m, 8)], steps: [1, 2], swizzle: 128, promote: 256}\n"
              "      - {map: a, type: bf16, box: [8, 8], interleave: 16, fill: nan}\n"
              "      - {map: a, dims: [k, 4, 4, 2], box: [64, 128], lower: ['-1', 2 - m], "
              "upper: ['-1', 0], steps: [1, 2, 1, 1]}\n"),
       "they are written a line each: %s", buf_text(&once));
    struct contract_file *g = read_text(a, buf_text(&once), d);
    eq_str(errors(a, d), "", "what is written can be read");
    if (g)
        contract_write(g->v.v[0], &twice);
    eq_str(buf_text(&twice), buf_text(&once), "writing, reading and writing gives the same text");
    arena_free(a);
}

static void test_structs(void)
{
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    struct contract_file *f = read_text(
        a, MAPS("{struct: [a, k, {struct: [alpha, i32 max(k, 4)]}, {map: a, box: [64, 2]}]}, q"),
        d);
    struct buf once = buf_in(a), twice = buf_in(a);
    eq_str(errors(a, d), "", "a struct is an argument");
    if (!f)
        return;
    const struct contract_launch *l = &f->v.v[0]->launches.v[0];
    const struct contract_struct *s = l->args.v[0].fields, *inner = s->args.v[2].fields;
    ok(l->args.n == 2 && !l->args.v[1].fields && s->args.n == 4 && s->args.v[0].sym &&
           inner->args.n == 2 && inner->args.v[1].expr && s->args.v[3].map,
       "with members of every kind");
    contract_write(f->v.v[0], &once);
    ok(strstr(buf_text(&once), "      - {struct: [a, k, {struct: [alpha, i32 max(k, 4)]}, {map: "
                               "a, box: [64, 2]}]}\n"),
       "it is written in one line: %s", buf_text(&once));
    struct contract_file *g = read_text(a, buf_text(&once), d);
    eq_str(errors(a, d), "", "what is written can be read");
    if (g)
        contract_write(g->v.v[0], &twice);
    eq_str(buf_text(&twice), buf_text(&once), "writing, reading and writing gives the same text");
    arena_free(a);
}

static void test_bad_maps(void)
{
    static const struct {
        const char *text, *error, *at;
    } bad[] = {
        {MAPS("{map: a, boks: [64, 128]}"), "did you mean 'box'?", "boks"},
        {MAPS("{box: [64, 128]}"), "an argument in braces is a tensor map", "{box"},
        {MAPS("{map: a, box: [64, 8], lower: [-1], upper: [-1]}"), "and this has 2 dimensions",
         "{map"},
        {MAPS("{map: a, dims: [8, 8, 8], box: [8, 8, 8], lower: [-1], upper: [-1]}"),
         "it is channels and pixels", "[8, 8, 8]"},
        {MAPS("{map: a, dims: [8, 8, 8], box: [8, 8], lower: [-1]}"), "has two corners", "[-1]"},
        {MAPS("{map: a, dims: [8, 8, 8], box: [8, 8], lower: [-1], upper: [-1, 0]}"),
         "'upper' has 2 numbers for the 1 dimensions of pixels", "[-1, 0]"},
        {MAPS("{map: a, dims: [8, 8, 8], box: [8, 2048], lower: [-1], upper: [-1]}"),
         "this is 1 to 1024, not 2048", "2048"},
        {MAPS("{map: a, dims: [8, 8, 8], box: [8, 8], lower: [-40000], upper: [0]}"),
         "this is -32768 to 32767", "-40000"},
        {MAPS("{map: a}"), "has no box", "{map"},
        {MAPS("{struct: []}"), "a struct has members", "{struct"},
        {MAPS("{struct: a}"), "arguments are a list", "a}"},
        {MAPS("{struct: [a], box: [1]}"), "box", "box"},
        {MAPS("{struct: [a, b]}"), "no parameter or dimension has this name", "b]"},
        {MAPS("{struct: [a, $messages]}"), "'$messages' is no member", "$messages]"},
        {MAPS("{map: b, box: [64, 128]}"), "no buffer is called 'b'", "b, box"},
        {MAPS("{map: alpha, box: [64]}"), "'alpha' is no buffer", "alpha, box"},
        {MAPS("{map: m, box: [64]}"), "'m' is no buffer", "m, box"},
        {MAPS("{map: [a], box: [64]}"), "'map' is a word", "[a]"},
        {MAPS("{map: q, box: [64, 128]}"), "write type: u8", "{map"},
        {MAPS("{map: a, type: half2, box: [64, 128]}"), "'half2' is not a type", "half2"},
        {MAPS("{map: a, type: u8, box: [64, 128]}"), "write dims as well", "u8"},
        {MAPS("{map: a, at: 1.5, box: [64, 128]}"), "an integer is needed", "1.5"},
        {MAPS("{map: a, box: [64]}"), "'box' has 1 numbers for the 2 dimensions", "[64]"},
        {MAPS("{map: a, box: [64, 128], steps: [1, 1, 1]}"), "'steps' has 3 numbers", "[1, 1, 1]"},
        {MAPS("{map: a, box: [64, 257]}"), "1 to 256, not 257", "257"},
        {MAPS("{map: a, box: [0, 2]}"), "1 to 256, not 0", "0, 2"},
        {MAPS("{map: a, box: [64, z]}"), "unknown name 'z'", "z"},
        {MAPS("{map: a, box: [64, 128], steps: [1, 9]}"), "1 to 8, not 9", "9"},
        {MAPS("{map: a, dims: [], box: []}"), "a dimension at least", "[]"},
        {MAPS("{map: a, dims: [1, 1, 1, 1, 1, 1], box: [1]}"), "up to 5 dimensions", "[1, 1"},
        {MAPS("{map: a, strides: [2, 2 * k], box: [64, 128]}"), "1 strides, not 2", "[2, 2"},
        {MAPS("{map: a, box: [64, 128], swizzle: 96}"), "'swizzle' is 0, 32, 64 or 128", "96"},
        {MAPS("{map: a, box: [64, 128], interleave: 8}"), "'interleave' is 0, 16 or 32", "8}"},
        {MAPS("{map: a, box: [64, 128], promote: l2}"), "'promote' is 0, 64, 128 or 256", "l2"},
        {MAPS("{map: a, box: [64, 128], fill: one}"), "'fill' is zero or nan", "one"},
        {MAPS("{map: a, type: u16, box: [64, 128], fill: nan}"), "filled with nan, not u16", "nan"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct arena *a = arena_new();
        struct diags *d = diags_new(a);
        bool good = read_text(a, bad[i].text, d) != NULL;
        ok(!good && d->nerror == 1, "refused: %s", bad[i].error);
        ok(strstr(errors(a, d), bad[i].error), "says so: %s", errors(a, d));
        const struct span s = d->list.n ? d->list.v[0].span : SPAN_NONE;
        ok(s.src && strncmp(s.src->text + s.off, bad[i].at, strlen(bad[i].at)) == 0,
           "where it is: %s", bad[i].at);
        arena_free(a);
    }
}

static void test_of_spec(void)
{
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    static const struct spec_define defines[] = {{"cols", 64, DT_VOID}};
    const struct source *src = source_new(a, "a \"b\"\n\xff.yaml", spec_text, strlen(spec_text));
    struct spec_file *f = spec_read(a, src, defines, 1, d);
    struct buf b = buf_in(a);
    eq_str(errors(a, d), "", "the spec is read without complaint");
    if (!f)
        return;
    contract_write(contract_of_spec(a, f->specs.v[0], "sm_90a"), &b);
    eq_str(buf_text(&b),
           "kaio: 1\nkernel: f\nsource: \"a \\\"b\\\"\\n?.yaml\"\ntarget: sm_90a\nparams:\n"
           "  x: in f16[rows, cols]\n  y: out f32[rows]\n  eps: f32 = 1e-05\ndims: {cols: "
           "64}\nrequire:\n"
           "  - cols % 8 == 0\nlaunches: []\n",
           "a spec's contract, with declarations in canonical form");
    struct contract_file *c = read_text(a, buf_text(&b), d);
    ok(c && strcmp(c->v.v[0]->source, "a \"b\"\n?.yaml") == 0,
       "a file name with odd characters is kept");
    arena_free(a);
}

/* The errors' texts, a line each. */
static const char *said(struct arena *a, const struct diags *d)
{
    struct buf b = buf_in(a);
    for (size_t i = 0; i < d->list.n; i++)
        buf_printf(&b, "%s%s", i ? "\n" : "", d->list.v[i].text);
    return buf_text(&b);
}

static const char typed_text[] = "kernel: other\n"
                                 "types: {T: [f32]}\n"
                                 "params: {y: 'out T[n]'}\n"
                                 "compute: y[i] = i\n"
                                 "---\n"
                                 "kernel: f\n"
                                 "types: {T: [f16, f32, f64], I: i32}\n"
                                 "params:\n"
                                 "  x: in T[n]\n"
                                 "  y: out T[n]\n"
                                 "  k: I = 2\n"
                                 "compute: |\n"
                                 "  y[r] = T(x[r]) * k\n"
                                 "cases:\n"
                                 "  plain: {n: 3}\n"
                                 "  wide: {n: 3, T: f64}\n"
                                 "  same: {T: half, n: 3}\n";

static const char *declared(struct arena *a, const struct spec *s)
{
    struct buf b = buf_in(a);
    contract_write(contract_of_spec(a, s, "sm_80"), &b);
    const char *at = strstr(buf_text(&b), "params:\n");
    return at ? arena_strndup(a, at, (size_t)(strstr(at, "launches") - at)) : "";
}

static void test_types(void)
{
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    struct spec_define def;
    const struct source *src = source_new(a, "t.yaml", typed_text, strlen(typed_text));
    struct spec_file *f = spec_read(a, src, NULL, 0, d);
    eq_str(said(a, d), "", "a spec with types is read without complaint");
    if (!f)
        return;
    const struct spec *s = f->specs.v[1];
    eq_str(declared(a, s), "params:\n  x: in f16[n]\n  y: out f16[n]\n  k: i32 = 2\n",
           "its contract has the first of each list");
    eq_int(spec_case_fits(s, &s->cases.v[0]), true, "a case without types fits");
    eq_int(spec_case_fits(s, &s->cases.v[1]), false, "one of another type does not");
    eq_int(spec_case_fits(s, &s->cases.v[2]), true, "one of the same type does");
    const struct spec *wide = spec_read_case(a, s, &s->cases.v[1], NULL, 0, d);
    eq_str(wide ? declared(a, wide) : said(a, d),
           "params:\n  x: in f64[n]\n  y: out f64[n]\n  k: i32 = 2\n",
           "the kernel is read again for it, whatever the file's others allow");

    ok(!spec_parse_define(a, "T=float", &def), "a define of a type");
    eq_str(spec_define_text(a, &def), "T=f32", "is written with the type's short name");
    ok(!spec_case_conflict(&s->cases.v[0], &def, 1) && spec_case_conflict(&s->cases.v[1], &def, 1),
       "it excludes the cases of another type only");
    ok(!spec_read_case(a, s, &s->cases.v[1], &def, 1, d), "which can't be read then");
    eq_str(said(a, d), "the case 'wide' says T=f64, which was defined otherwise", "and why");
    ok(spec_read(a, src, &def, 1, diags_new(a)) != NULL, "a file is read with another type");
    ok(!spec_parse_define(a, "T=3", &def), "a define of a number");
    d = diags_new(a);
    ok(!spec_read(a, src, &def, 1, d), "is not for a type");
    eq_str(said(a, d), "'T' is f32, not 3\n'T' is one of f16, f32, f64, not 3", "and says so");
    ok(!spec_parse_define(a, "n=f32", &def), "a define of a type");
    d = diags_new(a);
    ok(!spec_read(a, src, &def, 1, d), "is not for a dimension");
    eq_str(said(a, d),
           "the dimension 'n' is a number, not f32\nthe dimension 'n' is a number, not f32",
           "and says so");
    arena_free(a);
}

static void test_bad(void)
{
    static const struct {
        const char *text, *error;
    } bad[] = {
        {"", "the launch contract is empty"},
        {"kaio: 2\nkernel: f\nlaunches: []\n", "has version 2"},
        {"kaio: 99999999999999999999\nkernel: f\nlaunches: []\n",
         "has version 99999999999999999999,"},
        {"kaio: 0\nkernel: f\nlaunches: []\n", "is a number"},
        {"kaio: -1\nkernel: f\nlaunches: []\n", "is a number"},
        {"kaio: one\nkernel: f\nlaunches: []\n", "is a number"},
        {"kernel: f\nlaunches: []\n", "has no 'kaio'"},
        {"kaio: 1\nlaunches: []\n", "has no 'kernel'"},
        {"kaio: 1\nkernel: f\n", "has no 'launches'"},
        {"kaio: 1\nkernel: f\ndepth: 1.5\nlaunches: []\n", "an integer is needed"},
        {"kaio: 1\nkernel: f\ndepth: [3]\nlaunches: []\n", "depth"},
        {"kaio: 1\nkernel: f\ndepth: n\nlaunches: []\n", "'n'"},
        {"kaio: 1\nkernel: f\ntruncation: 1.5\nlaunches: []\n", "an integer is needed"},
        {"kaio: 1\nkernel: f\nproducts: [12]\nlaunches: []\n", "products"},
        {"kaio: 1\nkernel: f\nweights: n\nlaunches: []\n", "'n'"},
        {"kaio: 1\nkernel: f\nlaunch: []\n", "did you mean 'launches'?"},
        {"kaio: 1\nkernel: f\nlaunches:\n- entry: a b\n  grid: [1]\n  block: [1]\n",
         "name of a PTX entry"},
        {"kaio: 1\nkernel: f\nlaunches:\n- entry: f\n  block: [1]\n", "has no 'grid'"},
        {"kaio: 1\nkernel: f\nlaunches:\n- entry: f\n  grid: [1, 2, 3, 4]\n  block: [1]\n",
         "one to three"},
        {"kaio: 1\nkernel: f\nlaunches:\n- entry: f\n  grid: [n]\n  block: [1]\n",
         "unknown name 'n'"},
        {"kaio: 1\nkernel: f\nlaunches:\n- entry: f\n  grid: [1.5]\n  block: [1]\n",
         "an integer is needed"},
        {"kaio: 1\nkernel: f\nlaunches:\n- entry: f\n  grid: [1]\n  block: [1]\n  args: [x]\n",
         "no parameter or"},
        {"kaio: 1\nkernel: f\nparams: {a: f32}\ndims: {n: 4}\nlaunches: []\n",
         "no dimension is called 'n'"},
        {"kaio: 1\nkernel: f\nparams:\n  a: in f32[n]\ndims: {n: 0}\nlaunches: []\n",
         "a dimension is 1 to"},
        {WHERE("  n: 3\n", "    grid: [1]\n    block: [1]\n"), "'n' is a parameter or a dimension"},
        {WHERE("  if: 3\n", "    grid: [1]\n    block: [1]\n"), "which can't be a name"},
        {WHERE("  v1: v2\n  v2: n\n", "    grid: [v1]\n    block: [1]\n"), "unknown name 'v2'"},
        {WHERE("  v1: v1 + 1\n", "    grid: [v1]\n    block: [1]\n"), "unknown name 'v1'"},
        {WHERE("  v1: n +\n", "    grid: [v1]\n    block: [1]\n"), "expected"},
        {WHERE("  v1: n > 2\n", "    grid: [v1]\n    block: [1]\n"), "an integer is needed"},
        {WHERE("  - v1\n", "    grid: [1]\n    block: [1]\n"), "'where' is a map"},
        {"kaio: 1\nkernel: f\ntemps: {sums: 'f32[2]'}\nlaunches: []\n", "begins with $"},
        {"kaio: 1\nkernel: f\ntemps: {$a: f32}\nlaunches: []\n", "a temp is written as"},
        {"kaio: 1\nkernel: f\ntemps: {$a: 'u32[1] = 2'}\nlaunches: []\n", "no default"},
        {"kaio: 1\nkernel: f\ntemps: {$a: 'u32[1] each run'}\nlaunches: []\n",
         "'each run' stands behind '= 0'"},
        {"kaio: 1\nkernel: f\ntemps: {$a: 'u32[1] = 0 each'}\nlaunches: []\n", "no default"},
        {"kaio: 1\nkernel: f\ntemps: {$a: 'f32[n]'}\nlaunches: []\n", "unknown name 'n'"},
        {"kaio: 1\nkernel: f\nlaunches:\n- entry: f\n  grid: [1]\n  block: [1]\n  args: [$a]\n",
         "'temps' has no buffer"},
        {"kaio: 1\nkernel: f\nlaunches:\n- entry: f\n  step: x\n  grid: [1]\n  block: [1]\n",
         "'step' is a number"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct arena *a = arena_new();
        struct diags *d = diags_new(a);
        bool good = read_text(a, bad[i].text, d) != NULL;
        ok(!good && d->nerror > 0, "refused: %s", bad[i].error);
        ok(strstr(errors(a, d), bad[i].error), "says so: %s", errors(a, d));
        arena_free(a);
    }
}

int main(void)
{
    test_round_trip();
    test_where();
    test_short_stays();
    test_where_is_bounded();
    test_shared_operands();
    test_maps();
    test_structs();
    test_bad_maps();
    test_of_spec();
    test_types();
    test_bad();
    return tap_done();
}
