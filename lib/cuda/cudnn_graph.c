/* Attention as a graph of cuDNN's operations: products, elementwise ones, reductions, in the order
 * and with the intermediate types by which the library recognises what it has one kernel for.
 * cuDNN's own interface for one descriptor of the whole has masks only since 9.21.
 */
#include <config.h>

#include "cuda/cudnn.h"

#include <math.h>

#include "cuda/cudnn_values.h"

/* cudnn_graph.h */
enum {
    POINTWISE_DESCRIPTOR = 0,
    OPERATION_POINTWISE_DESCRIPTOR = 13,
    MATMUL_DESCRIPTOR = 18,
    OPERATION_MATMUL_DESCRIPTOR = 19,
    REDUCTION_DESCRIPTOR = 21,
    OPERATION_REDUCTION_DESCRIPTOR = 22,
    OPERATION_RESHAPE_DESCRIPTOR = 31,
    OPERATION_PAGED_CACHE_LOAD_DESCRIPTOR = 35,
};
enum {
    POINTWISE_MODE = 0,
    POINTWISE_MATH_PREC = 1,
    POINTWISE_AXIS = 9,
    OPERATION_POINTWISE_PW_DESCRIPTOR = 750,
    OPERATION_POINTWISE_XDESC = 751,
    OPERATION_POINTWISE_BDESC = 752,
    OPERATION_POINTWISE_YDESC = 753,
    OPERATION_POINTWISE_TDESC = 758,
    MATMUL_COMP_TYPE = 1500,
    OPERATION_MATMUL_ADESC = 1520,
    OPERATION_MATMUL_BDESC = 1521,
    OPERATION_MATMUL_CDESC = 1522,
    OPERATION_MATMUL_DESC = 1523,
    OPERATION_MATMUL_M = 1525,
    OPERATION_MATMUL_N = 1526,
    OPERATION_MATMUL_K = 1527,
    REDUCTION_OPERATOR = 1600,
    REDUCTION_COMP_TYPE = 1601,
    OPERATION_REDUCTION_XDESC = 1610,
    OPERATION_REDUCTION_YDESC = 1611,
    OPERATION_REDUCTION_DESC = 1612,
    PAGED_CACHE_LOAD_CONTAINER = 1950,
    PAGED_CACHE_LOAD_YDESC = 1951,
    PAGED_CACHE_LOAD_SEQUENCE = 1952,
    PAGED_CACHE_LOAD_PAGE_TABLE = 1953,
    RESHAPE_XDESC = 2200,
    RESHAPE_YDESC = 2201,
};
enum {
    ADD = 0,
    MUL = 1,
    DIV = 6,
    SUB = 9,
    EXP = 13,
    LOG = 15,
    IDENTITY = 21,
    TANH = 101,
    CMP_GT = 302,
    CMP_GE = 303,
    CMP_LT = 304,
    LOGICAL_AND = 400,
    GEN_INDEX = 501,
    BINARY_SELECT = 601,
};
enum { REDUCE_ADD = 0, REDUCE_MAX = 3 };
enum { BATCH, HEAD, ROW, COLUMN };

typedef struct cudnn_desc_ *desc;

struct shape {
    int64_t dim[4], stride[4];
};
/* A tensor of the graph. */
struct value {
    desc t;
    struct shape s;
    int type;
};
struct builder {
    struct cudnn_builder o;
    struct sdpa_plan *plan;
    const struct sdpa_problem *p;
    int64_t uid;
    desc buffer[SDPA_BUFFERS];
};

/* ---- objects ---- */

static desc make(struct builder *b, int type)
{
    return cu_cudnn_new(&b->o, type);
}

static void set(struct builder *b, desc t, int name, int type, int64_t n, const void *values)
{
    cu_cudnn_set(&b->o, t, name, type, n, values);
}

static void set_desc(struct builder *b, desc t, int name, desc v)
{
    cu_cudnn_set_desc(&b->o, t, name, v);
}

