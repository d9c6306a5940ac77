/* Whole texts: equations with their order, ranges and types; bodies and functions; printing them
 * again. */
#include <config.h>

#include "spec/spec.h"
#include "tap.h"

struct kernel {
    struct arena *a;
    struct diags *d;
    struct spec *spec;
};

static struct kernel read_kernel(const char *text)
{
    struct kernel k = {.a = arena_new()};
    k.d = diags_new(k.a);
    struct spec_file *f =
        spec_read(k.a, source_new(k.a, "k.yaml", text, strlen(text)), NULL, 0, k.d);
    struct buf b = buf_in(k.a);
    diags_format(k.d, "test", false, &b);
    ok(f != NULL, "is read: %s", buf_text(&b));
    if (!f)
        exit(tap_done());
    k.spec = f->specs.v[0];
    return k;
}

static const struct lang_equation *find(const struct lang_equations *e, const char *name,
                                        size_t *at)
{
    for (size_t i = 0; i < e->n; i++)
        if (strcmp(e->v[i]->sym->name, name) == 0) {
            if (at)
                *at = i;
            return e->v[i];
        }
    return NULL;
}

static const char *extent(struct kernel *k, const struct lang_symbol *index)
{
    return lang_expr_text(k->a, index->dims[0]);
}

static void test_order(void)
{
    struct kernel k = read_kernel("kernel: attention\n"
                                  "params:\n"
                                  "  q: in f16[heads, len, d]\n"
                                  "  kk: in f16[heads, size, d]\n"
                                  "  v: in f16[heads, size, d]\n"
                                  "  o: out f16[heads, len, d]\n"
                                  "  best: out i32[heads]\n"
                                  "compute: |\n"
                                  "  # written backwards: the order of the equations is free\n"
                                  "  o[h, i, c] = sum[j](p[h, i, j] * v[h, j, c]) / z[h, i]\n"
                                  "  best[h] = argmax[i](z[h, i])\n"
                                  "  z[h, i] = sum[j](p[h, i, j])\n"
                                  "  p[h, i, j] = exp(s[h, i, j] -\n"
                                  "     top[h, i]);  top[h, i] = max[j](s[h, i, j])\n"
                                  "  s[h, i, j] = sum[c](q[h, i, c]\n"
                                  "     * kk[h, j, c])\n"
                                  "     / 8 // scaled\n");
    const struct lang_equations *e = &k.spec->compute;
    size_t s, top, p, z, o, best;
    eq_int(e->n, 6, "equations");
    const struct lang_equation *scores = find(e, "s", &s);
    find(e, "top", &top), find(e, "p", &p), find(e, "z", &z), find(e, "o", &o),
        find(e, "best", &best);
    ok(s < top && top < p && p < z && z < o && z < best, "each equation comes after what it reads");
    eq_str(extent(&k, scores->index[0]), "heads", "an index's range is its subscript's extent");
    eq_str(extent(&k, scores->index[2]), "size", "... wherever it is read");
    eq_str(lang_expr_text(k.a, e->v[p]->sym->dims[2]), "size",
           "an intermediate has the extents of its indices");
    eq_str(dtype_name(scores->sym->type), "f32", "a sum of products of f16 is f32");
    ok(scores->sym->def == scores, "a tensor knows its equation");
    eq_str(dtype_name(e->v[o]->rhs->type), "f16", "the right side has the output's type");
    ok(e->v[o]->rhs->kind == E_CAST && e->v[o]->rhs->is_implicit,
       "... by an implicit cast: storing rounds");
    eq_str(dtype_name(e->v[best]->rhs->args[0]->type), "i64",
           "argmax is i64, and may be stored to i32");
    ok(k.spec->reference.v == k.spec->compute.v && !k.spec->has_reference,
       "the equations are their own reference");
    arena_free(k.a);
}

