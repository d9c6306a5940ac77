#!/usr/bin/env python3
"""Compares kaio's kernels with PyTorch's, eager and compiled, and with a copy, on one GPU in one process.

    tests/pytorch.py [--group rows,maps,reductions,small] [--op NAME,...] [--type f16,f32] [--cols N,...]
                     [--random N [--seed S] [--family NAME,...]]
                     [--quick] [--places N] [--csv FILE] [--limit SECONDS] [--list] [--self-test]

Each row is an operation at a type and a shape. kaio's side is what  kaio-bench --dry-run --format=json --keep  says: PTX,
loaded through the driver into PyTorch's own context and launched on PyTorch's stream over PyTorch's tensors. All
contenders are captured into CUDA graphs, checked against PyTorch in float64, and replayed in interleaved rounds, each
in an order of its own, drawn, but the same in every run: what is as regular as there and back may keep step with the
card's clock. The figures are worst, median and best of the rounds. Inputs rotate through sets that together
exceed the L2 cache twice, as far as SETS_MOST allow. PyTorch allocates its results anew; each set's are kept until it
is that set's turn again, so that they rotate like ours.

With --random operations are drawn instead: convolutions in both layouts and their transposes, norms and softmaxes over any
axes, prefixes, poolings, losses, reductions and maps, each with axes, types and extents of its own, of which half are left
open until the launch. Operation k of a seed is the same in every run.

The copy moves as many bytes as the kernel must: half of them read, half of them written.

Beside PyTorch's ratios stands between what they lie in this run: in each round a rival's time is divided by kaio's, and
of these ratios in order so many are cut off at both ends that what is left holds their median with 95 % (of 9: one at
either end). Where that is above 1 kaio is faster, below it is slower; else the two are equal within the noise of the
run. The last lines count these. Of equal rows one in 50 seems slower by chance, and one in 50 faster. Where code, results
and graphs lie in memory is worth up to 4 % of a short row's time, on either side: the rounds are shared out among --places,
at each of which all of these are made anew.

Compiling takes long: it is done first, by several processes, into the caches in --cache DIR, which --save-cache and
--load-cache pack into a file for another machine. Which of its configurations a compiled kernel uses is measured by
the main process again, when nothing else runs.

Exit status: 0; 1 a result is wrong; 2 usage; 77 there is no GPU or no PyTorch.
"""

import argparse
import csv
import ctypes
import json
import math
import multiprocessing
import os
import random
import subprocess
import sys
import tarfile
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed

import pytorch_random
from pytorch_contest import (BETWEEN, ORDERS, Contender, between, close, compiled, import_torch, measure, order, settings, shares)
from pytorch_driver import Driver, Kaio, LaunchAttribute, LaunchConfig, Launches, find_bench, pack, torch_type

HERE = os.path.dirname(os.path.abspath(__file__))
MIB = 1 << 20
COLS = [512, 1000, 1024, 4096, 5120, 8192, 32768, 65536]
SMALL = [(1, 1024), (1, 8192), (16, 1024), (16, 8192), (128, 768)]
SETS_MOST = 512

# ---- operations ------------------------------------------------------------------------------------------------
#
# An operation: the spec, its dimensions from (rows, cols), how its inputs are made, and PyTorch's way to compute it.
# `call` takes PyTorch, its inputs and a dictionary of constants; it returns a tuple in the order of the spec's outputs.
# `compare` says how results are judged: close, index (of the largest of a row), or quantised.


def dims_rows(rows, cols):
    return {"rows": rows, "cols": cols}


