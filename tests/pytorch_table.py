"""The operations of tests/operations by the numbers of KernelBench's level 1: the kernel, the case that has the published
sizes, and PyTorch's way to compute it. For tests/pytorch_operations.py."""


class Op:
    """`call` takes PyTorch, its functions and the inputs in the order of the spec's parameters. Of the inputs at the places
    `sliced` a few rows will do for the same rows of the result, where float64 judges. `prepare` changes random inputs.
    `compare` is close, or the name of the extremum whose place along axis 1 is wanted."""

    def __init__(self, number, kind, kernel, case, call, sliced=(), compare="close", prepare=None):
        self.number, self.kind, self.kernel, self.case, self.call = number, kind, kernel, case, call
        self.sliced, self.compare, self.prepare = sliced, compare, prepare

    def title(self):
        return f"{self.number} {self.kernel}" + (f" {self.case}" if self.case != "published" else "")


OPS = {}


def add(kind, number, kernel, call, case="published", **options):
    OPS[number] = Op(number, kind, kernel, case, call, **options)


# ---- products --------------------------------------------------------------------------------------------------


def matmul(t, f, a, b):
    return t.matmul(a, b)


def with_inputs(change):
    """Inputs that are all changed alike."""
    return lambda torch, inputs: [change(torch, x) for x in inputs]


for number, case in ((1, "square"), (2, "oblong"), (6, "deep"), (7, "shallow"), (8, "irregular"), (9, "outer")):
    add("products", number, "matmul", matmul, case, sliced=(0,))
add("products", 3, "matmul_batched", lambda t, f, a, b: t.bmm(a, b), sliced=(0, 1))
add("products", 4, "matvec", matmul, sliced=(0,))
add("products", 5, "matrix_scalar", lambda t, f, a: a * 3.14, sliced=(0,))
add("products", 10, "matmul_stack", matmul, sliced=(0,))
add("products", 11, "matmul_stacks", lambda t, f, a, b: t.einsum("bijl,lk->bijk", a, b), sliced=(0,))
add("products", 12, "matmul_diagonal", lambda t, f, a, b: a.unsqueeze(1) * b, sliced=(0, 1))
add("products", 13, "matmul_symmetric", matmul, sliced=(0,), prepare=with_inputs(lambda t, x: (x + x.T) / 2))
add("products", 14, "matmul_upper", lambda t, f, a, b: t.triu(t.matmul(a, b)), prepare=with_inputs(lambda t, x: x.triu()))
add("products", 15, "matmul_lower", lambda t, f, a, b: t.tril(t.matmul(a, b)), prepare=with_inputs(lambda t, x: x.tril()))
add("products", 16, "matmul_tn", lambda t, f, a, b: t.matmul(a.T, b))
add("products", 17, "matmul_nt", lambda t, f, a, b: t.matmul(a, b.T), sliced=(0,))
add("products", 18, "matmul_tt", lambda t, f, a, b: t.matmul(a.T, b.T))

# ---- activations -----------------------------------------------------------------------------------------------

GELU_NEW = 0.7978845608028654  # the root of 2 / pi

for number, kernel, call in (
        (19, "relu", lambda t, f, x: t.relu(x)),
        (20, "leaky_relu", lambda t, f, x: f.leaky_relu(x, 0.01)),
        (21, "sigmoid", lambda t, f, x: t.sigmoid(x)),
        (22, "tanh_rows", lambda t, f, x: t.tanh(x)),
        (23, "softmax_rows", lambda t, f, x: t.softmax(x, 1)),
        (24, "log_softmax_rows", lambda t, f, x: t.log_softmax(x, 1)),
        (25, "swish", lambda t, f, x: x * t.sigmoid(x)),
        (26, "gelu_rows", lambda t, f, x: f.gelu(x)),
        (27, "selu_rows", lambda t, f, x: t.selu(x)),
        (28, "hardsigmoid_rows", lambda t, f, x: f.hardsigmoid(x)),
        (29, "softplus_rows", lambda t, f, x: f.softplus(x)),
        (30, "softsign_rows", lambda t, f, x: x / (1 + t.abs(x))),
        (31, "elu_rows", lambda t, f, x: f.elu(x, 1.0)),
        (32, "hardtanh_rows", lambda t, f, x: f.hardtanh(x, -1.0, 1.0)),
        (88, "gelu_new", lambda t, f, x: 0.5 * x * (1 + t.tanh(GELU_NEW * (x + 0.044715 * t.pow(x, 3)))))):
    add("activations", number, kernel, call, sliced=(0,))

