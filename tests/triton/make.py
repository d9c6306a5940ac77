#!/usr/bin/env python3
"""Makes the .ptx and .launch files of this folder anew, with Triton 3, which needs no GPU for that: make.py [NAME...]

NAME.TARGET.launch has the shared memory and the threads that Triton says its text needs; the sums are left for
../expect.py --bless.
"""
import pathlib
import re
import sys

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import kernels

HERE = pathlib.Path(__file__).parent

# name: parameters by name with Triton's type, constants, options, what stands before the launch in the contract, grid, arguments
MATMUL = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp16", "m": "i32", "n": "i32", "k": "i32"}
PLAN = {
    "vector_add": dict(
        signature={"x_ptr": "*fp32", "y_ptr": "*fp32", "z_ptr": "*fp32", "n": "i32"},
        constants={"BLOCK": 256},
        head="# args: x=@randint:-1000:1000:1 y=@randint:-1000:1000:2 n=1000\n# sum: z 0",
        params="x: in f32[n]; y: in f32[n]; z: out f32[n]",
        grid="ceil_div(n, 256)",
        args="x, y, z, n",
        lines=True,
    ),
    "softmax": dict(
        signature={"x_ptr": "*fp32", "y_ptr": "*fp32", "rows": "i32", "cols": "i32"},
        constants={"BLOCK": 512},
        head="# args: x=@uniform:1 rows=7 cols=300\n# near: y 1e-5 0",
        params="x: in f32[rows, cols]; y: out f32[rows, cols]",
        grid="3",
        args="x, y, rows, cols",
    ),
    "layer_norm": dict(
        signature={p: "*fp32" for p in ("x_ptr", "weight_ptr", "bias_ptr", "y_ptr", "mean_ptr", "rstd_ptr")} | {"cols": "i32", "eps": "fp32"},
        constants={"BLOCK": 128},
        head="# args: x=@uniform:1 weight=@uniform:2 bias=@uniform:3 rows=5 cols=300\n# near: y 1e-5 1e-5\n# near: mean 1e-5 0\n# near: rstd 1e-5 0",
        params="x: in f32[rows, cols]; weight: in f32[cols]; bias: in f32[cols]; y: out f32[rows, cols]; mean: out f32[rows]; rstd: out f32[rows]; eps: f32 = 0.001",
        grid="rows",
        args="x, weight, bias, y, mean, rstd, cols, eps",
    ),
    "matmul": dict(
        signature=MATMUL,
        constants={"BM": 64, "BN": 64, "BK": 32, "GROUP": 2},
        options={"num_stages": 3},
        head="# args: a=@randint:-4:5:1 b=@randint:-4:5:2 m=150 n=104 k=112\n# sum: c 0",
        params="a: in f16[m, k]; b: in f16[k, n]; c: out f16[m, n]",
        require="n % 8 == 0 && k % 16 == 0",
        grid="ceil_div(m, 64) * ceil_div(n, 64)",
        args="a, b, c, m, n, k",
        multiples=("n", "k"),
    ),
    "matmul_tma": dict(
        targets=(90,),
        signature={"a_desc": "tensordesc<fp16[64, 64]>", "b_desc": "tensordesc<fp16[64, 64]>", "c_desc": "tensordesc<fp16[64, 64]>", "k": "i32"},
        constants={"BM": 64, "BN": 64, "BK": 64},
        options={"num_stages": 3},
        head="# args: a=@randint:-4:5:1 b=@randint:-4:5:2 m=128 n=136 k=192\n# sum: c 0\n# Triton leaves out the fence, as it does without clusters; an H100 needs none then\n# suppress: mbarrier-init-fence entry=matmul_tma",
        params="a: in f16[m, k]; b: in f16[n, k]; c: out f16[m, n]",
        grid="ceil_div(m, 64), ceil_div(n, 64)",
        args="MAP a, MAP b, MAP c, k",
    ),
    "matmul_persistent": dict(
        targets=(90,),
        signature=MATMUL,
        constants={"BM": 64, "BN": 64, "BK": 64},
        options={"num_stages": 3},
        head="# args: a=@randint:-4:5:1 b=@randint:-4:5:2 m=200 n=136 k=192\n# sum: c 0",
        params="a: in f16[m, k]; b: in f16[n, k]; c: out f16[m, n]",
        grid="4",
        args="a, b, c, m, n, k",
        multiples=("m", "n", "k"),
    ),
    "matmul_cluster": dict(
        function="matmul_persistent",
        targets=(90,),
        signature=MATMUL,
        constants={"BM": 64, "BN": 64, "BK": 64},
        options={"num_stages": 3, "num_ctas": 2},
        head="# args: a=@randint:-4:5:1 b=@randint:-4:5:2 m=200 n=136 k=192\n# sum: c 0",
        params="a: in f16[m, k]; b: in f16[n, k]; c: out f16[m, n]",
        grid="4",
        args="a, b, c, m, n, k",
        multiples=("m", "n", "k"),
    ),
    "attention": dict(
        signature={"q_ptr": "*fp16", "k_ptr": "*fp16", "v_ptr": "*fp16", "o_ptr": "*fp32", "lse_ptr": "*fp32", "length": "i32", "scale": "fp32"},
        constants={"D": 64, "BM": 64, "BN": 32},
        options={"num_stages": 2},
        head="# args: q=@uniform:1 k=@uniform:2 v=@uniform:3 length=128\n# near: o 2e-3 0\n# near: lse 1e-3 0",
        params="q: in f16[2, length, 64]; k: in f16[2, length, 64]; v: in f16[2, length, 64]; o: out f32[2, length, 64]; lse: out f32[2, length]; scale: f32 = 0.5",
        grid="length / 64, 2",
        args="q, k, v, o, lse, length, scale",
    ),
    "dropout": dict(
        signature={"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32", "p": "fp32", "seed": "i32"},
        constants={"BLOCK": 256},
        head="# args: x=@randint:1:1000:1 n=1000\n# sum: y 0",
        params="x: in f32[n]; y: out f32[n]; p: f32 = 0.5",
        grid="ceil_div(n, 256)",
        args="x, y, n, p, i32 123",
    ),
    "grouped_matmul": dict(
        signature={"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp16", "sizes_ptr": "*i32", "groups": "i32", "n": "i32", "k": "i32"},
        constants={"BM": 32, "BN": 64, "BK": 32},
        head="# args: a=@randint:-4:5:1 b=@randint:-4:5:2 sizes=@randint:20:60:5 rows=189 n=96 k=64\n# sum: c 0",
        params="a: in f16[rows, k]; b: in f16[4, k, n]; c: out f16[rows, n]; sizes: in i32[4]",
        grid="5",
        args="a, b, c, sizes, i32 4, n, k",
        multiples=("n", "k"),
    ),
    "matmul_fp8": dict(
        signature={"a_ptr": "*fp8e5", "b_ptr": "*fp8e5", "c_ptr": "*fp32", "n": "i32", "k": "i32"},
        constants={"BM": 64, "BN": 64, "BK": 64},
        head="# args: a=@randint:-4:5:1 b=@randint:-4:5:2 m=128 n=64 k=128\n# sum: c 0",
        params="a: in e5m2[m, k]; b: in e5m2[n, k]; c: out f32[m, n]",
        grid="m / 64, n / 64",
        args="a, b, c, n, k",
        multiples=("n", "k"),
    ),
    "scans": dict(
        signature={"x_ptr": "*i32", "sum_ptr": "*i32", "sorted_ptr": "*i32", "count_ptr": "*i32", "best_ptr": "*i32"},
        constants={"N": 256},
        head="# args: x=@randint:0:10000:1\n# sum: sums 0 sorted 0 counts 0 best 0",
        params="x: in i32[3, 256]; sums: out i32[3, 256]; sorted: out i32[3, 256]; counts: out i32[3, 16]; best: out i32[3]",
        grid="3",
        args="x, sums, sorted, counts, best",
    ),
    "by_atomics": dict(
        signature={"x_ptr": "*i32", "bins_ptr": "*i32", "top_ptr": "*i32", "lock_ptr": "*i32", "sum_ptr": "*i32", "n": "i32"},
        constants={"BLOCK": 128},
        head="# args: x=@randint:0:10000:1 bins=@zeros top=@zeros s=@zeros n=1000\n# sum: bins 0 top 0 s 0",
        params="x: in i32[n]; bins: inout i32[10]; top: inout i32[1]; s: inout i32[1]",
        temps="$lock: i32[1] = 0",
        grid="ceil_div(n, 128)",
        args="x, bins, top, $lock, s, n",
    ),
    "cross_entropy": dict(
        signature={"x_ptr": "*bf16", "label_ptr": "*i64", "loss_ptr": "*fp32", "cols": "i32"},
        constants={"BLOCK": 256},
        head="# args: x=@uniform:1 label=@randint:0:200:2 rows=9 cols=200\n# near: loss 1e-5 0",
        params="x: in bf16[rows, cols]; label: in i64[rows]; loss: out f32[rows]",
        grid="rows",
        args="x, label, loss, cols",
    ),
}


