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


def stencil(x, z):
    p = np.pad(x, 1)
    q = np.pad(z, 1)
    sides = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]
    faces = q[:-2, 1:-1, 1:-1] + q[2:, 1:-1, 1:-1] + q[1:-1, :-2, 1:-1] + q[1:-1, 2:, 1:-1] + q[1:-1, 1:-1, :-2] + q[1:-1, 1:-1, 2:]
    return {"y": f32(x / 2 + sides / 8), "w": f32(faces - 6 * z)}


def convolve(x, z, rows, cols):
    taps = [1, -2, 3, 5, 7, 5, 3, -2, 1]
    p = np.pad(x, ((0, 0), (4, 4)), "edge")
    t = sum(w * p[:, k : k + cols] for k, w in enumerate(taps))
    p = np.pad(t, ((4, 4), (0, 0)), "edge")
    y = sum(w * p[k : k + rows] for k, w in enumerate(taps))
    y[::2] = sum(w * p[k : k + rows] for k, w in enumerate(taps) if 2 <= k <= 6)[::2]
    around = np.roll(z, 1, 0) + np.roll(z, -1, 0) + np.roll(z, 1, 1) + np.roll(z, -1, 1)
    return {"y": f32(y), "w": 4 * z - around}


def pairs(v):
    """complex numbers as pairs of f32"""
    return np.stack([v.real, v.imag], axis=-1).astype(np.float32)


def fft(x):
    v = x[..., 0].astype(np.float64) + 1j * x[..., 1]
    return {"y": pairs(np.fft.fft(v, axis=1)), "z": pairs(512 * v)}


def nbody(body):
    b = body.astype(np.float64)
    d = b[None, :, :3] - b[:, None, :3]
    s = b[:, 3] * ((d**2).sum(axis=2) + np.float64(np.float32(0.01))) ** -1.5
    acc = np.zeros_like(b)
    acc[:, :3] = (d * s[:, :, None]).sum(axis=1)
    return {"acc": f32(acc)}


def monte_carlo():
    mask = np.uint64(0xFFFFFFFF)
    s = [np.arange(1, 257, dtype=np.uint64), *(np.full(256, v, np.uint64) for v in (362436069, 521288629, 88675123))]

    def xorshift():
        t = s[0] ^ s[0] << np.uint64(11) & mask
        s[0], s[1], s[2] = s[1], s[2], s[3]
        s[3] = s[3] ^ s[3] >> np.uint64(19) ^ t ^ t >> np.uint64(8)
        return s[3]

    counts = np.zeros(256, np.uint32)
    for _ in range(40):
        x = xorshift() >> np.uint64(1)
        y = xorshift() >> np.uint64(1)
        counts += x * x + y * y < 1 << 62
    c = [np.tile(np.arange(30, dtype=np.uint64)[:, None], 128), np.tile(np.arange(128, dtype=np.uint64), (30, 1))]
    key = 12345
    for _ in range(10):
        p = c[0] * np.uint64(0xD256D193)
        c = [p >> np.uint64(32) ^ np.uint64(key) ^ c[1], p & mask]
        key = key + 0x9E3779B9 & 0xFFFFFFFF
    x, y = (v.astype(np.float32).astype(np.float64) * 2.0**-32 for v in c)
    squares = f32(x * x + f32(y * y).astype(np.float64))
    hits = (squares < 1).sum()
    return {
        "counts": counts.reshape(8, 32).sum(axis=1, dtype=np.uint32),
        "hits": np.array([hits], np.uint32),
        "words": c[0][0].astype(np.uint32),
    }


def mandelbrot(w, h):
    out = np.zeros((h, w), np.uint8)
    for py in range(h):
        for px in range(w):
            cx, cy = (px * 3 << 13) // w - (2 << 13), (py * 2 << 13) // h - (1 << 13)
            x = y = n = 0
            while n < 100:
                xx, yy = x * x >> 13, y * y >> 13
                if xx + yy > 4 << 13:
                    break
                x, y = xx - yy + cx, (2 * x * y >> 13) + cy
                n += 1
            out[py, px] = n % 100
    return {"y": out}


def next_life(x):
    n = sum(np.roll(x, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
    return ((n == 3) | (n == 2) & (x == 1)).astype(np.uint8)


def life(x, z):
    bits = np.unpackbits(z.view(np.uint8).reshape(16, 128), axis=1, bitorder="little")
    for _ in range(5):
        bits = next_life(bits)
    return {"y": next_life(x), "w": np.packbits(bits, axis=1, bitorder="little").view(np.uint32)}


def compact(x, n):
    kept = x[x > 0]
    y = np.zeros(n, np.int32)
    y[: len(kept)] = kept
    count = np.array([len(kept)], np.int32)
    return {"y": y, "count": count, "many": count, "s": np.array([(kept * kept).sum()], np.uint32)}


def merge(a, b):
    return {"c": np.sort(np.concatenate([a, b]))}


def bfs(random, n):
    edges = random % n
    level = np.full(n, -1, np.int32)
    level[0] = depth = 0
    front = [0]
    while len(front):
        depth += 1
        front = np.unique(edges[front])
        front = front[level[front] < 0]
        level[front] = depth
    return {"level": level, "levels": level}


def union_find(edge, n):
    root = np.arange(n, dtype=np.int32)
    while True:
        new = root.copy()
        np.minimum.at(new, edge[:, 0], root[edge[:, 1]])
        np.minimum.at(new, edge[:, 1], root[edge[:, 0]])
        if (new == root).all():
            return {"root": root}
        root = new


def hash_table(x):
    values, first, inverse, count = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    return {"count": count[inverse].astype(np.uint32), "first": first[inverse].astype(np.uint32)}


def spin_lock():
    t = np.arange(64)
    return {
        "a": np.array([3 * 2 * 48 * 47 // 2 + 3 * 48], np.int32),
        "b": np.array([2 * 48 * 47 // 2], np.int32),
        "order": np.arange(96, dtype=np.uint32) ** 2,
        "c": (5 * 3 * (63 - t) + 10).astype(np.int32),
    }
