#!/usr/bin/env python3
"""Compares the operations of KernelBench's level 1 with PyTorch, eager and compiled, at the published sizes on one GPU.

    tests/pytorch_operations.py [--op LIST] [--open] [--no-compile LIST] [--part K/N] [--plans DIR] [--csv FILE]
                                [--runs N] [--round-ms MS] [--limit SECONDS] [--each SECONDS] [--list] [--self-test]
    tests/pytorch_operations.py --emit DIR | --strategies [--op LIST] [--open]

LIST names operations by number, kernel or kind (products, activations, norms, poolings, reductions, convolutions,
transposed, depthwise, prefixes, losses, attention), or is 'all'. tests/pytorch_table.py says which spec and case belong to
which number, and how PyTorch computes it.

kaio's side is what  kaio-bench --dry-run --format=json --keep  says. --emit leaves that in a folder, where there need be
neither a GPU nor PyTorch, and --plans takes it from there. --open has the code whose sizes are given at launch, too.
--strategies prints which strategies kaio-emit takes, and fails where one is 'naive'.
PyTorch has its own defaults: its convolutions round to TF32, as the specs of these say, and its products do not.

Every result is compared with eager PyTorch's in full, and with float64's over the first rows where rows are independent.
Then contenders take turns in rounds, each in an order of its own. All inputs are larger than the L2 cache, or nearly
so; there is one set of them. Rows are printed as they come. One process does the work and another one watches: an
operation that fails, crashes or takes longer than --each is said, and the next one is begun.

A ratio is PyTorch's time over kaio's, of the better of eager and compiled. Exit status: 0; 1 a result is wrong or an
operation has no time; 2 usage; 77 there is no GPU or no PyTorch.
"""

import argparse
import csv
import json
import math
import multiprocessing
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from types import SimpleNamespace

import pytorch_contest as contest
from pytorch_driver import Driver, Kaio, find_bench, torch_type
from pytorch_table import OPS

HERE = os.path.dirname(os.path.abspath(__file__))
CODES = ("fixed", "open")
SHORT = 3e-4  # what takes less is captured into graphs
SAMPLE = 4  # rows for float64
CHUNK = 1 << 26
LEAST = 0.95
TF32 = ("convolutions", "transposed", "depthwise")

# ---- plans -----------------------------------------------------------------------------------------------------


def plan_command(args, op, code, keep):
    return [args.bench, "--dry-run", "--format=json", "-t", args.target, f"--keep={keep}", f"--kernel={op.kernel}"] + (
        ["--generic"] if code == "open" else []) + [os.path.join(HERE, "operations", op.kind + ".yaml"), op.case]


def make_plan(args, op, code, folder):
    """Leaves a plan, or what kaio-bench has against it, in a file; the plan's PTX is named as it lies beside it."""
    keep = os.path.join(folder, f"{op.number}-{code}")
    os.makedirs(keep, exist_ok=True)
    done = subprocess.run(plan_command(args, op, code, keep), capture_output=True, text=True)
    if done.returncode == 0:
        plan = json.loads(done.stdout)
        plan["ptx"] = os.path.basename(plan["ptx"])
    else:
        plan = {"error": done.stderr.strip().splitlines()[0] if done.stderr.strip() else f"exit {done.returncode}"}
    with open(os.path.join(keep, "plan.json"), "w") as f:
        json.dump(plan, f)


def make_plans(args, ops, folder):
    with ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(lambda item: make_plan(args, *item, folder), [(op, code) for op in ops for code in args.codes]))


def read_plan(folder, op, code):
    keep = os.path.join(folder, f"{op.number}-{code}")
    with open(os.path.join(keep, "plan.json")) as f:
        plan = json.load(f)
    if "error" in plan:
        raise RuntimeError(f"no code: {plan['error']}")
    plan["ptx"] = os.path.join(keep, plan["ptx"])
    machine = plan["ptx"] + ".cubin"
    plan["ptx"] = machine if os.path.exists(machine) else plan["ptx"]
    return plan


def assemble(args, folder):
    """Machine code beside the PTX, made by as many processes as there are cores; without ptxas the driver makes it."""
    ptxas = shutil.which("ptxas") or "/usr/local/cuda/bin/ptxas"
    if not os.path.exists(ptxas):
        return
    texts = [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names if name.endswith(".ptx")]
    command = [ptxas, f"-arch={args.target}", "-o"]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(lambda text: subprocess.run(command + [text + ".cubin", text], capture_output=True), texts))


