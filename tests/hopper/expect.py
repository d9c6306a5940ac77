#!/usr/bin/env python3
"""What the kernels of this folder must compute, by numpy: expect.py [NAME...]

Compares the sums in NAME.launch with those of what is computed here, or with --bless puts them there. The inputs are those of
the line "# args:", made as kaio-run makes them (Philox4x32-10); "# sum: NAME DIGITS ..." has the first 16 digits of the
SHA-256 of each output's bytes.
"""
import hashlib
import pathlib
import re
import sys

import numpy as np

HERE = pathlib.Path(__file__).parent
TYPES = {"f16": np.float16, "f32": np.float32, "i8": np.int8, "i32": np.int32, "u32": np.uint32}


def philox(n, seed):
    """The first n words of stream 0."""
    blocks = -(-n // 4)
    c = [np.arange(blocks, dtype=np.uint64), *(np.zeros(blocks, np.uint64) for _ in range(3))]
    k = [seed & 0xFFFFFFFF, seed >> 32]
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        p, q = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(q >> np.uint64(32)) ^ c[1] ^ np.uint64(k[0]), q & low, (p >> np.uint64(32)) ^ c[3] ^ np.uint64(k[1]), p & low]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack(c, axis=1).reshape(-1)[:n]


def generate(text, shape, dtype):
    n = int(np.prod(shape))
    if text.startswith("@randint:"):
        lo, hi, seed = map(int, text.split(":")[1:])
        v = (philox(n, seed) * np.uint64(hi - lo) >> np.uint64(32)).astype(np.int64) + lo
    else:
        v = np.full(n, int(text.split(":")[1]) if text.startswith("@const:") else 0)
    return v.astype(dtype).reshape(shape)


def product(a, b, out):
    """a b^T: small whole numbers, which every order of adding up gives exactly"""
    return (a.astype(np.float64) @ b.astype(np.float64).T).astype(out)


def transpose(x):
    return {"y": x.T}


def swizzle(x):
    return {"a": x + 1, "b": x[:, :16] + 1, "c": x[:, :8] + 1}


def bulk_ring(x):
    return {"y": 2 * x + 1}


def pipeline(x):
    sums = (x * np.arange(1, 7)[:, None]).sum(1).astype(np.int32)
    flat = x.reshape(-1)
    halves = flat[: 8 * 128].reshape(8, 2, 64)
    pairs = flat[: 8 * 64].reshape(4, 2, 64)
    return {"a": sums, "b": sums, "c": (halves.sum(1) + 5).astype(np.int32), "d": 3 * pairs[:, ::-1]}


def multicast(x):
    tiles = x.reshape(5, 1, 16, 32)
    return {"y": tiles * np.array([1, 2], np.int32).reshape(1, 2, 1, 1)}


def cluster_sum(x):
    sums = x.reshape(2, 512).sum(axis=1, dtype=np.uint32)
    return {"a": sums, "b": sums, "c": sums}


def cp_async_ring(x):
    turned = np.roll(x, -32, axis=1)
    return {"y": turned, "z": turned}


def wgmma_ring(a, b):
    return {"c": product(a, b, np.float32)}


def wgmma_cluster(a, b):
    return {"c": product(a, b, np.float16)}


def wgmma_types(a, b, p, q):
    return {"c": product(a, b, np.float32), "r": product(p, q, np.int32)}


def wgmma_mn(a, b):
    return {"c": product(a.T, b.T, np.float32)}


def wgmma_registers(a, b):
    return {"c": product(2 * a, b, np.float32)}


def wgmma_chain(q, k, v):
    p = np.clip(product(q, k, np.float32), -8, 8)
    return {"o": product(p, v.T, np.float32)}


def programmatic(x):
    return {"y": x * 3, "z": (x * 3 + 1)[::-1]}


def bulk_reduce(x, y, z):
    swapped = x.reshape(3, 2, 128)[:, ::-1].reshape(6, 128)
    return {"y": y + x.sum(axis=0, dtype=np.float32), "z": np.minimum(z, x.min(axis=0)), "w": x + swapped}


def lifetime(x):
    v = x[63::-1] + x[64:]
    return {"y": v + np.repeat(v[[0, 32]], 32)}


def write_back(x):
    return {"y": 2 * x, "z": 2 * x, "w": 2 * x.reshape(-1, 2)[:, ::-1].reshape(-1)}


def grouped(x):
    sizes = 5 + 7 * np.arange(6)
    parts = np.split(x, np.cumsum(sizes)[:-1])
    return {"y": np.stack([part.sum(axis=0, dtype=np.float32) for part in parts])}


def cuda_barrier(x):
    return {"y": 2 * x}


def sums_of(name, text):
    args = dict(a.split("=", 1) for a in re.search(r"^# args: (.*)$", text, re.M)[1].split())
    inputs = {}
    for p, direction, kind, shape in re.findall(r"^  (\w+): (in|inout) (\w+)\[([^]]*)\]$", text, re.M):
        extents = [int(args[e]) if e in args else int(e) for e in shape.split(", ")]
        inputs[p] = generate(args[p], extents, TYPES[kind])
    outputs = globals()[name](**inputs)
    for p, direction, kind in re.findall(r"^  (\w+): (out|inout) (\w+)\[", text, re.M):
        assert outputs[p].dtype == TYPES[kind], (name, p, outputs[p].dtype)
    digits = {p: hashlib.sha256(np.ascontiguousarray(v).tobytes()).hexdigest()[:16] for p, v in outputs.items()}
    return "# sum: " + " ".join(f"{p} {d}" for p, d in digits.items())


def main(names):
    bless = "--bless" in names
    names = [n for n in names if n != "--bless"] or sorted(p.stem for p in HERE.glob("*.launch"))
    wrong = 0
    for name in names:
        path = HERE / f"{name}.launch"
        text = path.read_text()
        new = re.sub(r"^# sum:.*$", sums_of(name, text), text, flags=re.M)
        if bless:
            path.write_text(new)
        elif new != text:
            print(f"{path}: the sums are not those of numpy")
            wrong = 1
    return wrong


sys.exit(main(sys.argv[1:]))