def compiled(name, plan, target):
    """Triton's text and what it says of it."""
    names = list(plan["signature"])
    # pointers, and the numbers that are said to be, are multiples of 16
    whole = [i for i, n in enumerate(names) if plan["signature"][n][0] == "*" or n in plan.get("multiples", ())]
    source = ASTSource(
        fn=getattr(kernels, plan.get("function", name)),
        signature=plan["signature"] | {c: "constexpr" for c in plan["constants"]},
        constexprs={(len(names) + i,): v for i, v in enumerate(plan["constants"].values())},
        attrs={(i,): [["tt.divisibility", 16]] for i in whole},
    )
    triton.knobs.compilation.disable_line_info = "lines" not in plan
    return triton.compile(source, target=GPUTarget("cuda", target, 32), options={"ptx_version": 87} | plan.get("options", {}))


def arguments(plan, k):
    """Those of the plan; a tensor's descriptor is its map and its extents and strides."""
    args, maps = [], iter(k.metadata.tensordesc_meta or [])
    for arg in plan["args"].split(", "):
        if not arg.startswith("MAP "):
            args.append(arg)
            continue
        name, meta = arg[4:], next(maps)
        rows, cols = re.search(rf"\b{name}: \w+ \w+\[(\w+), (\w+)\]", plan["params"]).groups()
        box = ", ".join(str(n) for n in reversed(meta["block_size"]))
        swizzle = [0, 32, 64, 128][meta["swizzle"]]
        args.append(f"{{map: {name}, box: [{box}], swizzle: {swizzle}}}")
        args += [f"u32 {rows}", f"u32 {cols}", f"u64 {cols}", "u64 1"]
    return args


