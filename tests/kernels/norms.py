#!/usr/bin/env python3
"""norms.py SEED COUNT: kernels that normalise over random axes of random shapes, the last of which is mostly kept."""

import random
import sys


def shape(draw, rank, reduced):
    """Extents: numbers of what is reduced, numbers or dimensions of what is not."""
    sizes = [2, 3, 5, 6, 7, 8, 13, 16, 17, 33, 40]
    return [str(draw.choice(sizes)) if a in reduced or draw.random() < 0.3 else f"n{a}" for a in range(rank)]


def equations(kind, x, xr, r, own, k, full, gain):
    """x: the element; xr: the term; r, own, k: the indices of a reduction, of its own, and those kept; full: all."""
    centred = f"mu[{k}] = mean[{r}]({xr})"
    return {
        "rms": [f"ms[{k}] = sum[{r}]({xr} * {xr})", f"y[{full}] = {x} * rsqrt(ms[{k}] + 1){gain}"],
        "softmax": [f"y[{full}] = softmax[{own}]({x}){gain}"],
        "layer": [centred, f"va[{k}] = sum[{r}](({xr} - mu[{k}]) * ({xr} - mu[{k}]))",
                  f"y[{full}] = ({x} - mu[{k}]) * rsqrt(va[{k}] + 1){gain}"],
        "range": [f"lo[{k}] = min[{r}]({xr})", f"hi[{k}] = max[{r}]({xr})",
                  f"y[{full}] = ({x} - lo[{k}]) / (hi[{k}] - lo[{k}] + 1){gain}"],
        "lse": [f"top[{k}] = max[{r}]({xr})", f"y[{k}] = log(sum[{r}](exp({xr} - top[{k}]))) + top[{k}]"],
        "two": [f"y[{full}] = {x} / (norm1[{r}]({xr}) + 1) + sum[{r}]({xr} > 0 ? {xr} : 0){gain}"],
        "chosen": [f"z[{k}] = sum[{r}](abs({xr}))", f"y[{full}] = {x} > 0 ? z[{k}] : {x}{gain}"],
        "var": [centred, f"va[{k}] = var[{r}]({xr})", f"y[{full}] = ({x} - mu[{k}]) * rsqrt(va[{k}] + 1){gain}"],
    }[kind]


def kernel(draw, number):
    rank = draw.randint(2, 5)
    reduced = [a for a in range(rank - 1) if draw.random() < 0.45] or [draw.randrange(rank - 1)]
    kept = [a for a in range(rank) if a not in reduced]
    index, terms = "ijklm"[:rank], "abopw"[:rank]
    size = shape(draw, rank, reduced)
    type_ = draw.choice(["f32", "f32", "f16", "bf16"])
    kind = draw.choice(["rms", "softmax", "layer", "range", "lse", "two", "chosen", "var"])
    params, gain = [f"x: in {type_}[{', '.join(size)}]"], ""
    if draw.random() < 0.4 and kind != "lse":
        along = draw.randrange(rank)
        params.append(f"gain: in f32[{size[along]}]")
        gain = f" * gain[{index[along]}]"
    small = ", ".join(size[a] for a in kept)
    params += [f"{name}: out f32[{small}]" for name in {"range": ["lo"], "chosen": ["z"]}.get(kind, [])]
    params.append(f"y: out f32[{small}]" if kind == "lse" else f"y: out {type_}[{', '.join(size)}]")
    lines = equations(kind, f"x[{', '.join(index)}]",
                      f"x[{', '.join(terms[a] if a in reduced else index[a] for a in range(rank))}]",
                      ", ".join(terms[a] for a in reduced), ", ".join(index[a] for a in reduced),
                      ", ".join(index[a] for a in kept), ", ".join(index), gain)
    dims = [s for s in dict.fromkeys(size) if s.startswith("n")]
    cases = "; ".join(", ".join(f"{d}: {draw.choice([1, 2, 3, 4, 8, 9, 12, 20, 33])}" for d in dims) for _ in range(2))
    print(f"kernel: r{number}\nparams:")
    print("".join(f"  {p}\n" for p in params) + "compute: |\n" + "".join(f"  {e}\n" for e in lines), end="")
    print("cases:\n" + "".join(f"  c{i}: {{{c}}}\n" for i, c in enumerate(cases.split("; "))), end="")


def main():
    draw = random.Random(int(sys.argv[1]))
    for number in range(int(sys.argv[2])):
        if number:
            print("---")
        kernel(draw, number)


main()