# ---- norms -----------------------------------------------------------------------------------------------------


def group_norm(t, f, x, gain, bias):
    y = f.group_norm(x.flatten(1, 2), x.shape[1], gain.flatten(), bias.flatten(), 1e-5)
    return y.view(x.shape)


add("norms", 33, "batch_norm", lambda t, f, x, gain, bias: f.batch_norm(x, None, None, gain, bias, True, 0.1, 1e-5))
add("norms", 34, "instance_norm", lambda t, f, x: f.instance_norm(x), sliced=(0,))
add("norms", 35, "group_norm", group_norm, sliced=(0,))
add("norms", 36, "rms_norm", lambda t, f, x: x / t.sqrt(t.mean(x ** 2, 1, keepdim=True) + 1e-5), sliced=(0,))
add("norms", 37, "frobenius_norm", lambda t, f, x: x / t.norm(x, p="fro"))
add("norms", 38, "l1_norm", lambda t, f, x: x / t.mean(t.abs(x), 1, keepdim=True), sliced=(0,))
add("norms", 39, "l2_norm", lambda t, f, x: x / t.norm(x, p=2, dim=1, keepdim=True), sliced=(0,))
add("norms", 40, "layer_norm", lambda t, f, x, gain, bias: f.layer_norm(x, gain.shape, gain, bias, 1e-5), sliced=(0,))

# ---- poolings and reductions -----------------------------------------------------------------------------------

for number, kernel, call in (
        (41, "max_pool1d", lambda t, f, x: f.max_pool1d(x, 8, 1, 4, 3)),
        (42, "max_pool2d", lambda t, f, x: f.max_pool2d(x, 4, 1, 1, 1)),
        (43, "max_pool3d", lambda t, f, x: f.max_pool3d(x, 3, 2, 1, 3)),
        (44, "avg_pool1d", lambda t, f, x: f.avg_pool1d(x, 8, 1, 4)),
        (45, "avg_pool2d", lambda t, f, x: f.avg_pool2d(x, 11)),
        (46, "avg_pool3d", lambda t, f, x: f.avg_pool3d(x, 3, 2, 1))):
    add("poolings", number, kernel, call, sliced=(0,))

add("reductions", 47, "sum_middle", lambda t, f, x: t.sum(x, 1, keepdim=True), sliced=(0,))
add("reductions", 48, "mean_middle", lambda t, f, x: t.mean(x, 1), sliced=(0,))
add("reductions", 49, "max_middle", lambda t, f, x: t.max(x, 1)[0], sliced=(0,))
add("reductions", 51, "argmax_middle", lambda t, f, x: t.argmax(x, 1), compare="amax")
add("reductions", 52, "argmin_middle", lambda t, f, x: t.argmin(x, 1), compare="amin")
add("reductions", 53, "min_middle", lambda t, f, x: t.min(x, 1)[0], sliced=(0,))

# ---- convolutions ----------------------------------------------------------------------------------------------


def depthwise(t, f, x, weight):
    return f.conv2d(x, weight.unsqueeze(1), groups=x.shape[1])


def separable(t, f, x, window, weight):
    z = f.conv2d(x, window.unsqueeze(1), padding=1, groups=x.shape[1])
    return f.conv2d(z, weight[:, :, None, None])


def grouped(name, *geometry):
    """Groups lie in an axis of their own here; PyTorch has them in the channels."""
    def call(t, f, x, weight):
        y = getattr(f, name)(x.flatten(1, 2), weight.flatten(0, 1), None, *geometry[:-1], x.shape[1], geometry[-1])
        return y.unflatten(1, (x.shape[1], -1))
    return call


for number, case in ((55, "wide"), (56, "high"), (62, "window"), (63, "large")):
    add("convolutions", number, "conv2d", lambda t, f, x, w: f.conv2d(x, w), case)
for number, case in ((54, "cube"), (59, "flat"), (60, "window"), (66, "thin")):
    add("convolutions", number, "conv3d", lambda t, f, x, w: f.conv3d(x, w), case)