static void set_int(struct builder *b, desc t, int name, int type, int v)
{
    cu_cudnn_set_int(&b->o, t, name, type, v);
}

static void finish(struct builder *b, desc t)
{
    cu_cudnn_finish(&b->o, t);
}

static void finish_op(struct builder *b, desc op)
{
    finish(b, op);
    if (b->o.status == 0 && b->plan->nop == SDPA_OPS_MOST) {
        b->o.status = STATUS_NO_HOST_MEMORY;
        b->o.call = "the graph";
    }
    if (b->o.status == 0)
        b->plan->op[b->plan->nop++] = op;
}

/* ---- tensors ---- */

static struct value tensor(struct builder *b, int type, struct shape s, int64_t uid,
                           bool is_virtual, bool is_number)
{
    const struct cudnn_tensor t = {.type = type,
                                   .rank = 4,
                                   .uid = uid,
                                   .dim = s.dim,
                                   .stride = s.stride,
                                   .is_virtual = is_virtual,
                                   .is_number = is_number};
    return (struct value){.t = cu_cudnn_tensor(&b->o, &t), .s = s, .type = type};
}

static struct shape dense(uint64_t x, uint64_t y, uint64_t rows, uint64_t cols)
{
    const int64_t r = (int64_t)rows, c = (int64_t)cols;
    return (struct shape){{(int64_t)x, (int64_t)y, r, c}, {(int64_t)y * r * c, r * c, c, 1}};
}

/* Rows and columns change places; nothing moves. */
static struct shape turned(struct shape s)
{
    const struct shape old = s;
    s.dim[ROW] = old.dim[COLUMN];
    s.dim[COLUMN] = old.dim[ROW];
    s.stride[ROW] = old.stride[COLUMN];
    s.stride[COLUMN] = old.stride[ROW];
    return s;
}

static struct value between(struct builder *b, int type, struct shape s)
{
    return tensor(b, type, s, b->uid++, true, false);
}

/* A buffer of the caller's. Its uid is its number and 1, so that none is 0. */
static struct value buffer(struct builder *b, enum sdpa_buffer which, bool turn)
{
    const struct sdpa_tensor *t = &b->p->tensor[which];
    struct shape s;
    for (int k = 0; k < 4; k++) {
        s.dim[k] = (int64_t)t->dim[k];
        s.stride[k] = (int64_t)t->stride[k];
    }
    b->plan->uses[which] = true;
    return tensor(b, cu_cudnn_type(t->type), turn ? turned(s) : s, which + 1, false, false);
}

static struct sdpa_extra *extra(struct builder *b)
{
    static struct sdpa_extra none;
    if (b->plan->nextra == SDPA_EXTRAS_MOST) {
        b->o.status = b->o.status ? b->o.status : STATUS_NO_HOST_MEMORY;
        b->o.call = "the graph";
        return &none;
    }
    struct sdpa_extra *x = &b->plan->extra[b->plan->nextra++];
    x->uid = b->uid++;
    return x;
}

static struct value number(struct builder *b, double v)
{
    struct sdpa_extra *x = extra(b);
    x->is_number = true;
    x->number.f = (float)v;
    return tensor(b, FLOAT, (struct shape){{1, 1, 1, 1}, {1, 1, 1, 1}}, x->uid, false, true);
}

static struct value whole_number(struct builder *b, uint64_t v)
{
    struct sdpa_extra *x = extra(b);
    x->is_number = true;
    x->number.i = (int32_t)v;
    return tensor(b, INT32, (struct shape){{1, 1, 1, 1}, {1, 1, 1, 1}}, x->uid, false, true);
}

