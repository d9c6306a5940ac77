"""Operations with drawn axes, layouts and extents, for tests/pytorch.py --random: what nobody thought of asking.

Operation k of a seed is always the same one, so that a single one can be asked for again, and other processes can make it
anew. Each is a spec with its dimensions, and PyTorch's way to compute it.
"""

import random

FAMILIES = ["convolution", "transposed", "norm", "softmax", "prefix", "pooling", "loss", "reduction", "map"]
EXTENTS = [1, 2, 3, 5, 7, 8, 16, 17, 31, 32, 33, 64, 65, 96, 100, 127, 128, 255, 256, 257, 384, 500, 768, 1000, 1023, 1024]
BUDGETS = [1 << 14, 1 << 18, 1 << 21, 1 << 23]
AXES = "abcdefgh"
NAMES = "ijklmnop"


class Drawn:
    """One operation. Inputs come in the order of params; dims has the values of what they name."""

    def __init__(self, number, family):
        self.number, self.family, self.name = number, family, f"{family}_{number}"
        self.group = "random"
        self.dims, self.params, self.derived, self.equations = {}, [], {}, []
        self.type, self.compare, self.tolerance, self.generic = "f32", "close", None, False
        self.call = None

    def text(self):
        lines = [f"kernel: {self.name}"]
        if self.derived:
            lines += ["dims:"] + [f"  {k}: {v}" for k, v in self.derived.items()]
        lines += ["params:"] + [f"  {p}" for p in self.params] + ["compute: |"] + [f"  {e}" for e in self.equations]
        return "\n".join(lines) + "\n"

    def shape(self):
        return ",".join(f"{k}={v}" for k, v in self.dims.items()) + (",open" if self.generic else "")


def draw_extents(r, n, budget):
    """n extents whose product is within the budget, the one that fills it at a drawn place."""
    out, left = [1] * n, budget
    for k in r.sample(range(n), n):
        fitting = [e for e in EXTENTS if e <= left]
        # most are long, some are as they come
        out[k] = r.choice(fitting[-8:] if r.random() < 0.6 else fitting)
        left //= out[k]
    return out


def tensor(op, r, least=1, most=4, budget=None):
    """Axes a, b, ... with extents; returns their names and indices."""
    n = r.randint(least, most)
    axes = AXES[:n]
    op.dims = dict(zip(axes, draw_extents(r, n, budget or r.choice(BUDGETS))))
    return list(axes), list(NAMES[:n])


def some_axes(r, n, most=None):
    """At least one of n axes; a middle one as likely as the last."""
    return sorted(r.sample(range(n), r.randint(1, min(n, most or n))))


def joined(words):
    return ",".join(words)


def reads(index, axes, renamed):
    """The subscripts with those axes renamed to indices of a reduction."""
    return joined(renamed.get(k, i) for k, i in enumerate(index))


# ---- families ----------------------------------------------------------------------------------------------------