def strategies_of(args, op, code):
    """By which strategies the operation's parts are computed."""
    with tempfile.TemporaryDirectory() as folder:
        make_plan(args, op, code, folder)
        values = read_plan(folder, op, code)["values"]
    command = [args.emitter, "--explain", "--format=json", "-t", args.target, f"--kernel={op.kernel}"]
    if code == "fixed":  # scalars are none
        command += [f"-D{name}={value}" for name, value in values.items() if isinstance(value, int)]
    done = subprocess.run(command + [os.path.join(HERE, "operations", op.kind + ".yaml")], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return [part["strategy"] for part in json.loads(done.stdout)["kernels"][0]["parts"]]


def print_strategies(args, ops):
    naive = 0
    with ThreadPoolExecutor(args.jobs) as pool:
        items = [(op, code) for op in ops for code in args.codes]
        for (op, code), found in zip(items, pool.map(lambda item: strategies_of(args, *item), items)):
            print(f"{op.title()} {code}: {' '.join(found)}")
            naive += "naive" in found
    return 1 if naive else 0


# ---- inputs ----------------------------------------------------------------------------------------------------


def make_input(torch, param, generator):
    shape, name = param["shape"], param["name"]
    if "below" in param or param["type"] == "bool":
        return torch.randint(0, param.get("below", 2), shape, device="cuda", dtype=torch_type(torch, param["type"]),
                             generator=generator)
    x = torch.rand(shape, device="cuda", dtype=torch_type(torch, param["type"]), generator=generator)
    if name in ("weight", "window"):  # as layers are initialised
        x = (2 * x - 1) / math.sqrt(math.prod(shape[1:]))
    return x


def make_inputs(torch, op, plan):
    generator = torch.Generator(device="cuda")
    generator.manual_seed(1)
    inputs = [make_input(torch, p, generator) for p in plan["params"] if p["mode"] != "out"]
    return [x.contiguous() for x in op.prepare(torch, inputs)] if op.prepare else inputs


def for_torch(torch, inputs):
    return [x.view(torch.bool) if x.dtype == torch.uint8 else x for x in inputs]


# ---- judging ---------------------------------------------------------------------------------------------------


def close(torch, got, want, tolerance):
    """None, or what is wrong; piece by piece, as there may be no room for another copy."""
    got, want = got.reshape(-1), want.reshape(-1)
    pieces = range(0, want.numel(), CHUNK)
    typical = sum(float(want[k:k + CHUNK].abs().sum(dtype=torch.float64)) for k in pieces) / max(want.numel(), 1)
    off, largest = 0, 0.0
    for k in pieces:
        x, y = got[k:k + CHUNK], want[k:k + CHUNK]
        error = (x - y).abs()
        error /= y.abs().add_(typical)
        off += int((~(error <= tolerance)).sum())
        largest = max(largest, float(error.nan_to_num(math.inf).max()))
    return f"{off} of {want.numel()} off by up to {largest:.3g}" if off else None


def judge(torch, op, inputs, got, eager):
    """Compares a result with eager PyTorch's and, where a few rows will do, with float64's; None, or what is wrong."""
    theirs = for_torch(torch, inputs)
    if op.compare != "close":
        chosen = inputs[0].gather(1, got.long().unsqueeze(1)).squeeze(1)
        return None if bool((chosen == getattr(inputs[0], op.compare)(1)).all()) else "an index is of another element"
    wrong = close(torch, got.view(eager.shape), eager, 1e-2 if op.kind in TF32 else 1e-3)
    if wrong is None and op.sliced:
        few = [x[:SAMPLE] if k in op.sliced else x for k, x in enumerate(theirs)]
        want = op.call(torch, torch.nn.functional, *[x.double() if x.dtype.is_floating_point else x for x in few])
        wrong = close(torch, got.view(eager.shape)[:SAMPLE].double(), want, 1e-4 if op.kind == "products" else 2e-5)
        wrong = f"beside float64: {wrong}" if wrong else None
    return wrong


# ---- an operation ----------------------------------------------------------------------------------------------


def compiled_call(torch, op):
    call = op.call
    return contest.compiled(torch, lambda *x: call(torch, torch.nn.functional, *x))


def contenders_of(torch, driver, op, plans, inputs, compile_too, notes):
    """Those that can run and are right; whatever is wrong with others goes into the notes."""
    theirs = for_torch(torch, inputs)
    eager = op.call(torch, torch.nn.functional, *theirs)
    made, outputs = [], None
    for code, plan in plans.items():
        kaio = Kaio(torch, driver, SimpleNamespace(plan=plan), [inputs], outputs)
        outputs = kaio.outputs
        kaio.enqueue(torch, 0)
        torch.cuda.synchronize()
        wrong = judge(torch, op, inputs, kaio.outputs[0][0], eager)
        if wrong:
            notes.append(f"WRONG {code}: {wrong}")
        else:
            made.append(contest.Contender(code, lambda k, kaio=kaio: kaio.enqueue(torch, k)))
    del eager
    torch.cuda.empty_cache()
    made.append(contest.Contender("eager", lambda k: op.call(torch, torch.nn.functional, *theirs)))
    if compile_too:
        try:
            fast = compiled_call(torch, op)
            fast(*theirs)
            made.append(contest.Contender("compiled", lambda k: fast(*theirs)))
        except Exception as e:  # what a compiler may raise is not known
            notes.append(f"torch.compile: {type(e).__name__}: {(str(e).splitlines() or [''])[0][:60]}")
    return made


def run_op(torch, driver, op, args, compile_too):
    """{contender: (worst, median, best) in seconds}, bytes, and notes."""
    plans, notes = {}, []
    for code in args.codes:
        try:
            plans[code] = read_plan(args.plans, op, code)
        except RuntimeError as e:
            notes.append(f"WRONG {code}: {e}")
    if not plans:
        return {}, 0, notes
    plan = next(iter(plans.values()))
    inputs = make_inputs(torch, op, plan)
    made = contenders_of(torch, driver, op, plans, inputs, compile_too, notes)
    events = (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
    draw = random.Random(contest.ORDERS)
    if min(contest.estimate(torch, c, events) for c in made) < SHORT:
        contest.measure(torch, made, 1, args, draw, 1, args.runs)
    else:
        contest.measure_queued(torch, made, 1, args, draw, 1, args.runs)
    return {c.name: c.stats() for c in made}, plan["bytes"], notes


def compiles(op, args):
    return not chosen(op, args.no_compile)


def work(pipe, args):
    """The process that has the GPU: operations come by number, with whether to compile, and results go."""
    torch = contest.import_torch(args.cache)
    contest.settings(torch)
    args.stream = torch.cuda.Stream()
    driver = Driver()
    torch.zeros(1, device="cuda")
    pipe.send("ready")
    while True:
        number, compile_too = pipe.recv()
        try:
            pipe.send(run_op(torch, driver, OPS[number], args, compile_too))
        except Exception as e:  # a failure of any kind is the operation's, and the next one gets another process
            pipe.send(({}, 0, [f"WRONG {type(e).__name__}: {(str(e).splitlines() or [''])[0][:200]}"]))
            return
        torch.cuda.empty_cache()


class Worker:
    """Asks a process for results, and makes another where that one fails."""

    def __init__(self, args):
        self.args, self.process, self.pipe = args, None, None

    def start(self):
        context = multiprocessing.get_context("spawn")
        self.pipe, end = context.Pipe()
        self.process = context.Process(target=work, args=(end, self.args), daemon=True)
        self.process.start()
        end.close()
        if not self.pipe.poll(300) or self.answer() != "ready":
            raise RuntimeError("no process for the GPU")

    def answer(self):
        try:
            return self.pipe.recv()
        except EOFError:
            return None

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.join()
        self.process = None

    def ask(self, op, compile_too):
        if self.process is None or not self.process.is_alive():
            self.stop()
            self.start()
        self.pipe.send((op.number, compile_too))
        result = self.answer() if self.pipe.poll(self.args.each) else ({}, 0, [f"WRONG: more than {self.args.each:g} s"])
        if result is None:
            result = ({}, 0, ["WRONG: the process died"])
        if not result[0]:
            self.stop()
        return result

    def result(self, op, compile_too):
        """As ask() has it; what fails with the compiler may do without."""
        result = self.ask(op, compile_too)
        if not result[0] and compile_too:
            result = self.ask(op, False)
            result[2].append("without torch.compile, with which it failed")
        return result


# ---- compiling ahead -------------------------------------------------------------------------------------------


def compile_one(number, args):
    """In a process of its own: leaves the compiled kernels in the caches."""
    op = OPS[number]
    try:
        torch = contest.import_torch(args.cache)
        contest.settings(torch)
        plan = next(read_plan(args.plans, op, code) for code in args.codes)
        inputs = for_torch(torch, make_inputs(torch, op, plan))
        compiled_call(torch, op)(*inputs)
        torch.cuda.synchronize()
        del inputs
        torch.cuda.empty_cache()
        return None
    except Exception as e:
        return f"{op.title()}: {type(e).__name__}: {str(e)[:200]}"


def compile_all(ops, args):
    with ProcessPoolExecutor(args.compilers, multiprocessing.get_context("spawn")) as pool:
        waiting = [pool.submit(compile_one, op.number, args) for op in ops if compiles(op, args)]
        for future in as_completed(waiting):
            error = future.exception()
            wrong = f"{type(error).__name__}: {error}" if error else future.result()
            if wrong:
                print("compiling", wrong, file=sys.stderr)


# ---- the table -------------------------------------------------------------------------------------------------

HEAD = ["number", "kernel", "case", "kind", "fixed ms", "open ms", "eager ms", "compiled ms", "fixed", "open", "TB/s", "remark"]
WIDTH = [6, 22, 10, 13, 9, 9, 9, 11, 6, 6, 6, 0]


def cells_of(op, compile_too, result):
    """A row; ratios are of the better of PyTorch's."""
    times, size, notes = result
    median = {name: stats[1] for name, stats in times.items()}
    rivals = [median[name] for name in ("eager", "compiled") if name in median]
    cells = [str(op.number), op.kernel, op.case if op.case != "published" else "", op.kind]
    cells += [f"{median[name] * 1e3:.4f}" if name in median else "" for name in CODES + ("eager", "compiled")]
    cells += [f"{min(rivals) / median[name]:.3f}" if name in median and rivals else "" for name in CODES]
    ours = [median[name] for name in CODES if name in median]
    cells.append(f"{size / min(ours) * 1e-12:.2f}" if ours else "")
    return cells + ["; ".join(notes + ([] if compile_too else ["not compiled"]))]


def print_cells(cells):
    line = "  ".join(c.ljust(w) if i in (1, 2, 3) else c.rjust(w) for i, (c, w) in enumerate(zip(cells, WIDTH)))
    print(line.rstrip(), flush=True)


def mean_of(ratios):
    return math.exp(sum(math.log(r) for r in ratios) / len(ratios))


def summary(table, codes):
    """Lines about all rows: means, what falls short, and what is wrong."""
    lines = []
    rows = [dict(zip(HEAD, cells)) for cells in table]
    for code in codes:
        ratios = [(float(row[code]), row) for row in rows if row[code]]
        if not ratios:
            continue
        short = sorted(((r, row) for r, row in ratios if r < LEAST), key=lambda pair: pair[0])
        lines.append(f"{code}: a geometric mean of {mean_of([r for r, _ in ratios]):.3f} over {len(ratios)} operations, "
                     f"{len(short)} below {LEAST}" + (":" if short else ""))
        lines += [f"  {r:.3f}  {row['number']} {row['kernel']} {row['case']}".rstrip() for r, row in short]
    lines += [f"{row['number']} {row['kernel']}: {row['remark']}" for row in rows if "WRONG" in row["remark"]]
    return lines


# ---- main ------------------------------------------------------------------------------------------------------


def chosen(op, words):
    return any(word in ("all", str(op.number), op.kernel, op.kind) for word in words)


def ops_wanted(args):
    ops = [op for _, op in sorted(OPS.items()) if not args.op or chosen(op, args.op)]
    return ops[args.part[0] - 1 :: args.part[1]]


def read_options(argv):
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    words = lambda s: [w for w in s.split(",") if w]
    p.add_argument("--op", type=words, default=[], help="only these operations")
    p.add_argument("--open", action="store_true", help="code for all sizes, too")
    p.add_argument("--no-compile", type=words, default=[], help="leave torch.compile out for these operations")
    p.add_argument("--part", default="1/1", help="K/N: of all operations every N-th, from the K-th on")
    p.add_argument("--plans", help="take plans and PTX from this folder")
    p.add_argument("--emit", help="leave them there, and do nothing else")
    p.add_argument("--strategies", action="store_true", help="print what kaio-emit takes, and do nothing else")
    p.add_argument("--runs", type=int, default=5, help="rounds (5)")
    p.add_argument("--round-ms", type=float, default=20, help="milliseconds of each in a round")
    p.add_argument("--limit", type=float, default=1e9, help="begin no operation after so many seconds")
    p.add_argument("--each", type=float, default=120, help="seconds that an operation may take")
    p.add_argument("--compilers", type=int, default=4, help="processes that compile; each has its inputs on the GPU")
    p.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="of kaio-bench at a time")
    p.add_argument("--cache", default="/tmp/kaio-torch-cache", help="folder of the compiler's caches")
    p.add_argument("--csv", help="write the table to this file too")
    p.add_argument("--bench", default="", help="kaio-bench (found beside the tests, or on PATH)")
    p.add_argument("--emitter", default="kaio-emit", help="for --strategies")
    p.add_argument("-t", "--target", default="sm_90a")
    p.add_argument("--list", action="store_true", help="print the operations and exit")
    p.add_argument("--self-test", action="store_true", help="test what needs neither a GPU nor PyTorch")
    args = p.parse_args(argv)
    known = {"all"} | {str(n) for n in OPS} | {w for op in OPS.values() for w in (op.kernel, op.kind)}
    for word in args.op + args.no_compile:
        if word not in known:
            p.error(f"unknown operation '{word}'; there are numbers, kernels and kinds")
    k, _, n = args.part.partition("/")
    if not (k.isdigit() and n.isdigit() and 1 <= int(k) <= int(n)):
        p.error(f"'{args.part}' is no part: K/N with K from 1 to N")
    args.part = (int(k), int(n))
    args.codes = CODES if args.open else CODES[:1]
    args.bench = args.bench or find_bench()
    return args


def time_all(ops, args, begin):
    worker, table, late = Worker(args), [], 0
    out = open(args.csv, "w", newline="") if args.csv else None
    print_cells(HEAD)
    if out:
        csv.writer(out).writerow(HEAD)
    for op in ops:
        if time.time() - begin > args.limit:
            late += 1
            continue
        cells = cells_of(op, compiles(op, args), worker.result(op, compiles(op, args)))
        table.append(cells)
        print_cells(cells)
        if out:
            csv.writer(out).writerow(cells)
            out.flush()
    worker.stop()
    print(f"\n{len(table)} operations in {time.time() - begin:.0f} s, {late} not reached")
    return table


def main(argv):
    args = read_options(argv)
    if args.self_test:
        return self_test()
    ops = ops_wanted(args)
    if args.list:
        for op in ops:
            print(op.title())
        return 0
    if args.emit:
        make_plans(args, ops, args.emit)
        return 0
    if args.strategies:
        return print_strategies(args, ops)
    begin = time.time()
    with tempfile.TemporaryDirectory() as folder:
        if not args.plans:
            args.plans = folder
            make_plans(args, ops, folder)
        contest.import_torch(args.cache)
        assemble(args, args.plans)
        print(f"assembled after {time.time() - begin:.0f} s", flush=True)
        if any(compiles(op, args) for op in ops):
            compile_all(ops, args)
            print(f"compiled after {time.time() - begin:.0f} s", flush=True)
        table = time_all(ops, args, begin)
    print("\n".join(summary(table, args.codes)))
    return 1 if any("WRONG" in cells[-1] for cells in table) else 0


# ---- without a GPU ---------------------------------------------------------------------------------------------


def self_test():
    failed, count = False, 0

    def ok(condition, what):
        nonlocal failed, count
        count += 1
        failed = failed or not condition
        print(f"{'ok' if condition else 'not ok'} {count} - {what}")

    ok(sorted(OPS) == list(range(1, 101)), "every number from 1 to 100 has an operation")
    cells = [cells_of(OPS[number], True, ({"fixed": (t, t, t), "eager": (2, 2, 2), "compiled": (1, 1, 1)}, 1e12, []))
             for number, t in ((1, 0.5), (2, 2.0))]
    ok(all(len(row) == len(HEAD) == len(WIDTH) for row in cells), "as many cells as heads")
    ok([row[8] for row in cells] == ["2.000", "0.500"] and cells[0][9] == "" and cells[0][10] == "2.00", "ratios and rates")
    ok(summary(cells, CODES) == ["fixed: a geometric mean of 1.000 over 2 operations, 1 below 0.95:", "  0.500  2 matmul oblong"],
       "what falls short is said")
    cells.append(cells_of(OPS[3], False, ({}, 0, ["WRONG: the process died"])))
    ok(summary(cells, CODES)[-1] == "3 matmul_batched: WRONG: the process died; not compiled", "and what is wrong")
    ok([op.number for op in ops_wanted(read_options(["--op=losses", "--part=2/3"]))] == [95, 99], "parts")
    print(f"1..{count}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