/* A tensor of f32 in memory that is ours. */
static struct value scratch(struct builder *b, struct shape s)
{
    struct sdpa_extra *x = extra(b);
    x->at = b->plan->extra_bytes;
    b->plan->extra_bytes += ((uint64_t)s.dim[0] * (uint64_t)s.stride[0] * 4 + 255) / 256 * 256;
    return tensor(b, FLOAT, s, x->uid, false, false);
}

/* ---- operations ---- */

/* y = mode(x, v, choice); values without a tensor are left out. */
static struct value apply_to(struct builder *b, int mode, int precision, int axis, struct value x,
                             const struct value *v, const struct value *choice, struct value y)
{
    desc how = make(b, POINTWISE_DESCRIPTOR);
    const int64_t along = axis;
    set_int(b, how, POINTWISE_MODE, TYPE_POINTWISE_MODE, mode);
    set_int(b, how, POINTWISE_MATH_PREC, TYPE_DATA_TYPE, precision);
    if (mode == GEN_INDEX)
        set(b, how, POINTWISE_AXIS, TYPE_INT64, 1, &along);
    finish(b, how);
    desc op = make(b, OPERATION_POINTWISE_DESCRIPTOR);
    set_desc(b, op, OPERATION_POINTWISE_PW_DESCRIPTOR, how);
    set_desc(b, op, OPERATION_POINTWISE_XDESC, x.t);
    if (v)
        set_desc(b, op, OPERATION_POINTWISE_BDESC, v->t);
    if (choice)
        set_desc(b, op, OPERATION_POINTWISE_TDESC, choice->t);
    set_desc(b, op, OPERATION_POINTWISE_YDESC, y.t);
    finish_op(b, op);
    return y;
}

static struct value map1(struct builder *b, int mode, struct value x)
{
    return apply_to(b, mode, FLOAT, 0, x, NULL, NULL, between(b, FLOAT, x.s));
}

static struct value map2(struct builder *b, int mode, struct value x, struct value v)
{
    return apply_to(b, mode, FLOAT, 0, x, &v, NULL, between(b, FLOAT, x.s));
}

static struct value index_of(struct builder *b, struct value x, int axis)
{
    return apply_to(b, GEN_INDEX, FLOAT, axis, x, NULL, NULL, between(b, INT32, x.s));
}

static struct value count(struct builder *b, int mode, struct value x, struct value v)
{
    return apply_to(b, mode, INT32, 0, x, &v, NULL, between(b, INT32, x.s));
}

static struct value compare(struct builder *b, int mode, struct value x, struct value v)
{
    return apply_to(b, mode, BOOLEAN, 0, x, &v, NULL, between(b, BOOLEAN, x.s));
}

static struct value where(struct builder *b, struct value choice, struct value x)
{
    const struct value otherwise = number(b, -INFINITY);
    return apply_to(b, BINARY_SELECT, FLOAT, 0, x, &otherwise, &choice, between(b, FLOAT, x.s));
}

static struct value reduce_to(struct builder *b, int mode, struct value x, struct value y)
{
    desc how = make(b, REDUCTION_DESCRIPTOR);
    set_int(b, how, REDUCTION_OPERATOR, TYPE_REDUCTION_OPERATOR, mode);
    set_int(b, how, REDUCTION_COMP_TYPE, TYPE_DATA_TYPE, FLOAT);
    finish(b, how);
    desc op = make(b, OPERATION_REDUCTION_DESCRIPTOR);
    set_desc(b, op, OPERATION_REDUCTION_DESC, how);
    set_desc(b, op, OPERATION_REDUCTION_XDESC, x.t);
    set_desc(b, op, OPERATION_REDUCTION_YDESC, y.t);
    finish_op(b, op);
    return y;
}

static struct value reduce_row(struct builder *b, int mode, struct value x)
{
    const struct shape s =
        dense((uint64_t)x.s.dim[0], (uint64_t)x.s.dim[1], (uint64_t)x.s.dim[ROW], 1);
    return reduce_to(b, mode, x, between(b, FLOAT, s));
}

