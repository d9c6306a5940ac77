"""What the kernels of this folder must compute; see ../expect.py."""
import numpy as np


def f32(v):
    return np.asarray(v).astype(np.float32)


def product(a, b, out=np.float32):
    """a b: of small whole numbers, which every order of adding up gives exactly"""
    return (a.astype(np.float64) @ b.astype(np.float64)).astype(out)


def vector_add(x, y):
    return {"z": x + y}


def saxpy(a, x, y):
    y = f32(a) * x + y
    return {"y": f32(a) * x + y}


def reduce(x, n):
    block = np.arange(n) // 256 % 3
    sums = np.array([x[block == b].sum() for b in range(3)], np.int32)
    return {"a": sums, "b": sums, "c": sums, "d": np.array([x[block == b].max() for b in range(3)])}


def scan(x):
    pairs = x.reshape(2, 512)
    return {
        "a": x.reshape(4, 256).cumsum(axis=1, dtype=np.int32),
        "b": pairs.cumsum(axis=1, dtype=np.int32) - pairs,
    }


def look_back(x):
    return {"y": x.cumsum(dtype=np.int32), "z": x.cumsum(dtype=np.int32)}


def histogram(x):
    return {"count": np.bincount(x.view(np.uint8), minlength=256).astype(np.uint32)}


def bitonic(x):
    return {"x": np.sort(x)}


def radix(keys, values):
    order = np.argsort(keys >> 4 & 255, kind="stable")
    return {"sorted": keys[order], "moved": values[order]}


def transpose(x, b, d):
    return {"y": x.T, "c": b.T, "e": d.T}


def matmul_tiled(a, b):
    return {"c": product(a, b), "d": product(a, b)}


def matmul_wmma(a, b, p, q):
    return {"c": 2 * (product(a, b.T) + 1), "r": product(p, q.T, np.int32)}


def matmul_mma(a, b):
    return {"c": product(a, b.T)}


def groups(x):
    warps = x.reshape(16, 32)
    odd, labels = (np.zeros_like(warps) for _ in range(2))
    for w, row in enumerate(warps):
        for parity in range(2):
            mine = np.flatnonzero(row & 1 == parity)
            odd[w, mine] = 100 * len(mine) + np.arange(len(mine))
        for label in range(4):
            labels[w, row & 3 == label] = row[row & 3 == label].sum()
    tiles = x.reshape(8, 64)
    return {
        "sums": tiles.sum(axis=1, dtype=np.int32),
        "turned": np.repeat(tiles[:, 37:38], 64, axis=1),
        "odd": odd,
        "labels": labels,
        "prefix": warps.cumsum(axis=1, dtype=np.int32) - warps,
    }