static void test_recurrences(void)
{
    struct kernel k =
        read_kernel("kernel: mandelbrot\n"
                    "params:\n"
                    "  cx: in f64[n]\n"
                    "  cy: in f64[n]\n"
                    "  y: inout i32[n]\n"
                    "grid: n\n"
                    "block: 1\n"
                    "body: |\n"
                    "  y[blockIdx.x] += i32(cx[blockIdx.x] + cy[blockIdx.x]);\n"
                    "reference: |\n"
                    "  y[i] = y[i] + i32(sum[t](zr[i, t]) + sum[t](c2[t]))\n"
                    "  c2[t < 50] = t == 0 ? 0 : c2[t - 1] + 1\n"
                    "  zi[i, t < 50] = t == 0 ? 0 : 2 * zr[i, t - 1] * zi[i, t - 1] + cy[i]\n"
                    "  zr[i, t < 50] = t == 0 ? 0 : zr[i, t-1] * zr[i, t-1] - sq[i, t] + cx[i]\n"
                    "  sq[i, t < 50] = t == 0 ? 0 : zi[i, t-1] * zi[i, t-1]\n");
    const struct lang_equations *e = &k.spec->reference;
    size_t zr, zi, sq, c2, y;
    const struct lang_equation *r = find(e, "zr", &zr), *i = find(e, "zi", &zi),
                               *s = find(e, "sq", &sq);
    const struct lang_equation *c = find(e, "c2", &c2), *out = find(e, "y", &y);
    ok(r->is_recurrence && i->is_recurrence && s->is_recurrence && c->is_recurrence,
       "recurrences are marked");
    ok(!out->is_recurrence, "inout on the right is the value before, no recurrence");
    ok(r->component == i->component && i->component == s->component,
       "those that need each other share a component");
    ok(c->component != r->component && out->component != r->component, "... and the others do not");
    ok(sq < zr, "within a step what is read comes first");
    ok(zr + 2 >= zi && zi + 2 >= zr && y == 4,
       "a component's equations stand together, before what reads them");
    eq_str(dtype_name(r->sym->type), "f64",
           "the type of a recurrence is found from what goes into it");
    eq_str(dtype_name(s->sym->type), "f64", "... also by way of another tensor");
    eq_str(dtype_name(c->sym->type), "i32", "... and integers stay integers");
    eq_str(extent(&k, s->index[0]), "n",
           "a range that follows from another of the component's tensors");
    arena_free(k.a);
}

static void test_ragged(void)
{
    struct kernel k = read_kernel("kernel: spmv\n"
                                  "params:\n"
                                  "  start: in i32[rows + 1]\n"
                                  "  col: in i32[nnz]\n"
                                  "  val: in f32[nnz]\n"
                                  "  x: in f32[cols]\n"
                                  "  total: out f32[]\n"
                                  "  y: out f32[rows]\n"
                                  "compute: |\n"
                                  "  y[r] = sum[k in start[r]..start[r + 1]](val[k] * x[col[k]])\n"
                                  "  total = sum[r](y[r])\n");
    const struct lang_equations *e = &k.spec->compute;
    size_t y, total;
    const struct lang_symbol *index = find(e, "y", &y)->rhs->index[0];
    ok(index->low && index->low->type == DT_I64 && index->dims[0]->type == DT_I64,
       "ranges are i64");
    eq_str(lang_expr_text(k.a, index->low), "start[r]", "a range may read a tensor");
    find(e, "total", &total);
    ok(y < total, "an output that is read is computed first");
    const struct lang_expr *read = e->v[total]->rhs->args[0];
    eq_str(lang_expr_text(k.a, read), "y[r]", "... and read like an intermediate");
    ok(read->sym->def == e->v[y], "... whose equation is known");
    arena_free(k.a);
}

/* ---- bodies ---------------------------------------------------------------------------------- */

static const char body_spec[] = "kernel: k\n"
                                "params:\n"
                                "  x: in f32[rows, cols]\n"
                                "  y: out f16[rows, cols]\n"
                                "  s: f32 = 2\n"
                                "grid: ceil_div(rows * cols, 256)\n"
                                "block: [16, 16]\n"
                                "functions: |\n"
                                "  f32 twice(f32 v) { return v + v; }\n"
                                "body: |\n"
                                "  u32 i = blockIdx.x * 256 + threadIdx.y * 16 + threadIdx.x, k;\n"
                                "  if (i >= rows * cols) return;\n"
                                "  f32 v = x[i];\n"
                                "  #pragma unroll 4\n"
                                "  for (k = 0; k < 8; ++k) {\n"
                                "    if (v > 10) break; else if (v < -10) { v++; continue; }\n"
                                "    v *= s;\n"
                                "  }\n"
                                "  do { v -= 1; } while (v > 5 && k > 0);\n"
                                "  const bool far = v < 0 || !(k == 3);\n"
                                "  y[i / cols, i % cols] = (f16)(far ? twice(v) : 0);\n";