/* rows and keys say which of the product's m, n and k they are; they matter where sequences have
 * lengths of their own. */
static void multiply_to(struct builder *b, struct value x, struct value v, int rows, int keys,
                        struct value y)
{
    desc how = make(b, MATMUL_DESCRIPTOR);
    set_int(b, how, MATMUL_COMP_TYPE, TYPE_DATA_TYPE, FLOAT);
    finish(b, how);
    desc op = make(b, OPERATION_MATMUL_DESCRIPTOR);
    set_desc(b, op, OPERATION_MATMUL_ADESC, x.t);
    set_desc(b, op, OPERATION_MATMUL_BDESC, v.t);
    set_desc(b, op, OPERATION_MATMUL_CDESC, y.t);
    if (b->buffer[SDPA_LENGTHS]) {
        set_desc(b, op, rows, b->buffer[SDPA_ROWS]);
        set_desc(b, op, keys, b->buffer[SDPA_LENGTHS]);
    }
    set_desc(b, op, OPERATION_MATMUL_DESC, how);
    finish_op(b, op);
}

static struct value reshape(struct builder *b, struct value x, int type, struct shape s)
{
    const struct value y = between(b, type, s);
    desc op = make(b, OPERATION_RESHAPE_DESCRIPTOR);
    set_desc(b, op, RESHAPE_XDESC, x.t);
    set_desc(b, op, RESHAPE_YDESC, y.t);
    finish_op(b, op);
    return y;
}

/* ---- scores ---- */

static struct shape score_shape(const struct sdpa_problem *p)
{
    return dense(p->batch, p->heads, p->m, p->n);
}

static struct value as_value(desc t, int type, struct shape s)
{
    return (struct value){t, s, type};
}

/* j < length and i < rows, which the library wants to hear of, too. */
static struct value mask_lengths(struct builder *b, struct value x)
{
    const struct shape one = dense(b->p->batch, 1, 1, 1);
    const struct value rows = as_value(b->buffer[SDPA_ROWS], INT32, one);
    const struct value keys = as_value(b->buffer[SDPA_LENGTHS], INT32, one);
    const struct value row =
        apply_to(b, GEN_INDEX, INT32, ROW, x, NULL, NULL, between(b, INT32, x.s));
    const struct value col =
        apply_to(b, GEN_INDEX, INT32, COLUMN, x, NULL, NULL, between(b, INT32, x.s));
    const struct value row_in = compare(b, CMP_LT, row, rows);
    const struct value col_in = compare(b, CMP_LT, col, keys);
    return where(b, compare(b, LOGICAL_AND, row_in, col_in), x);
}

/* How many keys, or rows, a sequence has. */
static struct value length_of(struct builder *b, enum sdpa_buffer which, uint64_t most)
{
    const struct shape one = dense(b->p->batch, 1, 1, 1);
    return b->buffer[which] ? as_value(b->buffer[which], INT32, one) : whole_number(b, most);
}

/* j <= i + shift */
static struct value mask_below(struct builder *b, struct value x)
{
    const struct sdpa_problem *p = b->p;
    struct value row = index_of(b, x, ROW);
    const struct value col = index_of(b, x, COLUMN);
    if (b->buffer[SDPA_LENGTHS] || p->shift) {
        row = count(b, ADD, row, length_of(b, SDPA_LENGTHS, p->n));
        row = count(b, SUB, row, length_of(b, SDPA_ROWS, p->m));
    }
    return where(b, compare(b, CMP_GE, row, col), x);
}