def window(r, small=False):
    """Of one dimension: kernel, stride, padding, dilation."""
    kernel = r.choice([1, 2, 3, 3, 3, 5] if small else [1, 2, 3, 3, 3, 4, 5, 7])
    dilation = r.choice([1, 1, 1, 2, 3])
    return kernel, r.choice([1, 1, 1, 2, 3]), r.randint(0, (kernel - 1) * dilation // 2 + 1), dilation


def linear(factor, name, plus):
    text = f"{factor} * {name}" if factor != 1 else name
    return text if plus == 0 else f"{text} + {plus}" if plus > 0 else f"{text} - {-plus}"


def at(index, tap, k, s, p, t):
    return linear(s, index, 0) + " + " + linear(t, tap, 0) + (f" - {p}" if p else "")


def windowed(op, r, spatial):
    """Extents and the expressions of a result's, by drawn windows."""
    wins = [window(r, spatial > 1) for _ in range(spatial)]
    names = "hwd"[:spatial] if spatial < 3 else "dhw"
    for name, (k, s, p, t) in zip(names, wins):
        least = (k - 1) * t + 1
        op.dims[name] = least + r.choice([0, 1, 4, 9, 12, 23, 50] + ([200, 1000] if spatial == 1 else []))
        e = 2 * p - t * (k - 1) - 1
        op.derived["o" + name] = f"({linear(1, name, e)}) / {s} + 1" if s > 1 else linear(1, name, e + 1)
    return names, wins


def convolution(op, r):
    spatial = r.choice([1, 2, 2, 2, 3])
    names, wins = windowed(op, r, spatial)
    groups, depthwise = r.choice([1, 1, 1, 2, 4, 32]), r.random() < 0.2
    last, bias, relu = r.random() < 0.5, r.random() < 0.3, r.random() < 0.3
    c, f = r.choice([1, 3, 4, 8, 16, 24, 32, 64]), r.choice([1, 4, 7, 16, 32, 48, 64, 96])
    op.dims.update(n=r.choice([1, 2, 3, 8, 16]), c=c, **({} if depthwise else {"f": f}))
    op.type = r.choice(["f16", "f16", "bf16", "f32"])
    idx, taps = "ijk"[:spatial], "uvt"[:spatial]
    where = [at(i, u, *w) for i, u, w in zip(idx, taps, wins)]
    kernel = [str(w[0]) for w in wins]
    group = [] if groups == 1 or depthwise else [str(groups)]
    order = (lambda head, places, channel: head + places + channel) if last else (lambda head, places, channel: head + channel + places)
    place = ["o" + e for e in names]
    channel = group + ["c"]
    op.params = [f"x: in {op.type}[{joined(order(['n'], list(names), channel))}]"]
    g = ["g"] if group else []
    read = joined(order(["b"], where, g + ["q"]))
    read = f"pad(x[{read}], 0)" if any(w[2] for w in wins) else f"x[{read}]"
    around = (lambda e: f"tf32({e})") if op.type == "f32" else (lambda e: e)
    if depthwise:
        op.params.append(f"weight: in {op.type}[c, {joined(kernel)}]")
        total = f"sum[{joined(taps)}]({around(read)} * {around(f'weight[q,{joined(taps)}]')})"
        out, left = order(["n"], place, ["c"]), order(["b"], list(idx), ["q"])
    else:
        op.params.append(f"weight: in {op.type}[{joined(group + order(['f'], kernel, ['c']))}]")
        weight = joined(g + order(["o"], list(taps), ["q"]))
        total = f"sum[q,{joined(taps)}]({around(read)} * {around(f'weight[{weight}]')})"
        out, left = order(["n"], place, group + ["f"]), order(["b"], list(idx), g + ["o"])
    filters = joined(group + ["c" if depthwise else "f"])
    if bias:
        op.params.append(f"bias: in {op.type}[{filters}]")
        total += f" + bias[{'q' if depthwise else joined(g + ['o'])}]"
    op.params.append(f"y: out {op.type}[{joined(out)}]")
    op.equations = [f"y[{joined(left)}] = " + (f"relu({total})" if relu else total)]
    op.tolerance = 1e-2 if op.type == "f32" else None
    k, s, p, t = zip(*wins)

    def call(torch, x, consts):
        image, weight = x[0], x[1]
        if last:
            image = image.movedim(tuple(range(-len(channel), 0)), tuple(range(1, 1 + len(channel))))
            if not depthwise:
                weight = weight.movedim(-1, len(group) + 1)
        image = image.flatten(1, len(channel)) if group else image
        weight = weight.unsqueeze(1) if depthwise else weight.flatten(0, 1) if group else weight
        y = getattr(torch.nn.functional, f"conv{spatial}d")(
            image, weight, x[2].flatten() if bias else None, s, p, t, image.shape[1] if depthwise else groups if group else 1)
        y = torch.relu(y) if relu else y
        y = y.unflatten(1, (groups, -1)) if group else y
        return (y.movedim(tuple(range(1, 1 + len(channel))), tuple(range(-len(channel), 0))) if last else y,)

    op.call = call


def transposed(op, r):
    spatial = r.choice([1, 2, 2, 3])
    names = "dhw"[3 - spatial:]
    wins = []
    for name in names:
        k, s, _, t = window(r, True)
        extra = r.randint(0, s - 1)
        p = r.randint(0, (k - 1) * t // 2)
        wins.append((k, s, p, t, extra))
        op.dims[name] = r.choice([3, 4, 7, 16, 30])
        e = t * (k - 1) + extra + 1 - 2 * p - s
        op.derived["o" + name] = linear(s, name, e)
    op.dims.update(n=r.choice([1, 2, 4]), c=r.choice([1, 3, 8, 16, 32]), f=r.choice([1, 5, 16, 32]))
    op.type = r.choice(["f16", "f32"])
    idx, taps = "ijk"[:spatial], "uvt"[:spatial]
    inner = [linear(1, i, p) + " - " + linear(t, u, 0) for i, u, (_, _, p, t, _) in zip(idx, taps, wins)]
    where = [e if w[1] == 1 else f"({e}) / {w[1]}" for e, w in zip(inner, wins)]
    whole = " && ".join(f"({e}) % {w[1]} == 0" for e, w in zip(inner, wins) if w[1] > 1)
    read = f"pad(x[b,q,{joined(where)}], 0)"
    read = f"({whole} ? {read} : 0)" if whole else read
    around = (lambda e: f"tf32({e})") if op.type == "f32" else (lambda e: e)
    op.params = [f"x: in {op.type}[n, c, {joined(names)}]", f"weight: in {op.type}[c, f, {joined(str(w[0]) for w in wins)}]",
                 f"y: out {op.type}[n, f, {joined('o' + e for e in names)}]"]
    op.equations = [f"y[b,o,{joined(idx)}] = sum[q,{joined(taps)}]({around(read)} * {around(f'weight[q,o,{joined(taps)}]')})"]
    op.tolerance = 1e-2 if op.type == "f32" else None
    k, s, p, t, extra = zip(*wins)
    # PyTorch wants less beyond than a stride or a dilation
    op.call = lambda torch, x, consts: (getattr(torch.nn.functional, f"conv_transpose{spatial}d")(
        x[0], x[1], None, s, p, extra, 1, t),)


def norm(op, r):
    axes, idx = tensor(op, r, 2)
    over = some_axes(r, len(axes))
    rest = [k for k in range(len(axes)) if k not in over]
    op.type = r.choice(["f16", "f32", "f32"])
    named = {k: "qrst"[n] for n, k in enumerate(over)}
    bound, read, kept = joined(named[k] for k in over), reads(idx, axes, named), joined(idx[k] for k in rest)
    full = joined(idx)
    op.params = [f"x: in {op.type}[{joined(axes)}]", f"y: out {op.type}[{joined(axes)}]"]
    m, v = (f"m[{kept}]", f"v[{kept}]") if rest else ("m", "v")
    kind = r.choice(["moments", "rms", "l1"])
    if kind == "moments":
        op.equations = [f"{m} = mean[{bound}](x[{read}])", f"{v} = var[{bound}](x[{read}])",
                        f"y[{full}] = (x[{full}] - {m}) * rsqrt({v} + 1e-5)"]
    elif kind == "rms":
        op.equations = [f"y[{full}] = x[{full}] * rsqrt(mean[{bound}](x[{read}] * x[{read}]) + 1e-5)"]
    else:
        op.equations = [f"y[{full}] = x[{full}] / (mean[{bound}](abs(x[{read}])) + 1e-3)"]

    def call(torch, x, consts):
        wide = x[0] if x[0].dtype == torch.float64 else x[0].float()
        if kind == "moments":
            y = (wide - wide.mean(over, keepdim=True)) * torch.rsqrt(wide.var(over, unbiased=False, keepdim=True) + 1e-5)
        elif kind == "rms":
            y = wide * torch.rsqrt((wide * wide).mean(over, keepdim=True) + 1e-5)
        else:
            y = wide / (wide.abs().mean(over, keepdim=True) + 1e-3)
        return (y.to(x[0].dtype),)

    op.call, op.tolerance = call, 1e-4 if op.type == "f32" else None


def softmax(op, r):
    axes, idx = tensor(op, r, 1)
    k = r.randrange(len(axes))
    op.type = r.choice(["f16", "bf16", "f32"])
    what = r.choice(["softmax", "log_softmax"])
    op.params = [f"x: in {op.type}[{joined(axes)}]", f"y: out {op.type}[{joined(axes)}]"]
    op.equations = [f"y[{joined(idx)}] = {what}[{idx[k]}](x[{joined(idx)}])"]
    op.call = lambda torch, x, consts: (getattr(torch.nn.functional, what)(x[0], k),)


def prefix(op, r):
    axes, idx = tensor(op, r, 1, 3)
    k = r.randrange(len(axes))
    what = r.choice(["sum", "sum", "max", "min"])
    way = r.choice(["plain", "plain", "reversed", "exclusive"]) if what == "sum" else "plain"
    high = {"plain": f"0..{idx[k]}+1", "reversed": f"{idx[k]}..{axes[k]}", "exclusive": f"0..{idx[k]}"}[way]
    op.params = [f"x: in f32[{joined(axes)}]", f"y: out f32[{joined(axes)}]"]
    op.equations = [f"y[{joined(idx)}] = {what}[q in {high}](x[{reads(idx, axes, {k: 'q'})}])"]

    def call(torch, x, consts):
        if what != "sum":
            return (getattr(torch, "cum" + what)(x[0], k).values,)
        if way == "reversed":
            return (x[0].flip(k).cumsum(k).flip(k),)
        y = x[0].cumsum(k)
        return (y if way == "plain" else y - x[0],)

    op.call, op.tolerance = call, 1e-3


def pooling(op, r):
    spatial = r.choice([1, 2, 2, 3])
    names, wins = windowed(op, r, spatial)
    most = r.random() < 0.5
    wins = [(k, s, min(p, k // 2), t if most else 1) for k, s, p, t in wins]
    for name, (k, s, p, t) in zip(names, wins):
        e = 2 * p - t * (k - 1) - 1
        op.derived["o" + name] = f"({linear(1, name, e)}) / {s} + 1" if s > 1 else linear(1, name, e + 1)
    op.dims.update(n=r.choice([1, 2, 4]), c=r.choice([1, 3, 16, 64]))
    op.type = r.choice(["f16", "f32"])
    idx, taps = "ijk"[:spatial], "uvt"[:spatial]
    read = f"x[b,q,{joined(at(i, u, *w) for i, u, w in zip(idx, taps, wins))}]"
    read = f"pad({read}, {'-inf' if most else '0'})" if any(w[2] for w in wins) else read
    op.params = [f"x: in {op.type}[n, c, {joined(names)}]", f"y: out {op.type}[n, c, {joined('o' + e for e in names)}]"]
    bound = joined(f"{u} < {w[0]}" for u, w in zip(taps, wins))
    op.equations = [f"y[b,q,{joined(idx)}] = {'max' if most else 'mean'}[{bound}]({read})"]
    k, s, p, t = zip(*wins)

    def call(torch, x, consts):
        f = torch.nn.functional
        if most:
            return (getattr(f, f"max_pool{spatial}d")(x[0], k, s, p, t),)
        return (getattr(f, f"avg_pool{spatial}d")(x[0], k, s, p),)

    op.call = call


def loss(op, r):
    axes, idx = tensor(op, r, 1, 3)
    full = joined(idx)
    kind = r.choice(["mse", "smooth_l1", "hinge"])
    op.params = [f"left: in f32[{joined(axes)}]", f"right: in f32[{joined(axes)}]", "y: out f32[]"]
    term = {"mse": f"(left[{full}] - right[{full}]) * (left[{full}] - right[{full}])",
            "smooth_l1": f"abs(left[{full}] - right[{full}]) < 1 ? 0.5 * (left[{full}] - right[{full}]) * (left[{full}] - right[{full}]) "
                         f": abs(left[{full}] - right[{full}]) - 0.5",
            "hinge": f"max(1 - left[{full}] * right[{full}], 0)"}[kind]
    op.equations = [f"y = mean[{full}]({term})"]

    def call(torch, x, consts):
        if kind == "hinge":
            return ((1 - x[0] * x[1]).clamp(min=0).mean(),)
        return (getattr(torch.nn.functional, kind + "_loss")(x[0], x[1]),)

    op.call, op.tolerance = call, 1e-4


def reduction(op, r):
    axes, idx = tensor(op, r, 1)
    kind = r.choice(["sum", "mean", "max", "min", "argmax", "norm2"])
    over = [r.randrange(len(axes))] if kind == "argmax" else some_axes(r, len(axes))
    rest = [k for k in range(len(axes)) if k not in over]
    op.type = "f32" if kind == "norm2" else r.choice(["f16", "f32", "f32"])
    out = "i64" if kind == "argmax" else "f32"
    named = {k: "qrst"[n] for n, k in enumerate(over)}
    left = f"y[{joined(idx[k] for k in rest)}]" if rest else "y"
    op.params = [f"x: in {op.type}[{joined(axes)}]", f"y: out {out}[{joined(axes[k] for k in rest)}]"]
    op.equations = [f"{left} = {kind}[{joined(named[k] for k in over)}](x[{reads(idx, axes, named)}])"]
    op.compare = ("index", over[0]) if kind == "argmax" else "close"

    def call(torch, x, consts):
        wide = x[0] if x[0].dtype == torch.float64 else x[0].float()
        if kind == "argmax":
            return (x[0].argmax(over[0]),)
        if kind == "norm2":
            return (torch.linalg.vector_norm(wide, dim=over),)
        return (getattr(torch, {"max": "amax", "min": "amin"}.get(kind, kind))(wide, over),)

    op.call, op.tolerance = call, 1e-3 if kind in ("sum", "mean") else 1e-4


def elementwise(op, r):
    axes, idx = tensor(op, r, 1)
    some = some_axes(r, len(axes))
    op.type = r.choice(["f16", "bf16", "f32"])
    kind = r.choice(["gelu", "silu", "softplus", "tanh"])
    op.params = [f"x: in {op.type}[{joined(axes)}]", f"g: in {op.type}[{joined(axes[k] for k in some)}]",
                 f"y: out {op.type}[{joined(axes)}]"]
    op.equations = [f"y[{joined(idx)}] = {kind}(x[{joined(idx)}]) * g[{joined(idx[k] for k in some)}]"]

    def call(torch, x, consts):
        f = torch.tanh if kind == "tanh" else getattr(torch.nn.functional, kind)
        gain = x[1].reshape([x[0].shape[k] if k in some else 1 for k in range(x[0].dim())])
        return (f(x[0]) * gain,)

    op.call, op.tolerance = call, 1e-2 if op.type == "f16" else 5e-2 if op.type == "bf16" else 1e-4


MAKE = {"convolution": convolution, "transposed": transposed, "norm": norm, "softmax": softmax, "prefix": prefix,
        "pooling": pooling, "loss": loss, "reduction": reduction, "map": elementwise}


def draw(seed, number, families=()):
    """Operation `number` of a seed."""
    r = random.Random(f"{seed}/{number}")
    op = Drawn(number, r.choice(list(families) or FAMILIES))
    while op.call is None:
        MAKE[op.family](op, r)
    op.generic = r.random() < 0.5
    op.seed, op.families = seed, tuple(families)
    return op