static void test_body(void)
{
    struct kernel k = read_kernel(body_spec);
    const struct lang_stmt *b = k.spec->body;
    eq_int(k.spec->nblock, 2, "block has two extents");
    eq_int(k.spec->ngrid, 1, "grid has one");
    eq_int(b->kind, S_BLOCK, "a body is a block");
    eq_int(b->nlocal, 4, "its locals are numbered");
    eq_int(b->body[0]->kind, S_DECL, "two variables of one declaration");
    eq_str(b->body[1]->sym->name, "k", "... are two statements");
    ok(b->body[0]->rhs->type == DT_U32 && b->body[0]->rhs->kind == E_BINARY, "threadIdx is u32");
    const struct lang_stmt *loop = b->body[4];
    eq_int(loop->kind, S_FOR, "a loop");
    eq_int(loop->unroll, 4, "#pragma unroll is kept");
    ok(loop->init->kind == S_ASSIGN && loop->step->has_op && loop->step->op == OP_ADD,
       "++k is k += 1");
    eq_int(loop->step->rhs->type, DT_U32, "... in k's type");
    const struct lang_stmt *store = b->body[7];
    ok(store->lhs->kind == E_INDEX && store->lhs->nargs == 2 && store->lhs->type == DT_F16,
       "a store");
    ok(store->rhs->kind == E_CAST && !store->rhs->is_implicit, "of a written conversion");
    ok(store->rhs->args[0]->args[1]->func, "that calls a function");
    eq_str(store->rhs->args[0]->args[1]->func->name, "twice", "... by name");
    ok(b->body[3]->rhs->nargs == 1 && b->body[3]->rhs->sym->rank == 2, "a flat subscript");
    arena_free(k.a);
}

/* Printing a body gives a text that reads as the same body. */
static void print_again(const char *text)
{
    struct kernel k = read_kernel(text);
    struct buf once = buf_in(k.a), twice = buf_in(k.a);
    lang_print_stmt(k.spec->body, 0, &once);
    const struct source *src = source_new(k.a, "again", buf_text(&once), once.len);
    struct lang_stmt *again = lang_parse_body(k.a, source_all(src), NULL, k.d);
    if (ok(again, "the printed body is parsed:\n%s", buf_text(&once)))
        lang_print_stmt(again->body[0], 0, &twice);
    eq_str(buf_text(&twice), buf_text(&once), "and prints the same");
    arena_free(k.a);
}

static const char storage_spec[] = "kernel: k\n"
                                   "params:\n"
                                   "  x: in f32[n]\n"
                                   "  y: out f32[n]\n"
                                   "shared: 4 * n\n"
                                   "grid: ceil_div(n, 64)\n"
                                   "block: 64\n"
                                   "body: |\n"
                                   "  const u32 T = 4;\n"
                                   "  shared f32x2 tile[2 * T][T + 1], more[];\n"
                                   "  shared u32 count;\n"
                                   "  f32 a[T][3] = {{1, 2}, {}, {4}}, b[2] = {};\n"
                                   "  const i8 w[3] = {1, -2};\n"
                                   "  f32x4 v = load4(&x[0]), u = (f32x4)v * 2;\n"
                                   "  bool some[2] = {false, true};\n"
                                   "  switch (x[1] > 2 ? 1 : T) {\n"
                                   "    case 1: case T: a[1][2] = 1; break;\n"
                                   "    default: b[0] += v.x;\n"
                                   "    case 7: { v.w = u[2]; }\n"
                                   "  }\n"
                                   "  tile[1][2].y = a[2, 1] + b[1] + f32(w[count]);\n"
                                   "  more[0] = f32x2(tile[0][0].x, v[3]);\n"
                                   "  count = some[1] ? 1 : 0;\n"
                                   "  store2(&y[2], -more[0]);\n";

