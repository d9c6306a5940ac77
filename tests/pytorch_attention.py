#!/usr/bin/env python3
"""Compares kaio's attention with PyTorch's, on one GPU in one process: kaio-bench's suite of attention beside
scaled_dot_product_attention by cuDNN and by FlashAttention-2, and beside compiled FlexAttention.

    tests/pytorch_attention.py [--types full,causal,...] [--cases NAME,...] [--runs N] [--limit SECONDS] [--csv FILE]
                               [--no-compile] [--list] [--self-test]

As tests/pytorch.py does it: kaio's side is what  kaio-bench --dry-run --format=json --keep  says, loaded into PyTorch's own
context. On sm_90 it is there twice, the second time by mma.sync. Contenders take turns in rounds, each in an order of its own.
Forward passes are captured into graphs; gradients, which PyTorch computes by its autograd, are queued. Results are
compared with kaio's own, which kaio-verify and kaio-bench check. A contender that has none, or that is off, has no time.

A cell is the median in microseconds, TFLOP/s over what is not masked (of decoding TB/s of all buffers), and between
what the rival's time over kaio's lies. Exit status: 0; 1 a result is wrong; 2 usage; 77 there is no GPU or no PyTorch.
"""

import argparse
import csv
import json
import os
import random
import subprocess
import sys
import tempfile
import time

import pytorch_contest as contest
from pytorch_driver import MAP_TYPE, SWIZZLE, Driver, Launches, find_bench, torch_type

SYNC = "{mma: sync}"
DECODING = ("decode", "paged")
# of a kernel's name, what may be asked of PyTorch
CAUSAL = ("causal", "backward_causal", "softcap", "alibi", "window", "documents")


# ---- kaio's side -----------------------------------------------------------------------------------------------


def plans_of(args, keep):
    """{(kernel, case): {contender: plan}}, in the order of the suite."""
    command = [args.bench, "--dry-run", "--format=json", "-t", args.target, f"--keep={keep}", "--suite=attention"]
    command += [f"--types={','.join(args.types)}"] if args.types else []
    command += ["--vs=schedule:" + SYNC] if args.target == "sm_90a" else []
    done = subprocess.run(command + args.cases, capture_output=True, text=True)
    plans = {}
    for line in done.stdout.splitlines():
        plan = json.loads(line)
        plans.setdefault((plan["kernel"], plan.get("case", "")), {})[plan["name"]] = plan
    if not plans:
        raise ValueError(done.stderr.strip() or "kaio-bench says nothing")
    return plans


class Kaio:
    """A plan over all sets of inputs; its outputs are its own."""

    def __init__(self, torch, driver, plan, sets):
        with open(plan["ptx"], "rb") as f:
            module = driver.load(f.read())
        functions = [driver.function(module, launch) for launch in plan["launches"]]
        self.torch, self.driver, self.module, self.keep, self.runs, self.outputs = torch, driver, module, [], [], []
        shared = {"$messages": self.zeros(64)}
        for temp in plan.get("temps", []):
            shared[temp["name"]] = self.zeros(max(temp["bytes"], 1))
        for inputs in sets:
            outputs = {p["name"]: torch.empty(p["shape"], dtype=torch_type(torch, p["type"]), device="cuda")
                       for p in plan["params"] if p["mode"] == "out"}
            address = dict(shared, **{k: t.data_ptr() for k, t in {**inputs, **outputs}.items()})
            self.outputs.append(outputs)
            self.runs.append(Launches(driver, functions, plan, address))

    def zeros(self, n):
        self.keep.append(self.torch.zeros(n, dtype=self.torch.uint8, device="cuda"))
        return self.keep[-1].data_ptr()

    def enqueue(self, k):
        self.runs[k].enqueue(self.torch.cuda.current_stream().cuda_stream)
        return list(self.outputs[k].values())


# ---- inputs ----------------------------------------------------------------------------------------------------