def contract(name, plan, target, k, text):
    """The launch contract, whose last arguments are those that Triton adds."""
    args = arguments(plan, k)
    temps = plan.get("temps", "")
    if k.metadata.global_scratch_size:  # for each program
        temps = f"$scratch: u8[{k.metadata.global_scratch_size * 8}]"
        args.append("$scratch")
    args += ["u64 0"] * (len(re.findall(r"\.param \.", text[: text.index(")")])) - len(args))
    lines = [plan["head"], "kaio: 1", f"kernel: {name}", f"target: sm_{target}{'a' * (target == 90)}", "params:"]
    lines += [f"  {p}" for p in plan["params"].split("; ")]
    if temps:
        lines += ["temps:", *(f"  {p}" for p in temps.split("; "))]
    if "require" in plan:
        lines += ["require:", *(f"  - {r}" for r in plan["require"].split(" && "))]
    lines += ["launches:", f"  - entry: {plan.get('function', name)}", f"    grid: [{plan['grid']}]", f"    block: [{k.metadata.num_warps * 32}]"]
    if k.metadata.num_ctas > 1:
        lines.append(f"    cluster: [{k.metadata.num_ctas}]")
    if k.metadata.shared:
        lines.append(f"    shared: {k.metadata.shared}")
    return "\n".join(lines + ["    args:", *(f"      - {a}" for a in args), ""])


def clean(text, lines):
    """Without comments, but with the lines of kernels.py where these are wanted."""
    text = re.sub(r"[ \t]*//.*", "", text)
    text = re.sub(r'"[^"]*/(\w+\.py)"', r'"\1"', text)
    return re.sub(r"\n\n+", "\n\n", text).lstrip()


def main(names):
    for name in names or PLAN:
        plan = PLAN[name]
        for target in plan.get("targets", (80, 90)):
            k = compiled(name, plan, target)
            text = clean(k.asm["ptx"], plan.get("lines"))
            (HERE / f"{name}.{target}.ptx").write_text(text)
            (HERE / f"{name}.{target}.launch").write_text(contract(name, plan, target, k, text))


if __name__ == "__main__":
    main(sys.argv[1:])