add("convolutions", 50, "conv2d_stem", lambda t, f, x, w, b: f.conv2d(x, w, b, 4, 2))
add("convolutions", 67, "conv1d", lambda t, f, x, w: f.conv1d(x, w))
add("convolutions", 76, "conv1d_strided", lambda t, f, x, w: f.conv1d(x, w, None, 3, 0, 4))
add("convolutions", 80, "conv2d_dilated", lambda t, f, x, w: f.conv2d(x, w, None, 1, (2, 4), (2, 3)))

for number, case in ((57, "large"), (65, "window"), (69, "oblong"), (71, "wide")):
    add("transposed", number, "transposed2d", lambda t, f, x, w: f.conv_transpose2d(x, w), case)
for number, case in ((58, "oblong"), (61, "cube"), (68, "window"), (70, "large")):
    add("transposed", number, "transposed3d", lambda t, f, x, w: f.conv_transpose3d(x, w), case)
add("transposed", 64, "transposed1d", lambda t, f, x, w: f.conv_transpose1d(x, w))
add("transposed", 72, "transposed3d_grouped", grouped("conv_transpose3d", 2, (1, 2, 3), 1, 1))
# the published program says 4 groups, but makes a border of it that nothing uses
add("transposed", 73, "transposed3d_strided", lambda t, f, x, w: f.conv_transpose3d(x, w, None, 2, 1))
add("transposed", 74, "transposed1d_dilated", lambda t, f, x, w: f.conv_transpose1d(x, w, None, 1, 0, 0, 1, 3))
add("transposed", 75, "transposed2d_grouped", grouped("conv_transpose2d", (2, 3), (1, 2), 0, (2, 1)))
add("transposed", 77, "transposed3d_dilated", lambda t, f, x, w: f.conv_transpose3d(x, w, None, 2, 1, 0, 1, 2))
add("transposed", 78, "transposed2d_padded", lambda t, f, x, w: f.conv_transpose2d(x, w, None, 1, (1, 3)))
add("transposed", 79, "transposed1d_strided", lambda t, f, x, w: f.conv_transpose1d(x, w, None, 2, 1, 0, 1, 2))
add("transposed", 81, "transposed2d_strided", lambda t, f, x, w: f.conv_transpose2d(x, w, None, 5, 1, 0, 1, 2))

for number, case in ((82, "square"), (83, "columns"), (84, "wide"), (85, "oblong")):
    add("depthwise", number, "depthwise", depthwise, case)
add("depthwise", 86, "depthwise_separable", separable)
add("depthwise", 87, "pointwise", lambda t, f, x, w: f.conv2d(x, w[:, :, None, None]))

# ---- prefixes, losses, attention -------------------------------------------------------------------------------


def exclusive(t, f, x):
    return t.cat((t.zeros_like(x[:, :1]), t.cumsum(x[:, :-1], 1)), 1)


add("prefixes", 89, "cumsum", lambda t, f, x: t.cumsum(x, 1), sliced=(0,))
add("prefixes", 90, "cumprod", lambda t, f, x: t.cumprod(x, 1), sliced=(0,))
add("prefixes", 91, "cumsum_reverse", lambda t, f, x: t.cumsum(x.flip(1), 1).flip(1), sliced=(0,))
add("prefixes", 92, "cumsum_exclusive", exclusive, sliced=(0,))
add("prefixes", 93, "cumsum_masked", lambda t, f, x, mask: t.cumsum(x * mask, 1), sliced=(0, 1))


def softmaxes(torch, inputs):
    """Distributions."""
    return [x.softmax(1) for x in inputs]


def signs(torch, inputs):
    """Targets of -1 and 1."""
    return [inputs[0], (inputs[1] > 0.5).float() * 2 - 1]


add("losses", 94, "mse", lambda t, f, x, y: t.mean((x - y) ** 2))
add("losses", 95, "cross_entropy", lambda t, f, x, label: f.cross_entropy(x, label))
add("losses", 96, "huber", lambda t, f, x, y: f.smooth_l1_loss(x, y))
add("losses", 98, "kl_divergence", lambda t, f, x, y: f.kl_div(t.log(x), y, reduction="batchmean"), prepare=softmaxes)
add("losses", 99, "triplet_margin", lambda t, f, a, p, n: f.triplet_margin_loss(a, p, n, 1.0))
add("losses", 100, "hinge", lambda t, f, x, y: t.mean(t.clamp(1 - x * y, min=0)), prepare=signs)
add("attention", 97, "attention", lambda t, f, q, k, v: f.scaled_dot_product_attention(q, k, v), sliced=(0, 1, 2))