static void test_storage(void)
{
    struct kernel k = read_kernel(storage_spec);
    const struct lang_stmt *b = k.spec->body;
    const struct lang_symbol *tile = b->body[1]->sym, *more = b->body[2]->sym;
    uint64_t n = 0;
    ok(tile->kind == SYM_SHARED && tile->rank == 2 && tile->lanes == 2, "an array of vectors");
    ok(lang_array_count(tile, &n) && n == 40, "whose size is made of constants");
    ok(more->rank == 1 && !more->dims[0] && !lang_array_count(more, &n), "one without a size");
    ok(b->body[3]->sym->kind == SYM_SHARED && b->body[3]->sym->rank == 0, "a shared variable");
    const struct lang_stmt *a = b->body[4];
    eq_int(a->nlist, 7, "a list ends with its last value");
    ok(a->list[1] && !a->list[2] && !a->list[3] && a->list[6], "... and rows with their own");
    ok(b->body[5]->has_list && b->body[5]->nlist == 0, "= {} is a list of none");
    const struct lang_stmt *u = b->body[8];
    ok(u->rhs->kind == E_BINARY && u->rhs->lanes == 4 && u->rhs->args[1]->kind == E_VECTOR &&
           u->rhs->args[1]->is_implicit,
       "a scalar among vectors becomes one");
    ok(u->rhs->args[0]->kind == E_CAST && u->rhs->args[0]->lanes == 4, "a vector is converted");
    const struct lang_stmt *choice = b->body[10];
    ok(choice->kind == S_SWITCH && choice->body[0]->nbody == 8, "a switch holds its cases");
    ok(!choice->body[0]->body[4]->rhs, "... and a default");
    const struct lang_expr *lane = b->body[11]->lhs;
    ok(lane->kind == E_MEMBER && lane->ival == 1 && lane->args[0]->lanes == 2 && !lane->lanes,
       "a lane of an element");
    eq_int(b->body[12]->rhs->args[1]->nargs, 1, "a lane by number is a subscript");
    arena_free(k.a);
}

static const char threads_spec[] =
    "kernel: k\n"
    "params:\n"
    "  x: in f16[n]\n"
    "  y: inout f16[n]\n"
    "  c: inout u32[n]\n"
    "grid: n\n"
    "block: 64\n"
    "cluster: [2, 1]\n"
    "body: |\n"
    "  u32 old = atomic_add(&c[1], 2, scope = block, order = acq_rel);\n"
    "  atomic_cas(&c[0], old, load(&c[3], order = seq_cst));\n"
    "  fence(order = release);\n"
    "  store(&y[0], x[0], scope = system);\n"
    "  f16x2 pair = atomic_sub(&y[2], f16x2(x[1], x[2]));\n"
    "  f16 v = __shfl_xor_sync(-1, pair.x, 1);\n"
    "  f32 w = warp_max(v) + f32(__syncthreads_count(v > 1));\n"
    "  u32 k = old / warpSize + clusterIdx.x;\n"
    "  y[k] = __any_sync(0xffffffff, w > 2) ? v : x[k];\n";

static void test_threads(void)
{
    struct kernel k = read_kernel(threads_spec);
    const struct lang_stmt *b = k.spec->body;
    const struct lang_expr *add = b->body[0]->rhs, *cas = b->body[1]->rhs;
    eq_int(k.spec->ncluster, 2, "a cluster has two extents");
    ok(add->fn == FN_ATOMIC_ADD && add->nargs == 2 && add->type == DT_U32, "an atomic operation");
    ok(add->order == ORDER_ACQ_REL && add->scope == SCOPE_BLOCK, "... with its order and scope");
    eq_int(add->args[1]->type, DT_U32, "... whose operand has the element's type");
    ok(cas->order == ORDER_RELAXED && cas->scope == SCOPE_GPU, "... or relaxed and gpu");
    eq_int(cas->args[2]->order, ORDER_SEQ_CST, "an ordered load is an operand like others");
    ok(b->body[2]->rhs->order == ORDER_RELEASE && b->body[2]->rhs->type == DT_VOID, "a fence");
    const struct lang_expr *pair = b->body[4]->rhs, *shuffle = b->body[5]->rhs;
    ok(pair->type == DT_F16 && pair->lanes == 2, "two elements at once give a vector");
    ok(shuffle->type == DT_F16 && shuffle->args[0]->ival == UINT32_MAX,
       "a shuffle has its value's type, and -1 is a mask of all");
    const struct lang_expr *sum = b->body[6]->rhs;
    ok(sum->args[0]->kind == E_CALL && sum->args[0]->type == DT_F32, "a reduction widens f16");
    arena_free(k.a);
    print_again(threads_spec);
}