/* j + window - shift > i */
static struct value mask_above(struct builder *b, struct value x)
{
    const struct sdpa_problem *p = b->p;
    const struct value row = index_of(b, x, ROW);
    struct value col = index_of(b, x, COLUMN);
    if (b->buffer[SDPA_LENGTHS]) {
        col = count(b, ADD, col, whole_number(b, p->window));
        col = count(b, SUB, col, length_of(b, SDPA_LENGTHS, p->n));
        col = count(b, ADD, col, length_of(b, SDPA_ROWS, p->m));
    } else {
        const struct value by = number(b, (double)p->window - (double)p->shift);
        col = apply_to(b, ADD, FLOAT, 0, col, &by, NULL, between(b, FLOAT, x.s));
    }
    return where(b, compare(b, CMP_GT, col, row), x);
}

static struct value add_slope(struct builder *b, struct value x)
{
    const struct value row =
        apply_to(b, GEN_INDEX, INT32, ROW, x, NULL, NULL, between(b, INT32, x.s));
    const struct value col =
        apply_to(b, GEN_INDEX, INT32, COLUMN, x, NULL, NULL, between(b, INT32, x.s));
    const struct value distance = count(b, SUB, col, row);
    return map2(b, ADD, x, map2(b, MUL, distance, buffer(b, SDPA_SLOPE, false)));
}

static struct value scores(struct builder *b, struct value q, struct value kt)
{
    const struct sdpa_problem *p = b->p;
    struct value x = between(b, FLOAT, score_shape(p));
    multiply_to(b, q, kt, OPERATION_MATMUL_M, OPERATION_MATMUL_N, x);
    x = map2(b, MUL, x, number(b, p->scale));
    if (p->cap > 0) {
        const struct value cap = number(b, p->cap);
        x = map2(b, MUL, map1(b, TANH, map2(b, DIV, x, cap)), cap);
    }
    if (p->tensor[SDPA_BIAS].is_there)
        x = map2(b, ADD, x, buffer(b, SDPA_BIAS, false));
    if (p->tensor[SDPA_SLOPE].is_there)
        x = add_slope(b, x);
    if (b->buffer[SDPA_LENGTHS])
        x = mask_lengths(b, x);
    return x;
}

static struct value mask(struct builder *b, struct value x)
{
    if (b->p->causal)
        x = mask_below(b, x);
    return b->p->window ? mask_above(b, x) : x;
}

/* ---- the whole ---- */

/* k or v as they lie, or put together from pages. */
static struct value keys_of(struct builder *b, enum sdpa_buffer which, bool turn)
{
    const struct sdpa_problem *p = b->p;
    if (!p->tensor[SDPA_PAGES].is_there)
        return buffer(b, which, turn);
    const struct value pages = buffer(b, SDPA_PAGES, false), from = buffer(b, which, false);
    struct shape s = dense(p->batch, p->kv_heads, p->n, p->tensor[which].dim[COLUMN]);
    const struct value to = between(b, from.type, turn ? turned(s) : s);
    desc op = make(b, OPERATION_PAGED_CACHE_LOAD_DESCRIPTOR);
    set_desc(b, op, PAGED_CACHE_LOAD_CONTAINER, from.t);
    set_desc(b, op, PAGED_CACHE_LOAD_PAGE_TABLE, pages.t);
    set_desc(b, op, PAGED_CACHE_LOAD_SEQUENCE, b->buffer[SDPA_LENGTHS]);
    set_desc(b, op, PAGED_CACHE_LOAD_YDESC, to.t);
    finish_op(b, op);
    return to;
}

static void forward(struct builder *b)
{
    const struct sdpa_problem *p = b->p;
    const struct value kt = keys_of(b, SDPA_K, true);
    const struct value q = buffer(b, SDPA_Q, false);
    const struct value x = mask(b, scores(b, q, kt));
    const struct value top = reduce_row(b, REDUCE_MAX, x);
    const struct value e = map1(b, EXP, map2(b, SUB, x, top));
    const struct value total = reduce_row(b, REDUCE_ADD, e);
    /* the library knows a softmax by its logarithm, whether anything reads that or not */
    const struct value log_total = map1(b, LOG, total);
    apply_to(b, ADD, FLOAT, 0, top, &log_total, NULL,
             p->tensor[SDPA_LSE].is_there ? buffer(b, SDPA_LSE, false)
                                          : between(b, FLOAT, total.s));
    const struct value weights =
        apply_to(b, DIV, FLOAT, 0, e, &total, NULL, between(b, q.type, x.s));
    const struct value v = keys_of(b, SDPA_V, false);
    multiply_to(b, weights, v, OPERATION_MATMUL_M, OPERATION_MATMUL_K, buffer(b, SDPA_O, false));
}