def dims_group(rows, cols):
    """Groups of 8 channels, 32 groups to an image: a row is a group."""
    channels = 8 if cols % 8 == 0 else 1
    groups = 32 if rows % 32 == 0 else 1
    return {"images": rows // groups, "groups": groups, "channels": channels, "pixels": cols // channels}


def dims_flat(rows, cols):
    return {"n": rows * cols}


def dims_tokens(rows, cols):
    return {"tokens": rows, "hidden": cols}


def f_softmax(t, x, c):
    return (t.nn.functional.softmax(x[0], -1),)


def f_log_softmax(t, x, c):
    return (t.nn.functional.log_softmax(x[0], -1),)


def f_logsumexp(t, x, c):
    return (t.logsumexp(x[0], -1),)


def f_layer_norm(t, x, c):
    return (t.nn.functional.layer_norm(x[0], (x[0].shape[-1],), x[1], x[2], 1e-5),)


def f_rms_norm(t, x, c):
    return (t.nn.functional.rms_norm(x[0], (x[0].shape[-1],), x[1], 1e-5),)


def f_group_norm(t, x, c):
    n, g, k, s = x[0].shape
    y = t.nn.functional.group_norm(x[0].view(n, g * k, s), g, x[1].view(-1), x[2].view(-1), 1e-5)
    return (y.view(n, g, k, s),)


def f_l2_normalize(t, x, c):
    return (t.nn.functional.normalize(x[0], dim=-1, eps=1e-12),)


def f_cross_entropy(t, x, c):
    return (t.nn.functional.cross_entropy(x[0], x[1], reduction="none"),)


def f_argmax(t, x, c):
    return (t.argmax(x[0], -1),)


def f_top1(t, x, c):
    value, where = t.max(x[0], -1)
    return (value, where)


def quantise(t, v, largest, to):
    wide = v if v.dtype == t.float64 else v.float()
    scale = wide.abs().amax(-1, keepdim=True) / largest
    q = wide / scale
    return (q.round().to(to) if to is t.int8 else q.to(to)), scale.squeeze(-1)


def f_quantize_rows(t, x, c):
    return quantise(t, x[0], 127, t.int8)


def f_quantize_rows_fp8(t, x, c):
    return quantise(t, x[0], 448, t.float8_e4m3fn)


def f_add_rms_norm_quant(t, x, c):
    # in float64, which is the reference, the sum is still rounded to the type it is stored in
    total = x[0] + x[1]
    if total.dtype == t.float64:
        total = total.to(c["stored"]).double()
    v = t.nn.functional.rms_norm(total, (total.shape[-1],), x[2], 1e-5)
    q, scale = quantise(t, v, 127, t.int8)
    return total, q, scale


def f_scale(t, x, c):
    return (x[0] * 0.7,)


def f_add(t, x, c):
    return (x[0] + x[1],)


def f_addcmul(t, x, c):
    return (t.addcmul(x[0], x[1], x[2], value=0.7),)


def f_mix4(t, x, c):
    return (0.4 * x[0] + 0.3 * x[1] + 0.2 * x[2] + 0.1 * x[3],)


def f_gelu(t, x, c):
    return (t.nn.functional.gelu(x[0]),)


def f_silu_gate(t, x, c):
    return (t.nn.functional.silu(x[0]) * x[1],)


def f_sum(t, x, c):
    return (x[0].sum(dtype=t.float64 if x[0].dtype == t.float64 else t.float32),)


def f_dot(t, x, c):
    return (t.dot(x[0], x[1]),)


def f_norm2(t, x, c):
    return (t.linalg.vector_norm(x[0], dtype=t.float64 if x[0].dtype == t.float64 else t.float32),)


def f_min_max(t, x, c):
    least, most = t.aminmax(x[0])
    return (least, most)


class Op:
    def __init__(self, group, spec, dims, call, compare="close", types=("f16", "f32")):
        self.group, self.spec, self.dims, self.call, self.compare, self.types = group, spec, dims, call, compare, types
        self.name = os.path.basename(spec)[: -len(".yaml")]


OPS = [
    Op("rows", "norm/softmax.yaml", dims_rows, f_softmax),
    Op("rows", "norm/log_softmax.yaml", dims_rows, f_log_softmax),
    Op("rows", "norm/logsumexp.yaml", dims_rows, f_logsumexp),
    Op("rows", "norm/layer_norm.yaml", dims_rows, f_layer_norm),
    Op("rows", "norm/rms_norm.yaml", dims_rows, f_rms_norm),
    Op("rows", "norm/group_norm.yaml", dims_group, f_group_norm),
    Op("rows", "norm/l2_normalize.yaml", dims_rows, f_l2_normalize),
    Op("rows", "loss/cross_entropy.yaml", dims_rows, f_cross_entropy),
    Op("rows", "reduce/argmax_rows.yaml", dims_rows, f_argmax, "index"),
    Op("rows", "reduce/top1.yaml", dims_rows, f_top1, "index"),
    Op("rows", "quant/quantize_rows.yaml", dims_rows, f_quantize_rows, "quantised"),
    Op("rows", "quant/quantize_rows_fp8.yaml", dims_rows, f_quantize_rows_fp8, "quantised"),
    Op("rows", "norm/add_rms_norm_quant.yaml", dims_rows, f_add_rms_norm_quant, "quantised"),
    Op("maps", "elementwise/scale.yaml", dims_flat, f_scale, types=("f16", "bf16", "f32")),
    Op("maps", "elementwise/add.yaml", dims_flat, f_add, types=("f16", "bf16", "f32")),
    Op("maps", "elementwise/addcmul.yaml", dims_flat, f_addcmul, types=("f16", "bf16", "f32")),
    Op("maps", "elementwise/mix4.yaml", dims_flat, f_mix4, types=("f16", "bf16", "f32")),
    Op("maps", "elementwise/gelu.yaml", dims_flat, f_gelu, types=("f16", "bf16", "f32")),
    Op("maps", "elementwise/silu_gate.yaml", dims_tokens, f_silu_gate, types=("f16", "bf16", "f32")),
    Op("reductions", "reduce/sum_all.yaml", dims_flat, f_sum, types=("f16", "bf16", "f32")),
    Op("reductions", "reduce/dot.yaml", dims_flat, f_dot, types=("f16", "bf16", "f32")),
    Op("reductions", "reduce/norm2.yaml", dims_flat, f_norm2, types=("f16", "bf16", "f32")),
    Op("reductions", "reduce/min_max.yaml", dims_flat, f_min_max, types=("f16", "bf16", "f32")),
]
SIZE = {"f16": 2, "bf16": 2, "f32": 4}


class Row:
    """One operation at one type and shape."""

    def __init__(self, op, group, type_, rows, cols):
        self.op, self.group, self.type, self.rows, self.cols = op, group, type_, rows, cols
        self.dims = op.dims(rows, cols)

    def shape(self):
        return f"{self.rows}x{self.cols}" if self.group in ("rows", "small") else str(self.rows * self.cols)

    def title(self):
        return f"{self.op.name} {self.type} {self.shape()}"


class RandomRow(Row):
    """An operation of pytorch_random.py."""

    def __init__(self, op):
        self.op, self.group, self.type, self.dims = op, "random", op.type, op.dims

    def shape(self):
        return self.op.shape()


def rows_wanted(args):
    """Every row that the options ask for, in the order of the table."""
    rows = []
    if args.random:
        return [RandomRow(pytorch_random.draw(args.seed, k, args.family)) for k in range(args.random)]
    for group in args.group:
        for op in OPS:
            if op.group != ("rows" if group == "small" else group) or (args.op and op.name not in args.op):
                continue
            for type_ in op.types:
                if args.type and type_ not in args.type:
                    continue
                if group == "small":
                    shapes = SMALL
                elif group == "rows":
                    cols = args.cols or ([1000, 4096, 65536] if args.quick else COLS)
                    shapes = [(max(args.mib * MIB // (n * SIZE[type_]), 1), n) for n in cols]
                    # groups of 32 to an image
                    shapes = [(r // 32 * 32 if op.dims is dims_group and r >= 32 else r, n) for r, n in shapes]
                else:
                    shapes = [(args.mib * MIB // 4096 // SIZE[type_], 4096)]
                rows += [Row(op, group, type_, r, n) for r, n in shapes]
    return rows


# ---- kaio's side -----------------------------------------------------------------------------------------------

def plan_command(args, row, keep):
    values = [f"{k}={v}" for k, v in row.dims.items()]
    if row.group == "random":
        os.makedirs(keep, exist_ok=True)
        spec = os.path.join(keep, row.op.name + ".yaml")
        with open(spec, "w") as f:
            f.write(row.op.text())
        return [args.bench, "--dry-run", "--format=json", "-t", args.target, f"--keep={keep}"] + (
            ["--generic"] if row.op.generic else []) + [spec] + values
    return [args.bench, "--dry-run", "--format=json", "-t", args.target, f"--keep={keep}",
            os.path.join(args.specs, row.op.spec), f"T={row.type}"] + values


def read_plan(text):
    """The plan of one problem, or an error."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) != 1:
        raise ValueError(f"expected one plan, not {len(lines)}")
    plan = json.loads(lines[0])
    for key in ("kernel", "params", "launches", "bytes", "ptx"):
        if key not in plan:
            raise ValueError(f"the plan has no '{key}'")
    return plan


def make_plans(args, rows, keep):
    """kaio-bench's plan for every row; a row for which there is none gets an error instead."""

    def one(item):
        number, row = item
        folder = os.path.join(keep, str(number))
        done = subprocess.run(plan_command(args, row, folder), capture_output=True, text=True)
        row.plan = row.error = None
        if done.returncode != 0:
            row.error = done.stderr.strip().splitlines()[0] if done.stderr.strip() else f"exit {done.returncode}"
            return
        row.plan = read_plan(done.stdout)

    with ThreadPoolExecutor(max(args.jobs, 1)) as pool:
        list(pool.map(one, enumerate(rows)))


# ---- tensors ---------------------------------------------------------------------------------------------------


def make_input(torch, param, generator):
    shape, type_ = param["shape"], torch_type(torch, param["type"])
    if "below" in param:
        return torch.randint(0, param["below"], shape, device="cuda", dtype=type_, generator=generator)
    if not type_.is_floating_point:
        return torch.randint(-100, 100, shape, device="cuda", dtype=type_, generator=generator)
    return torch.randn(shape, device="cuda", dtype=torch.float32, generator=generator).to(type_)


def make_inputs(torch, params, seed):
    generator = torch.Generator(device="cuda")
    generator.manual_seed(seed)
    return [make_input(torch, p, generator) for p in params if p["mode"] != "out"]


def for_torch(torch, row, inputs):
    """The inputs as PyTorch's functions want them: labels are 64 bits wide."""
    return [x.long() if row.op.call is f_cross_entropy and not x.dtype.is_floating_point else x for x in inputs]


def params_of(row):
    """The inputs' shapes without kaio: what the compiling processes need."""
    return [p for p in row.plan["params"] if p["mode"] != "out"]


# ---- judging ---------------------------------------------------------------------------------------------------

TOLERANCE = {"f16": 2e-3, "bf16": 1.6e-2, "f32": 2e-5}


def sample_rows(torch, row, inputs):
    """Of many rows the first, the last and some between, as (inputs, which)."""
    n = inputs[0].shape[0] if inputs[0].dim() else 1
    if row.group in ("maps", "reductions", "random") or n <= 128:
        return inputs, None
    which = torch.cat([torch.arange(32), torch.randint(32, n - 32, (64,)), torch.arange(n - 32, n)]).to("cuda")
    return [x[which] if x.shape[:1] == inputs[0].shape[:1] and x.dim() and not is_weight(row, k) else x
            for k, x in enumerate(inputs)], which


def is_weight(row, k):
    """Gains and biases belong to columns, not to rows."""
    return {"layer_norm": k in (1, 2), "rms_norm": k == 1, "group_norm": k in (1, 2),
            "add_rms_norm_quant": k == 2}.get(row.op.name, False)


def judge(torch, row, inputs, got, which):
    """Compares results with PyTorch in float64; None, or what is wrong."""
    wide = [x.double() if x.dtype.is_floating_point else x for x in for_torch(torch, row, inputs)]
    want = row.op.call(torch, wide, {"stored": torch_type(torch, row.type)})
    got = [y[which] if which is not None and y.dim() else y for y in got]
    for k, (y, ref) in enumerate(zip(got, want)):
        y = y.reshape(ref.shape)
        if isinstance(row.op.compare, tuple):
            k_axis = row.op.compare[1]
            chosen = inputs[0].gather(k_axis, y.long().unsqueeze(k_axis)).squeeze(k_axis)
            wrong = None if bool((chosen == inputs[0].amax(k_axis)).all()) else "an index is not of the largest element"
        elif row.op.compare == "index" and not ref.dtype.is_floating_point:
            # any of equal elements will do
            chosen = inputs[0].gather(-1, y.long().unsqueeze(-1)).squeeze(-1)
            wrong = None if bool((chosen == inputs[0].amax(-1)).all()) else "an index is not of the largest element"
        elif ref.dtype == torch.int8:
            off = (y.int() - ref.int()).abs()
            wrong = None
            if int(off.max()) > 1 or float((off > 0).float().mean()) > 0.01:
                wrong = f"off by up to {int(off.max())}, {float((off > 0).float().mean()):.2%} of all"
        elif ref.dtype == torch.float8_e4m3fn:
            wrong = close(torch, y.float(), ref.float(), 0.13)
        else:
            tolerance = max(TOLERANCE[row.type], 2e-3 if row.group == "reductions" else 0, getattr(row.op, "tolerance", 0) or 0)
            wrong = close(torch, y, ref, tolerance)
        if wrong:
            return f"result {k + 1}: {wrong}"
    return None


# ---- a row -----------------------------------------------------------------------------------------------------


def sets_wanted(footprint, l2):
    return max(1, min(SETS_MOST, 2 * l2 // max(footprint, 1) + 1))


def footprint_of(plan):
    return sum(p["bytes"] for p in plan["params"])


def compiled_call(torch, row):
    function = row.op.call
    return compiled(torch, lambda *x: function(torch, x, {}))


def run_row(torch, driver, row, args, l2):
    """Measures a row: contenders, with samples or a reason why not."""
    plan = row.plan
    sets = sets_wanted(footprint_of(plan), l2)
    inputs = [make_inputs(torch, plan["params"], 1000 + k if sets <= 4 else 1000) for k in range(sets)]
    theirs = [for_torch(torch, row, data) for data in inputs]
    ours = Kaio(torch, driver, row, inputs)
    made = [ours]
    # the driver's copy takes a quarter longer of bytes that are no multiple of 8 KiB
    page = 65536 if plan["bytes"] > 64 * MIB else 16
    half = (plan["bytes"] // 2 + page - 1) // page * page
    source = [torch.randint(0, 256, (half,), dtype=torch.uint8, device="cuda") for _ in range(sets)]
    target = [torch.empty_like(x) for x in source]
    contenders = [Contender("kaio", lambda k: ours.enqueue(torch, k)),
                  Contender("copy", lambda k: target[k].copy_(source[k])),
                  Contender("eager", lambda k: row.op.call(torch, theirs[k], {}))]
    if not args.no_compile:
        try:
            fast = compiled_call(torch, row)
            fast(*theirs[0])
            contenders.append(Contender("compiled", lambda k: fast(*theirs[k])))
        except Exception as e:  # what a compiler may raise is not known
            row.note = f"torch.compile: {type(e).__name__}: {str(e).splitlines()[0][:80] if str(e) else ''}"
    ours.enqueue(torch, 0)
    torch.cuda.synchronize()
    picked, which = sample_rows(torch, row, inputs[0])
    row.error = judge(torch, row, picked, ours.outputs[0], which)
    if row.error is None:
        for c in contenders[2:]:
            results = row.op.call(torch, theirs[0], {}) if c.name == "eager" else fast(*theirs[0])
            wrong = judge(torch, row, picked, results, which)
            if wrong:
                row.note = f"PyTorch's own ({c.name}): {wrong}"
            del results
        draw = random.Random(ORDERS)
        held = []  # so that what is made anew lies elsewhere
        for runs in shares(args.runs, args.places):
            if contenders[0].samples:
                held += [c.graph for c in contenders]
                ours = Kaio(torch, driver, row, inputs)
                made.append(ours)
            measure(torch, contenders, sets, args, draw, 1 if held else args.warm, runs)
        picked, which = sample_rows(torch, row, inputs[sets - 1])
        row.error = judge(torch, row, picked, ours.outputs[sets - 1], which)
    row.sets = sets
    torch.cuda.synchronize()
    for kaio in made:
        kaio.unload()
    return contenders


# ---- compiling ahead -------------------------------------------------------------------------------------------


def name_of(op):
    """What another process finds an operation by."""
    return OPS.index(op) if isinstance(op, Op) else (op.seed, op.number, op.families)


def op_of(which):
    return OPS[which] if isinstance(which, int) else pytorch_random.draw(*which)


def compile_one(item):
    """In a process of its own: leaves the compiled kernels in the caches."""
    title, which, type_, plan = item
    try:
        import torch
        settings(torch)
        row = Row.__new__(Row)
        row.op, row.type, row.plan = op_of(which), type_, plan
        inputs = for_torch(torch, row, make_inputs(torch, plan["params"], 1))
        compiled_call(torch, row)(*inputs)
        torch.cuda.synchronize()
        del inputs
        torch.cuda.empty_cache()
        return None
    except Exception as e:
        return f"{title}: {type(e).__name__}: {str(e)[:200]}"


def compile_all(rows, args):
    items = [(row.title(), name_of(row.op), row.type, row.plan) for row in rows if row.plan]
    with ProcessPoolExecutor(args.jobs, multiprocessing.get_context("spawn")) as pool:
        waiting = [pool.submit(compile_one, item) for item in items]
        for future in as_completed(waiting):
            error = future.exception()
            wrong = f"{type(error).__name__}: {error}" if error else future.result()
            if wrong:
                print("compiling", wrong, file=sys.stderr)


# ---- the table -------------------------------------------------------------------------------------------------

HEAD = ["operation", "type", "shape", "sets", "us worst", "median", "best", "TB/s", "copy us", "eager us", "compiled us",
        "/ copy worst", "/ copy", "/ eager worst", "/ eager", "/ eager between", "/ compiled worst", "/ compiled",
        "/ compiled between", "remark"]
WIDTH = [18, 5, 14, 4, 9, 9, 9, 7, 9, 9, 11, 12, 7, 13, 8, 16, 16, 10, 18, 0]


def verdict(text):
    """Of the text of a cell."""
    low, high = (float(end) for end in text.split(BETWEEN))
    return "faster" if low > 1 else "slower" if high < 1 else "equal"


def figures(row, contenders):
    """The cells of a row; ratios are the rival's time over kaio's: above 1 kaio is faster."""
    by = {c.name: c.stats() for c in contenders if c.samples}
    cells = [row.op.name, row.type, row.shape(), str(getattr(row, "sets", ""))]
    if row.error or "kaio" not in by:
        return cells + [""] * 15 + [f"WRONG: {row.error}" if row.error else "no time"]
    worst, median, best = by["kaio"]
    cells += [f"{v * 1e6:.2f}" for v in (worst, median, best)] + [f"{row.plan['bytes'] / median * 1e-12:.3f}"]
    cells += [f"{by[name][1] * 1e6:.2f}" if name in by else "" for name in ("copy", "eager", "compiled")]
    rounds = {c.name: c.samples for c in contenders}
    for name in ("copy", "eager", "compiled"):
        cells += [f"{by[name][0] / worst:.3f}", f"{by[name][1] / median:.3f}"] if name in by else ["", ""]
        if name != "copy":
            ends = between([b / a for a, b in zip(rounds["kaio"], rounds[name])]) if name in by else ()
            cells.append(BETWEEN.join(f"{end:.4f}" for end in ends))
    return cells + [getattr(row, "note", "")]


def print_cells(cells):
    line = "  ".join(c.ljust(w) if i < 3 else c.rjust(w) for i, (c, w) in enumerate(zip(cells, WIDTH)))
    print(line.rstrip(), flush=True)


def shortcomings(all_cells, wanted_of_copy):
    """Lines of what falls short: under the fraction of copy, or slower than PyTorch."""
    out = []
    for cells in all_cells:
        name = " ".join(cells[:3])
        if cells[-1].startswith(("WRONG", "no code")):
            out.append(f"{name}: {cells[-1]}")
            continue
        value = dict(zip(HEAD, cells))
        small = value["shape"] in {f"{r}x{n}" for r, n in SMALL}
        words = []
        if value["/ copy"] and not small and float(value["/ copy"]) < wanted_of_copy(value["operation"]):
            words.append(f"{value['/ copy']} of copy")
        for rival in ("eager", "compiled"):
            if value[f"/ {rival}"] and float(value[f"/ {rival}"]) < 1:
                noise = " within noise" if verdict(value[f"/ {rival} between"]) == "equal" else ""
                words.append(f"{value[f'/ {rival}']} of {rival}{noise}")
        if words:
            out.append(f"{name}: {', '.join(words)}")
    return out


def counts(all_cells, rival):
    """How many rows are faster than the rival's, equal, and slower; as text."""
    texts = [dict(zip(HEAD, cells))[f"/ {rival} between"] for cells in all_cells]
    verdicts = [verdict(text) for text in texts if text]
    faster, equal, slower = (verdicts.count(word) for word in ("faster", "equal", "slower"))
    return f"beside {rival}: {faster} rows faster, {equal} equal within noise, {slower} slower"


def wanted_of_copy(name):
    if name not in {op.name for op in OPS}:
        return 0  # drawn ones may be bound by what they compute
    group = next((op.group for op in OPS if op.name == name), "rows")
    return 0.90 if group == "rows" else 0.95


# ---- main ------------------------------------------------------------------------------------------------------


def read_options(argv):
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    words = lambda s: [w for w in s.split(",") if w]
    p.add_argument("--group", type=words, default=["rows", "maps", "reductions", "small"])
    p.add_argument("--op", type=words, default=[], help="only these operations")
    p.add_argument("--type", type=words, default=[], help="only these types")
    p.add_argument("--cols", type=lambda s: [int(w) for w in words(s)], default=[])
    p.add_argument("--random", type=int, default=0, metavar="N", help="instead of all this N operations with drawn axes")
    p.add_argument("--seed", type=int, default=1, help="of the drawn operations (1)")
    p.add_argument("--family", type=words, default=[], help="of them only these: " + ",".join(pytorch_random.FAMILIES))
    p.add_argument("--mib", type=int, default=256, help="MiB of the first input (256)")
    p.add_argument("--quick", action="store_true", help="fewer column counts and rounds")
    p.add_argument("--runs", type=int, default=0, help="rounds (9; with --quick 5)")
    p.add_argument("--places", type=int, default=3, help="where these are taken from (3)")
    p.add_argument("--warm", type=int, default=3, help="rounds before them")
    p.add_argument("--round-ms", type=float, default=8, help="milliseconds of each in a round")
    p.add_argument("--limit", type=float, default=1e9, help="begin no row after so many seconds")
    p.add_argument("--part", default="1/1", help="K/N: of all rows every N-th, from the K-th on")
    p.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    p.add_argument("--jobs", type=int, default=min(12, os.cpu_count() or 1), help="processes that compile")
    p.add_argument("--cache", default="/tmp/kaio-torch-cache", help="folder of the compiler's caches")
    p.add_argument("--load-cache", help="unpack this archive into it first")
    p.add_argument("--save-cache", help="pack it into this archive in the end")
    p.add_argument("--csv", help="write the table to this file too")
    p.add_argument("--bench", default="", help="kaio-bench (found beside the tests, or on PATH)")
    p.add_argument("--specs", default=os.path.join(HERE, "..", "specs"))
    p.add_argument("-t", "--target", default="sm_90")
    p.add_argument("--list", action="store_true", help="print the rows and exit")
    p.add_argument("--self-test", action="store_true", help="test what needs neither a GPU nor PyTorch")
    args = p.parse_args(argv)
    args.runs = args.runs or (5 if args.quick else 9)
    for group in args.group:
        if group not in ("rows", "maps", "reductions", "small"):
            p.error(f"unknown group '{group}'")
    for name in args.family:
        if name not in pytorch_random.FAMILIES:
            p.error(f"unknown family '{name}'; there are {', '.join(pytorch_random.FAMILIES)}")
    if args.random < 0 or (args.random and (args.op or args.type or args.cols)):
        p.error("--random goes with none of --op, --type and --cols; its operations are drawn")
    for name in args.op:
        if name not in {op.name for op in OPS}:
            p.error(f"unknown operation '{name}'; there are {', '.join(op.name for op in OPS)}")
    args.bench = args.bench or find_bench()
    k, _, n = args.part.partition("/")
    args.part = (int(k), int(n))
    return args


def time_rows(torch, rows, args, begin):
    driver, table, late = Driver(), [], 0
    l2 = torch.cuda.get_device_properties(0).L2_cache_size
    out = csv.writer(open(args.csv, "w", newline="")) if args.csv else None
    print_cells(HEAD)
    if out:
        out.writerow(HEAD)
    for row in rows:
        if time.time() - begin > args.limit:
            late += 1
            continue
        contenders = []
        if row.plan is None:
            cells = [row.op.name, row.type, row.shape(), ""] + [""] * 15 + [f"no code: {row.error}"]
        else:
            try:
                contenders = run_row(torch, driver, row, args, l2)
            except RuntimeError as e:
                row.error = str(e).splitlines()[0]
            cells = figures(row, contenders)
        contenders = None  # their graphs and tensors with them
        torch.cuda.empty_cache()
        table.append(cells)
        print_cells(cells)
        if out:
            out.writerow(cells)
    return table, late


def main(argv):
    args = read_options(argv)
    if args.self_test:
        return self_test(args)
    rows = rows_wanted(args)[args.part[0] - 1 :: args.part[1]]
    if args.list:
        for row in rows:
            print(row.title())
        return 0
    begin = time.time()
    if args.load_cache and os.path.exists(args.load_cache):
        with tarfile.open(args.load_cache) as tar:
            tar.extractall(args.cache)
    torch = import_torch(args.cache)
    args.stream = torch.cuda.Stream()  # of all captures
    settings(torch)
    with tempfile.TemporaryDirectory() as keep:
        make_plans(args, rows, keep)
        if not args.no_compile:
            compile_all(rows, args)
            print(f"compiled after {time.time() - begin:.0f} s", file=sys.stderr)
        print(f"{torch.cuda.get_device_name(0)}, PyTorch {torch.__version__}; ratios are a rival's time over kaio's")
        table, late = time_rows(torch, rows, args, begin)
    if args.save_cache:
        with tarfile.open(args.save_cache, "w:xz") as tar:
            tar.add(args.cache, arcname=".")
    short = shortcomings(table, wanted_of_copy)
    print(f"\n{len(table)} rows in {time.time() - begin:.0f} s, {late} not reached, {len(short)} fall short"
          + (":" if short else ""))
    for line in short:
        print("  " + line)
    for rival in ("eager",) if args.no_compile else ("eager", "compiled"):
        print(counts(table, rival))
    return 1 if any(cells[-1].startswith("WRONG") for cells in table) else 0


# ---- without a GPU ---------------------------------------------------------------------------------------------


def self_test(given):
    count = 0

    def ok(condition, what):
        nonlocal count
        count += 1
        print(f"{'ok' if condition else 'not ok'} {count} - {what}")
        if not condition:
            self_test.failed = True

    self_test.failed = False
    ok(ctypes.sizeof(LaunchAttribute) == 72 and ctypes.sizeof(LaunchConfig) == 56, "the driver's structures")
    ok(pack("f32", 1.5) == b"\0\0\xc0\x3f" and pack("u32", 7) == b"\7\0\0\0", "scalars as bytes")
    ok(pack("bf16", 1.0) == b"\x80\x3f" and pack("i64", -1) == b"\xff" * 8, "and of odd types")
    drawn = [[order(draw, 4) for _ in range(240)] for draw in (random.Random(ORDERS), random.Random(ORDERS))]
    ok(all(sorted(o) == [0, 1, 2, 3] for o in drawn[0]), "in each round each has its turn")
    ok(drawn[0] == drawn[1] and all(abs(sum(o[i] == k for o in drawn[0]) - 60) < 25 for i in range(4) for k in range(4)),
       "in drawn orders, the same in every run, in which none has a place of its own")
    args = read_options(["--group", "rows", "--op", "softmax", "--type", "f16"])
    rows = rows_wanted(args)
    ok([r.cols for r in rows] == COLS and rows[0].rows == 256 * MIB // 1024, "rows for 256 MiB")
    ok(all(r.rows * r.cols * 2 <= 256 * MIB for r in rows), "and no more")
    groups = rows_wanted(read_options(["--group", "rows", "--op", "group_norm"]))
    ok(all(math.prod(r.dims.values()) == r.rows * r.cols for r in groups), "groups keep every element")
    every = rows_wanted(read_options([]))
    ok(len({r.title() for r in every}) == len(every) and len(every) > 300, "no row twice")
    ok(sets_wanted(256 * MIB, 50 * MIB) == 1 and sets_wanted(MIB, 50 * MIB) == 101
       and sets_wanted(1, 50 * MIB) == SETS_MOST, "sets exceed the cache twice")
    ok(shares(9, 3) == [3, 3, 3] and shares(5, 3) == [2, 2, 1] and shares(1, 3) == [1], "rounds are shared out")
    c = Contender("kaio", None)
    c.samples = [3.0, 1.0, 2.0, 4.0]
    ok(c.stats() == (4.0, 2.5, 1.0), "worst, median, best")
    ok(between([1.0, 2.0, 3.0, 4.0, 5.0]) == (1.0, 5.0) and between(list(range(9))) == (1, 7)
       and between(list(range(15))) == (3, 11) and between([2.0]) == (2.0, 2.0), "what holds a median")
    ok([verdict(text) for text in ("1.0001-1.2000", "0.9900-1.0000", "0.9000-0.9999")] == ["faster", "equal", "slower"],
       "verdicts")
    row = rows[0]
    row.error, row.plan, row.sets = None, {"bytes": 2e6}, 1
    rivals = [Contender(n, None) for n in ("kaio", "copy", "eager", "compiled")]
    for rival, t in zip(rivals, (1e-6, 0.8e-6, 2e-6, 0.9e-6)):
        rival.samples = [t, t, t]
    cells = figures(row, rivals)
    ok(len(cells) == len(HEAD) == len(WIDTH), "as many cells as heads")
    ok(cells[7] == "2.000" and cells[12] == "0.800" and cells[14] == "2.000", "rates and ratios")
    ok(cells[15] == "2.0000-2.0000" and cells[18] == "0.9000-0.9000", "and between what they lie")
    ok(counts([cells, cells], "compiled") == "beside compiled: 0 rows faster, 0 equal within noise, 2 slower", "counts")
    short = shortcomings([cells], wanted_of_copy)
    ok(short == ["softmax f16 262144x512: 0.800 of copy, 0.900 of compiled"], "what falls short is said")
    rivals[3].samples = [0.9e-6, 0.9e-6, 1.1e-6]
    short = shortcomings([figures(row, rivals)], wanted_of_copy)
    ok(short == ["softmax f16 262144x512: 0.800 of copy, 0.900 of compiled within noise"], "and where it is noise")
    row.error = "result 1: off"
    ok(shortcomings([figures(row, rivals)], wanted_of_copy)[0].endswith("WRONG: result 1: off"), "and what is wrong")
    self_test_random(ok, given)
    self_test_plan(ok, given)
    print(f"1..{count}")
    return 1 if self_test.failed else 0


def self_test_random(ok, args):
    """Drawn operations are the same in every run, of every family, and kaio-bench has a plan for each."""
    rows = rows_wanted(read_options(["--random", "60", "--seed", "7"]))
    again = rows_wanted(read_options(["--random", "60", "--seed", "7"]))
    other = rows_wanted(read_options(["--random", "60", "--seed", "8"]))
    ok([r.op.text() + r.title() for r in rows] == [r.op.text() + r.title() for r in again], "a seed's operations are the same again")
    ok(sum(r.op.text() == o.op.text() for r, o in zip(rows, other)) < 6, "another seed's are others")
    ok({r.op.family for r in rows} == set(pytorch_random.FAMILIES), "every family is drawn")
    ok(all(op_of(name_of(r.op)).text() == r.op.text() for r in rows), "and other processes make the same")
    ok({r.op.generic for r in rows} == {False, True} and any(r.op.derived for r in rows), "open and fixed, with extents that follow")
    few = rows_wanted(read_options(["--random", "9", "--family", "norm,prefix"]))
    ok({r.op.family for r in few} == {"norm", "prefix"}, "families are chosen")
    with tempfile.TemporaryDirectory() as keep:
        make_plans(args, rows[:36], keep)
        for row in rows[:36]:
            ok(row.plan is not None and made_of(row.plan), f"plan of {row.title()}" + (f": {row.error}" if row.error else ""))


def made_of(plan):
    """Have the launches as many arguments as the plan says, where nothing is launched?"""

    class Nothing:
        def __getattr__(self, name):
            return lambda *args: 0

    class NoDriver:
        cu = Nothing()

        def check(self, result, what):
            pass

    names = {p["name"]: 4096 for p in plan["params"]}
    names.update({t["name"]: 4096 for t in plan.get("temps", [])}, **{"$messages": 4096})
    made = Launches(NoDriver(), [None] * len(plan["launches"]), plan, names)
    return all(len(cells) == max(len(launch["args"]), 1) for cells, launch in zip(made.params, plan["launches"]))


def self_test_plan(ok, args):
    """kaio-bench's own plan of every operation, as far as the specs are there."""
    for op in OPS:
        row = Row(op, "rows" if op.group == "rows" else op.group, op.types[0], 64, 1024)
        if not os.path.exists(os.path.join(args.specs, op.spec)):
            ok(True, f"plan of {op.name} # SKIP no such spec")
            continue
        with tempfile.TemporaryDirectory() as keep:
            make_plans(args, [row], keep)
            good = row.plan is not None and os.path.getsize(row.plan["ptx"]) > 0
            good = good and made_of(row.plan)
            ok(good, f"plan of {op.name}" + (f": {row.error}" if row.error else ""))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