def make_input(torch, param, values, generator):
    """As the suite's cases have them."""
    name, shape = param["name"], param["shape"]
    if name == "page":
        return torch.arange(shape[0] * shape[1], device="cuda", dtype=torch.int32).view(shape)
    if name == "len":
        return torch.randint(1, values["n"] + 1, shape, device="cuda", dtype=torch.int32, generator=generator)
    if name in ("of_row", "of_key"):
        again = torch.Generator(device="cuda")
        again.manual_seed(1)  # the same for both
        documents = torch.randint(0, 7, shape, device="cuda", dtype=torch.int32, generator=again)
        return documents.sort(-1).values.contiguous()
    if name == "slope":
        return torch.rand(shape, device="cuda", generator=generator)
    x = torch.randn(shape, device="cuda", dtype=torch.float32, generator=generator)
    return x.to(torch_type(torch, param["type"]))


def make_sets(torch, plan, l2):
    """So many sets of inputs that they exceed the cache twice; gradients get o and lse of the forward pass."""
    generator = torch.Generator(device="cuda")
    generator.manual_seed(1)
    size = sum(p["bytes"] for p in plan["params"])
    n = max(1, min(-(-2 * l2 // size), 64))
    sets = []
    for _ in range(n):
        made = {p["name"]: make_input(torch, p, plan["values"], generator) for p in plan["params"] if p["mode"] == "in"}
        if "lse" in made:
            causal = plan["kernel"].endswith("causal")
            o, lse = torch.ops.aten._scaled_dot_product_flash_attention(
                made["q"], made["k"], made["v"], 0.0, causal, False, scale=plan["values"]["scale"])[:2]
            made["o"], made["lse"] = o.contiguous(), lse.float().contiguous()
        sets.append(made)
    return sets


# ---- PyTorch's side --------------------------------------------------------------------------------------------


def scale_of(plan):
    return plan["values"].get("scale", 0.08838834764831845)


def heads_first(x):
    """Queries of one row each, as PyTorch has them."""
    return x.unsqueeze(2) if x.dim() == 3 else x


def sdpa(torch, plan, backend, inputs):
    kind = plan["kernel"].removeprefix("attention_")
    grouped = kind == "decode"
    mask = inputs["bias"].unsqueeze(0) if kind == "bias" else None
    with torch.nn.attention.sdpa_kernel(backend):
        return torch.nn.functional.scaled_dot_product_attention(
            heads_first(inputs["q"]), inputs["k"], inputs["v"], attn_mask=mask, is_causal=kind.endswith("causal"),
            scale=scale_of(plan), enable_gqa=grouped)


def score_of(kind, inputs):
    """FlexAttention's score_mod; None: the scores as they are."""
    if kind == "softcap":
        return lambda s, z, h, i, j: 30 * (s / 30).tanh()
    if kind == "alibi":
        slope = inputs["slope"]
        return lambda s, z, h, i, j: s - slope[h] * (i - j)
    if kind == "bias":
        bias = inputs["bias"]
        return lambda s, z, h, i, j: s + bias[h, i, j]
    return None


def mask_of(kind, inputs):
    """FlexAttention's mask_mod; None: there is none."""
    if kind == "window":
        return lambda z, h, i, j: (i >= j) & (i - j < 1024)
    if kind == "documents":
        row, key = inputs["of_row"], inputs["of_key"]
        return lambda z, h, i, j: (row[z, i] == key[z, j]) & (i >= j)
    if kind == "varlen":
        lengths = inputs["len"]
        return lambda z, h, i, j: j < lengths[z]
    if kind in CAUSAL:
        return lambda z, h, i, j: i >= j
    return None


def let_recompile(torch, sets):
    """Masks and scores of each set are functions of their own: each may be compiled. What other rows have compiled of
    the same function counts towards the limit, so it is dropped."""
    dynamo = torch._dynamo
    dynamo.reset()
    name = "recompile_limit" if hasattr(dynamo.config, "recompile_limit") else "cache_size_limit"
    setattr(dynamo.config, name, max(getattr(dynamo.config, name), 4 * len(sets) + 8))


def flex(torch, plan, sets):
    """Compiled FlexAttention over all sets: a function of the set's number."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    kind = plan["kernel"].removeprefix("attention_")
    let_recompile(torch, sets)
    call = torch.compile(flex_attention, dynamic=False, fullgraph=True)
    made = []
    for inputs in sets:
        q = heads_first(inputs["q"])
        mask = mask_of(kind, inputs)
        by_batch = q.shape[0] if kind in ("documents", "varlen") else None
        block = create_block_mask(mask, by_batch, None, q.shape[2], inputs["k"].shape[2], device="cuda") if mask else None
        made.append((q, inputs["k"], inputs["v"], score_of(kind, inputs), block))

    def enqueue(k, operands=None):
        q, key, v, score, block = made[k]
        q, key, v = operands or (q, key, v)
        return call(q, key, v, score_mod=score, block_mask=block, scale=scale_of(plan), enable_gqa=kind == "decode")

    return enqueue


def rivals_of(torch, plan, sets, compile_too):
    """[(name, function of the set's number)] for a kernel of the suite; fp8 and pages PyTorch has not."""
    kind = plan["kernel"].removeprefix("attention_")
    backends = torch.nn.attention.SDPBackend
    if kind in ("fp8", "paged"):
        return []
    out = []
    if kind in ("full", "causal", "decode", "backward", "backward_causal", "bias"):
        out = [("sdpa-cudnn", lambda k, o=None: sdpa(torch, plan, backends.CUDNN_ATTENTION, with_operands(sets[k], o)))]
        if kind != "bias":
            out += [("sdpa-flash2", lambda k, o=None: sdpa(torch, plan, backends.FLASH_ATTENTION,
                                                           with_operands(sets[k], o)))]
    if compile_too:
        out += [("flex", flex(torch, plan, sets))]
    return out


def with_operands(inputs, operands):
    return dict(inputs, **dict(zip("qkv", operands))) if operands else inputs


def gradient(torch, forward, sets):
    """The gradients by autograd, of forward passes that are done once."""
    graphs = []
    for k, inputs in enumerate(sets):
        operands = [inputs[n].detach().clone().requires_grad_() for n in "qkv"]
        graphs.append((forward(k, operands), operands, inputs["dout"]))
    return lambda k: list(torch.autograd.grad(graphs[k][0], graphs[k][1], graphs[k][2], retain_graph=True))


# ---- a row -----------------------------------------------------------------------------------------------------


def same(torch, got, want):
    """None, or what is wrong."""
    for x, y in zip(got, want):
        wrong = contest.close(torch, x.reshape(y.shape), y, 2e-2)
        if wrong:
            return wrong
    return None


def first_results(results, kernel):
    """What is compared: o, or dq, dk and dv."""
    return [results] if not isinstance(results, (list, tuple)) else list(results)[:3 if "backward" in kernel else 1]


def contenders_of(torch, driver, plans, sets, args):
    """All that can run, checked; those that cannot have .why."""
    kernel = next(iter(plans.values()))["kernel"]
    made = []
    for name, plan in plans.items():
        kaio = Kaio(torch, driver, plan, sets)
        made.append(contest.Contender("kaio" if name == "kaio" else "kaio-sync", kaio.enqueue))
    want = first_results(made[0].enqueue(0), kernel)
    for name, function in rivals_of(torch, next(iter(plans.values())), sets, not args.no_compile):
        rival = contest.Contender(name, function)
        made.append(rival)
        try:
            if "backward" in kernel:
                rival.enqueue = gradient(torch, function, sets)
            rival.enqueue(0)
        except Exception as e:  # whatever PyTorch has against it
            rival.why = f"{type(e).__name__}: {str(e).strip().splitlines()[0][:100] if str(e).strip() else ''}"
    for c in made[1:]:
        if not c.why:
            wrong = same(torch, first_results(c.enqueue(0), kernel), want)
            c.why = f"wrong: {wrong}" if wrong else None
    torch.cuda.synchronize()
    return made


def run_row(torch, driver, key, plans, args, l2):
    plan = next(iter(plans.values()))
    sets = make_sets(torch, plan, l2)
    made = contenders_of(torch, driver, plans, sets, args)
    alive = [c for c in made if not c.why]
    draw = random.Random(contest.ORDERS)
    if "backward" in key[0]:
        contest.measure_queued(torch, alive, len(sets), args, draw, 2, args.runs)
    else:
        contest.measure(torch, alive, len(sets), args, draw, 2, args.runs)
    return made


def cells_of(key, plan, made):
    """A row of the table for each contender."""
    kind = key[0].removeprefix("attention_")
    rate = (plan["bytes"], 1e-12, "TB/s") if kind in DECODING else (plan["operations"], 1e-12, "TFLOP/s")
    for c in made:
        cell = [kind, key[1], c.name]
        if c.why:
            yield cell + ["", "", "", "", c.why]
            continue
        median = c.stats()[1]
        low, high = contest.between([x / y for x, y in zip(c.samples, made[0].samples)])
        yield cell + [f"{median * 1e6:.4g}", f"{rate[0] / median * rate[1]:.4g}" if rate[0] else "", rate[2],
                      f"{low:.3f}{contest.BETWEEN}{high:.3f}" if c is not made[0] else "", ""]


HEAD = ["kernel", "case", "contender", "median us", "rate", "unit", "/ kaio", "why"]


def time_all(torch, plans, args, begin):
    rows, wrong = [HEAD], False
    driver = Driver()
    l2 = torch.cuda.get_device_properties(0).L2_cache_size
    args.stream = torch.cuda.Stream()
    print("  ".join(HEAD))
    for key, contenders in plans.items():
        if time.monotonic() - begin > args.limit:
            print(f"no more rows are begun after {args.limit:g} seconds")
            break
        try:
            made = run_row(torch, driver, key, contenders, args, l2)
        except Exception as e:  # the next row may go
            print(f"{key[0]} {key[1]}: {type(e).__name__}: {str(e)[:300]}")
            wrong = True
            continue
        for cell in cells_of(key, next(iter(contenders.values())), made):
            rows.append(cell)
            wrong |= cell[-1].startswith("wrong")
            print("  ".join(cell), flush=True)
        torch.cuda.empty_cache()
    if args.csv:
        with open(args.csv, "w", newline="") as f:
            csv.writer(f).writerows(rows)
    return wrong


# ---- the program -----------------------------------------------------------------------------------------------


def read_options(argv):
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    words = lambda s: [w for w in s.split(",") if w]
    p.add_argument("--types", type=words, default=[])
    p.add_argument("--cases", type=words, default=[])
    p.add_argument("--runs", type=int, default=9)
    p.add_argument("--round-ms", type=float, default=8)
    p.add_argument("--limit", type=float, default=1e9, help="begin no row after so many seconds")
    p.add_argument("--csv")
    p.add_argument("--no-compile", action="store_true", help="leave FlexAttention out")
    p.add_argument("--cache", default="/tmp/kaio-torch-cache")
    p.add_argument("--bench", default="")
    p.add_argument("-t", "--target", default="sm_90a")
    p.add_argument("--list", action="store_true")
    p.add_argument("--self-test", action="store_true", help="test what needs neither a GPU nor PyTorch")
    args = p.parse_args(argv)
    args.bench = args.bench or find_bench()
    return args


def self_test(args, keep):
    """Every plan of the suite has what the launches here need."""
    plans = plans_of(args, keep)
    kinds = {"buffer", "temp", "messages", "map", "scalar", "dim", "computed"}
    bad = 0
    for (kernel, case), contenders in plans.items():
        for name, plan in contenders.items():
            used = {a["kind"] for launch in plan["launches"] for a in launch["args"]}
            maps = [a for launch in plan["launches"] for a in launch["args"] if a["kind"] == "map"]
            good = used <= kinds and os.path.exists(plan["ptx"]) and not any(t["each_run"] for t in plan.get("temps", []))
            good = good and all(m["type"] in MAP_TYPE and m["swizzle"] in SWIZZLE and len(m["strides"]) == len(m["dims"]) - 1
                                for m in maps)
            bad += not good
            print(f"{'ok' if good else 'not ok'} - {kernel} {case} {name}")
    return bad


def main(argv):
    begin = time.monotonic()
    args = read_options(argv)
    with tempfile.TemporaryDirectory() as keep:
        if args.self_test:
            return 1 if self_test(args, keep) else 0
        if args.list:
            print("\n".join(" ".join(key) for key in plans_of(args, keep)))
            return 0
        torch = contest.import_torch(args.cache)
        if torch.cuda.get_device_capability() != (9, 0) and args.target == "sm_90a":
            args.target = "sm_80"
        return 1 if time_all(torch, plans_of(args, keep), args, begin) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