/* The gradient of k or v, which heads that share one add up. */
static void gradient(struct builder *b, struct value scores_turned, struct value rows,
                     enum sdpa_buffer which)
{
    const struct sdpa_problem *p = b->p;
    const struct value out = buffer(b, which, false);
    if (p->heads == p->kv_heads) {
        multiply_to(b, scores_turned, rows, OPERATION_MATMUL_K, OPERATION_MATMUL_M, out);
        return;
    }
    const struct value all =
        between(b, rows.type, dense(p->batch, p->heads, p->n, p->tensor[which].dim[COLUMN]));
    multiply_to(b, scores_turned, rows, OPERATION_MATMUL_K, OPERATION_MATMUL_M, all);
    reduce_to(b, REDUCE_ADD, all, out);
}

static void backward(struct builder *b)
{
    const struct sdpa_problem *p = b->p;
    const struct shape row = dense(p->batch, p->heads, p->m, 1);
    const struct value dout = buffer(b, SDPA_DO, false), one = number(b, 1);
    struct value delta = reduce_row(b, REDUCE_ADD, map2(b, MUL, dout, buffer(b, SDPA_O, false)));
    delta = apply_to(b, MUL, FLOAT, 0, delta, &one, NULL, scratch(b, row));

    const struct value q = buffer(b, SDPA_Q, false), kt = buffer(b, SDPA_K, true);
    struct value x = map2(b, SUB, scores(b, q, kt), buffer(b, SDPA_LSE, false));
    const struct value e = map1(b, EXP, mask(b, x));
    const struct shape across = turned(score_shape(p));
    gradient(b, reshape(b, e, q.type, across), dout, SDPA_DV);

    struct value ds = between(b, FLOAT, score_shape(p));
    multiply_to(b, dout, buffer(b, SDPA_V, true), OPERATION_MATMUL_M, OPERATION_MATMUL_N, ds);
    ds = map2(b, MUL, map2(b, SUB, ds, delta), e);
    ds = map2(b, MUL, ds, number(b, p->scale));
    gradient(b, reshape(b, ds, q.type, across), q, SDPA_DK);

    const struct value k = reshape(b, kt, kt.type, turned(kt.s));
    const struct value sum = scratch(b, dense(p->batch, p->heads, p->m, p->d));
    multiply_to(b, ds, k, OPERATION_MATMUL_M, OPERATION_MATMUL_K, sum);
    apply_to(b, IDENTITY, FLOAT, 0, sum, NULL, NULL, buffer(b, SDPA_DQ, false));
}

int cu_cudnn_graph(const struct cudnn *lib, struct cudnn_handle_ *handle,
                   const struct sdpa_problem *p, struct sdpa_plan *plan, const char **call)
{
    struct builder b = {
        .o = {lib, &plan->made, 0, NULL}, .plan = plan, .p = p, .uid = SDPA_BUFFERS + 1};
    if (p->tensor[SDPA_LENGTHS].is_there) {
        b.buffer[SDPA_ROWS] = buffer(&b, SDPA_ROWS, false).t;
        b.buffer[SDPA_LENGTHS] = buffer(&b, SDPA_LENGTHS, false).t;
    }
    if (p->backward)
        backward(&b);
    else
        forward(&b);
    plan->graph = cu_cudnn_operations(&b.o, handle, plan->op, plan->nop);
    *call = b.o.call;
    return b.o.status;
}