static void test_body_print(void)
{
    print_again(body_spec);
    print_again(storage_spec);
}

static void test_defines(void)
{
    static const struct spec_define fixed[] = {{"rows", 4, DT_VOID}, {"cols", 8, DT_VOID}},
                                    wrong[] = {{"row", 4, DT_VOID}};
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    const struct source *src = source_new(a, "k.yaml", body_spec, strlen(body_spec));
    struct spec_file *f = spec_read(a, src, fixed, 2, d);
    int64_t v = 0;
    ok(f && f->specs.v[0]->dims.v[0]->has_value, "-D fixes a dimension");
    ok(f && lang_const_int(f->specs.v[0]->grid[0], &v) && v == 1, "the grid is then constant");
    ok(!spec_read(a, src, wrong, 1, d), "-D of a dimension that no kernel has is refused");
    ok(d->list.n && strstr(d->list.v[d->list.n - 1].text, "'row'"), "by name");
    arena_free(a);
}

static void test_lazy_functions(void)
{
    static const char text[] =
        "f32 good(f32 v) { /* } */ if (v > 0) { return v; } // }}\n return 0; }\n"
        "f32 bad(f32 v) { return nothing; }\nf32 worse(f32 v) { return ; ; 1 }\n";
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    struct lang_scope scope = {0};
    const struct lang_options lazy = {.lazy_functions = true};
    const struct source *src = source_new(a, "lib", text, strlen(text));
    ok(lang_functions(a, source_all(src), &scope, &lazy, d), "lazy functions are only parsed");
    struct lang_func *good = lang_find(&scope, "good")->func, *bad = lang_find(&scope, "bad")->func;
    ok(!good->checked && lang_check_func(good, d) && good->checked, "and checked when asked for");
    ok(!lang_check_func(bad, d) && d->nerror == 1, "with their errors");
    ok(!lang_check_func(bad, d) && d->nerror == 1, "which are told once");
    ok(!lang_check_func(lang_find(&scope, "worse")->func, d) && d->nerror > 1,
       "those of syntax too");
    arena_free(a);
}

/* 100 MB of anything is refused at once, and so is a text that is too long to be a program. */
static void test_size(void)
{
    size_t n = 100u << 20;
    char *text = malloc(n + 1);
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    if (!text)
        abort();
    memset(text, '[', n);
    text[n] = '\0';
    struct source src = {"big.yaml", text, n};
    ok(!spec_read(a, &src, NULL, 0, d), "100 MB are refused");
    ok(d->list.n == 1 && strstr(d->list.v[0].text, "has 104857600 bytes"), "because of their size");
    n = 2u << 20;
    memset(text, 'a', n);
    memcpy(text, "kernel: k\nparams:\n  y: out f32[n]\ncompute: ", 43);
    text[n] = '\0';
    src.len = n;
    ok(!spec_read(a, &src, NULL, 0, d), "an equation of 2 MB is refused");
    ok(strstr(d->list.v[1].text, "longer than 256 KiB"), "because of its size: %s",
       d->list.v[1].text);
    arena_free(a);
    free(text);
}

int main(void)
{
    test_order();
    test_recurrences();
    test_ragged();
    test_body();
    test_storage();
    test_threads();
    test_body_print();
    test_defines();
    test_lazy_functions();
    test_size();
    return tap_done();
}
