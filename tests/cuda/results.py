"""What the kernels of this folder must compute; see ../expect.py."""
import functools
import hashlib
import itertools
import math
import zlib

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


def pipeline(x):
    tiles = x.reshape(4, 5, 64)[:, :, ::-1]
    rounds = x.reshape(4, 10, 32)[:, :, ::-1]
    b = np.zeros((4, 32), np.int32)
    for k in range(10):
        b = 3 * b + rounds[:, k]
    a = (tiles * np.arange(1, 6).reshape(1, 5, 1)).sum(axis=1).astype(np.int32)
    return {"a": a, "b": b, "c": x.reshape(320, 4)[:, ::-1]}


def distance(a, b):
    d = np.zeros((len(a) + 1, len(b) + 1), np.int32)
    d[0], d[:, 0] = np.arange(len(b) + 1), np.arange(len(a) + 1)
    for i, p in enumerate(a):
        for j, q in enumerate(b):
            d[i + 1, j + 1] = min(d[i, j + 1] + 1, d[i + 1, j] + 1, d[i, j] + (p != q))
    return d[-1, -1]


def search(text, word, a, b, n):
    found = np.array([list(text[i : i + 3]) == list(word) for i in range(n)])
    # Horspool's search begins anew at each stretch of 16
    shift = [max([2 - k for k in range(2) if word[k] == c] or [3]) if c not in word[:2] else min(2 - k for k in range(2) if word[k] == c) for c in range(4)]
    count = 0
    for first in range(0, n, 16):
        i = first
        while i < first + 16 and i + 3 <= n:
            count += found[i]
            i += shift[text[i + 2]]
    d = [distance(p, q) for p, q in zip(a, b)]
    return {"found": found.astype(np.uint8), "count": np.array([count], np.int32), "d": np.array(d, np.int32)}


def checksums(x):
    crc = np.array([zlib.crc32(row.tobytes()) for row in x], np.uint32)
    return {"a": crc, "b": crc, "c": crc, "d": np.array([zlib.adler32(row.tobytes()) for row in x], np.uint32)}


def sha256(x):
    return {"d": np.stack([np.frombuffer(hashlib.sha256(row.tobytes()).digest(), np.uint32) for row in x])}


def aes(x, key):
    def times(a, b):
        v = 0
        while b:
            v ^= a if b & 1 else 0
            a = a << 1 ^ (0x11B if a & 128 else 0)
            b >>= 1
        return v

    inverse = [next((b for b in range(256) if times(a, b) == 1), 0) for a in range(256)]
    box = np.array([sum(((v >> k ^ v >> (k + 4) % 8 ^ v >> (k + 5) % 8 ^ v >> (k + 6) % 8 ^ v >> (k + 7) % 8) & 1) << k for k in range(8)) ^ 0x63 for v in inverse])
    assert box[0x53] == 0xED
    keys, power = [list(key[4 * i : 4 * i + 4]) for i in range(4)], 1
    for i in range(4, 44):
        v = keys[-1]
        if i % 4 == 0:
            v = [int(box[b]) for b in v[1:] + v[:1]]
            v[0] ^= power
            power = times(power, 2)
        keys.append([int(a) ^ int(b) for a, b in zip(keys[-4], v)])
    keys = np.array(keys, np.uint8).reshape(11, 16)
    double = np.array([times(v, 2) for v in range(256)])
    s = x ^ keys[0]
    for k in range(1, 11):
        s = box[s][:, [(i + 4 * (i % 4)) % 16 for i in range(16)]]
        if k < 10:
            c = s.reshape(-1, 4, 4)
            s = (c ^ c[..., [0]] ^ c[..., [1]] ^ c[..., [2]] ^ c[..., [3]] ^ double[c ^ np.roll(c, -1, axis=2)]).reshape(-1, 16)
        s = s ^ keys[k]
    return {"y": s.astype(np.uint8)}


def quicksort(x):
    t = np.arange(20)
    n, m = t // 3, t % 3
    a = np.where(m == 0, n + 1, np.where(m == 1, n + 2, 2 * n + 3))
    moves = (1 << t % 6) - 1
    return {"x": np.sort(x, axis=1), "a": a.astype(np.int32), "moves": moves.astype(np.int32), "pegs": (2 * moves).astype(np.int32)}


def virtual(x, z):
    t = np.arange(96) % 3
    y = np.select([t == 0, t == 1], [x * x * 10 + 4, x * (x + 1) // 2 * 10 + 3], x * x * 355 // 113 * 10)
    w = []
    for t in range(64):
        row, most = [int(v) for v in z[t % 32]], 3 + t % 5
        f = [lambda a, b: a + b, lambda a, b: a * b, max, lambda a, b: abs(a - b)][t % 4]
        w.append(functools.reduce(f, row) + functools.reduce(lambda a, b: min(a + b, most), row))
    return {"y": y.astype(np.int32), "w": np.array(w, np.int32)}


def says():
    return {}


def dynamic(x, n):
    d = x[:n]
    y = 3 * np.roll(d, -1) + (np.roll(d, -2) & 255)
    return {"y": y.astype(np.int32), "z": d[::-1] * 0.5 + x[:13:-1]}


def interpreter(x):
    i = np.arange(len(x))
    powers = 3 ** np.arange(6)
    thirds = x[:, None] // powers
    rest = np.where(i > 0, thirds.sum(axis=1) % np.maximum(i, 1), -1)
    rounds = (thirds > 0).sum(axis=1)
    return {"y": ((100 - rest) ** 2).astype(np.int32), "steps": (13 + 8 * rounds).astype(np.int32)}


def quotient(a, b):
    """a / b of integers of any size, towards zero"""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def wrapped(v, bits):
    v &= (1 << bits) - 1
    return v - (1 << bits) if v >> (bits - 1) else v


def divide(a, b, c, d):
    u = (1 << 64) - 1
    p = 0xFFFFFFFF00000001
    out = {k: [] for k in ("q", "r", "uq", "ur", "known", "p", "high", "shigh", "y")}
    for s, t in zip([int(v) for v in a], [int(v) for v in b]):
        out["q"].append(quotient(s, t))
        out["r"].append(s - quotient(s, t) * t)
        out["uq"].append((s & u) // (t & u))
        out["ur"].append((s & u) % (t & u))
        low = wrapped(s, 32)
        known = quotient(s, 1000003) + s - 97 * quotient(s, 97) + (s & u) // 10
        known += quotient(low, 7) + (s & 0xFFFFFFFF) % 641 + quotient(wrapped(s, 16), 3)
        out["known"].append(wrapped(known, 64))
        out["p"].append(pow(s & u, t & 1023, p))
        out["high"].append((s & u) * (t & u) >> 64)
        out["shigh"].append(s * t >> 64)
    for s, t in zip([int(v) for v in c], [int(v) or 1 for v in d]):
        us, ut = s & 0xFFFFFFFF, t & 0xFFFFFFFF
        byte, half = wrapped(t, 8), wrapped(t, 16)
        v = quotient(s, t) + s - t * quotient(s, t) + us // ut + us % ut
        v += quotient(wrapped(s, 8), byte) if byte else 5
        v += wrapped(s, 16) - half * quotient(wrapped(s, 16), half) if half else 6
        out["y"].append(wrapped(v, 32))
    types = {"uq": np.uint64, "ur": np.uint64, "p": np.uint64, "high": np.uint64, "y": np.int32}
    return {k: np.array(v, types.get(k, np.int64)) for k, v in out.items()}


def local_array(x):
    a = np.zeros(48, np.uint32)
    weight = np.arange(1, 49, dtype=np.uint32)
    for p in itertools.permutations(range(1, 6)):
        if p != (1, 2, 3, 4, 5):  # which is not counted
            v = np.zeros(48, np.uint32)
            for k in p:
                v = v * weight + np.uint32(k)
            a ^= v
    b = np.zeros(6, np.int32)
    for p in itertools.permutations(range(6)):
        b[p[0]] += all(abs(p[i] - p[j]) != j - i for i in range(6) for j in range(i + 1, 6))
    e = np.pad(x, 1, "edge")
    h, w = x.shape
    near = np.stack([e[i : i + h, j : j + w] for i in range(3) for j in range(3)])
    return {"a": a, "b": b, "y": np.median(near, axis=0).astype(np.float32)}


def fields(v):
    out = []
    for x in [int(x) for x in v]:
        rest = max(x - 3 * quotient(x, 3), 0)
        last = x + rest & 255
        y = (x & 7) + 10 * ((x >> 3) + 1 & 127) + 100 * wrapped(wrapped(-x, 12) - 2, 12) + 1000 * (x * 5 & 1023)
        y += wrapped(3 * x, 16) + 7 * wrapped(-x, 16) + (x + 1 & 255) + last
        out.append(y + wrapped(x * 1000003, 40) + 11 * wrapped(x, 24))
    return {"y": np.array(out, np.int64)}


def gamma(v):
    return np.array([math.gamma(t) for t in v])


def double_math(x):
    v = x
    erf = np.array([math.erf(t) for t in 3 * v - 1.5])
    y = [
        np.sin(20 * v),
        np.exp(10 * v - 5),
        np.log(v + 0.001),
        (v + 0.5) ** 3.7,
        erf,
        gamma(4 * v + 0.25),
        np.arctan2(v - 0.5, 0.3),
        np.cbrt(v) + np.sqrt(v) + 1 / np.sqrt(v + 1) + np.hypot(v, 2),
        np.tanh(2 * v - 1) + np.log1p(v) + np.expm1(v),
        np.fmod(100 * v, 0.7) + np.floor(10 * v) + np.rint(10 * v) + np.ldexp(v, 5),
    ]
    return {f"y{i}": w for i, w in enumerate(y)}


def float_math(x):
    v = x.astype(np.float64)
    h = f32(x)
    whole = np.floor(4 * h) + np.rint(4 * h) + np.trunc(-4 * h)
    y = [
        np.sin(3 * v),
        np.cos(3 * v),
        np.exp(4 * v - 2),
        np.log(v + np.float64(np.float32(0.01))),
        (v + 0.5) ** 2.5,
        np.sinh(v),
        np.array([math.erf(2 * t - 1) for t in v]),
        v / (v + 1),
        np.sqrt(v) + 1 / np.sqrt(v + 1),
        np.arctan(5 * v) + np.pi / 2,
        np.fmod(h, np.float32(0.3)) + whole,
        2 ** (3 * v) + 10**v + np.log2(v + 1) + np.log10(v + 1) + np.cbrt(v),
    ]
    z = [
        np.sin(v) + np.cos(v) + np.tan(v),
        np.exp(v) + 10**v + np.log2(v + 1) + np.log(v + 1),
        v / (v + 2) + (v + 0.5) ** 1.5,
        np.clip(3 * v - 1, 0, 1) + 1 / (v + 1) + np.sqrt(v),
        0 * v,
        2 * v + v / 3,
        np.minimum(v, 0.5) + v - v + np.abs(v - 1),
        np.floor(10 * h) + v + np.trunc(7 * h),
    ]
    return {"y": f32(np.stack(y, axis=1)), "z": f32(np.stack(z, axis=1)), "t": f32(np.tanh(2 * v - 1))}


def halves(x, y, p, q, n):
    a, b = x.astype(np.float64), y.astype(np.float64)
    c = a * b + 0.5 + 2 * a - np.minimum(a, b) + np.maximum(np.abs(a), b)
    greater = (a > b).all(axis=1)
    r = p.astype(np.float64) * q + [3, -3] + p.astype(np.float64) ** 2
    whole = p[:, 0] + r[:, 0] + np.arange(n)
    return {
        "z": -c[:, ::-1].astype(np.float16),
        "flags": (greater + 2 + 8 * (a[:, 1] < b[:, 1])).astype(np.uint32),
        "r": f32(r),
        "whole": whole.astype(np.int32),
        "total": f32([(a * b).sum()]),
    }


def dot_bytes(a, b, v, w):
    c = product(a, b.T, np.int32)
    p, q = (u.view(np.uint8).reshape(-1, 4).astype(np.int64) for u in (v, w))
    ps, qs = (u.view(np.int8).reshape(-1, 4).astype(np.int64) for u in (v, w))
    ph, qh = (u.view(np.int16).reshape(-1, 2).astype(np.int64) for u in (v, w))
    pu = v.view(np.uint16).reshape(-1, 2).astype(np.int64)

    def packed(lanes, dtype=np.uint8):
        return np.ascontiguousarray(lanes.astype(dtype)).view(np.uint32)[:, 0]

    y = [
        packed(p + q),
        packed(np.maximum(p - q, 0)),
        packed(np.maximum(ps, qs), np.int8),
        packed(np.abs(p - q)),
        packed(0 - (p > q)),
        packed(p + q + 1 >> 1),
        np.abs(p - q).sum(axis=1),
        packed(np.clip(ph + qh, -32768, 32767), np.int16),
        (ph * qs[:, :2]).sum(axis=1) + 5,
        (pu * q[:, 2:]).sum(axis=1) + 7 + packed(np.stack([q[:, 1], p[:, 1], q[:, 3], p[:, 3]], axis=1)) + np.abs(v.view(np.int32).astype(np.int64) - w.view(np.int32)) + 1,
    ]
    return {"c": c, "y": np.stack([u.astype(np.int64).astype(np.uint32) for u in y], axis=1)}


def loads(x, v, b, n):
    y = sum(k * np.roll(x, -i) for i, k in enumerate((1, 3, 5, 7, 11, 13)))
    after = np.roll(v, -1, axis=0)
    w = np.stack([v[:, 3], v[:, 2] + after[:, 2], v[:, 1], v[:, 0] - after[:, 3]], axis=1)
    c = np.concatenate([b[:, 1:2], np.full((n, 1), 77, np.uint8), b[:, 4:6], b[:, 12:16], b[:, :8]], axis=1)
    return {"y": y, "w": w, "c": c}


def mask_of(lanes):
    return sum(1 << int(lane) for lane in np.flatnonzero(lanes))


def votes(x):
    lane = np.arange(32)
    rows = []
    for w, v in enumerate(x.reshape(4, 32)):
        block = x.reshape(2, 64)[w // 2]
        ballot = mask_of(v & 1)
        odd = (v & 1).cumsum() - (v & 1)
        for i in range(32):
            half = v[i // 16 * 16 :][:16]
            same = half // 64 == half[0] // 64
            up = v[i - 3] if i % 8 >= 3 else v[i]
            down = v[i + 5] if i + 5 < 32 else v[i]
            wide = (int(v[31 - i]) << 33) | (w * 32 + 31 - i)
            set_bits = [k for k in range(i, 32) if ballot >> k & 1]
            reverse = int(f"{int(v[i]):032b}"[::-1], 2)
            clz = 32 - int(v[i]).bit_length()
            ffs = (int(v[i]) & -int(v[i])).bit_length()
            rows.append(
                [
                    ballot,
                    (half > 90).any() | (half > 5).all() << 1,
                    mask_of(v % 5 == v[i] % 5),
                    (0xFFFF << i // 16 * 16) + 1 if same.all() else 0,
                    up + 1000 * down,
                    v[i ^ 9] + 1000 * v[i // 16 * 16 + i * 7 % 16],
                    wide >> 32 ^ wide & 0xFFFFFFFF,
                    odd[i] if v[i] & 1 else mask_of((v & 3) == 2),
                    (block > 50).sum() + 1000 * (block == 17).any() + 5000,
                    (set_bits[0] if set_bits else 0xFFFFFFFF) + (reverse ^ clz ^ ffs) & 0xFFFFFFFF,
                ]
            )
    z = []
    for v in x.reshape(4, 32):
        for i in lane:
            mine = v[i % 2 :: 2]
            either = np.bitwise_xor.reduce(v) + 256 * np.bitwise_or.reduce(mine)
            z.append([mine.sum(), int(v.max()) - 50, mine.min(), either])
    count = np.bincount(x % 7, minlength=7)
    rank = [np.bitwise_xor.reduce(np.arange(n) ** 2 + 1) for n in count]
    return {
        "y": np.array(rows, np.int64).astype(np.uint32),
        "z": np.array(z, np.int64).astype(np.uint32),
        "count": count.astype(np.uint32),
        "rank": np.array(rank, np.uint32),
    }


def cluster(x, v):
    rank = np.repeat(np.arange(4), 64)
    y = np.roll(v, 1) + 10 * v + 100 * np.roll(v, -1) + 20000 + 100000 * (rank // 2)
    return {"count": np.bincount(x & 255, minlength=256).astype(np.uint32), "y": y.astype(np.int32)}


def clocks():
    s = np.arange(40, dtype=np.uint32)
    for _ in range(100):
        s = s * np.uint32(1664525) + np.uint32(1013904223)
    ids = np.arange(40) % 32 + 300 + 0xFFFFFFFF + 20 & 0xFFFFFFFF
    return {"ok": np.tile(15 + (s & np.uint32(0xFFFF0000)), (6, 1)), "ids": np.tile(ids.astype(np.uint32), (6, 1))}


def named(x):
    t = np.arange(64)
    y = np.zeros((3, 2, 64), np.int32)
    for k in range(7):
        y = 5 * y + np.stack([x[:, k, t ^ 1], x[:, k, ::-1]], axis=1)
    return {"y": y}


def rows(x, weight, bias):
    v = x.astype(np.float64)
    lse = np.log(np.exp(v).sum(axis=1))
    z = (v - v.mean(axis=1, keepdims=True)) / np.sqrt(v.var(axis=1, keepdims=True) + 0.001) * weight + bias
    return {"y": f32(np.exp(v - lse[:, None])), "lse": f32(lse), "z": f32(z)}


def attention(q, k, v, length):
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    s = np.where(np.tri(length), q @ k.transpose(0, 2, 1) * 0.5, -np.inf)
    e = np.exp(s)
    return {"o": f32(e / e.sum(axis=2, keepdims=True) @ v)}


def solvers(a, m, b, lower, upper, right):
    spd = a @ a.transpose(0, 2, 1) + 16 * np.eye(16)
    t = []
    for lo, up, r in zip(lower.astype(np.float64), upper.astype(np.float64), right):
        t.append(np.linalg.solve(np.diag(lo[1:], -1) + 4 * np.eye(128) + np.diag(up[:-1], 1), r))
    return {"l": np.linalg.cholesky(spd), "x": np.linalg.solve(m, b[..., None])[..., 0], "t": f32(t)}


def kmeans(point, centre):
    centre = centre.copy()
    for _ in range(3):
        d = ((point[:, None] - centre) ** 2).sum(axis=2)
        label = d.argmin(axis=1).astype(np.int32)
        for k in range(5):
            mine = point[label == k]
            if len(mine):
                centre[k] = [quotient(int(v), len(mine)) for v in mine.sum(axis=0)]
    return {"centre": centre, "label": label}


def image(x, b, w, h):
    v = x.astype(np.float64)
    e = np.pad(v, 2, "edge")
    sums = weights = 0
    for i in range(5):
        for j in range(5):
            u = e[i : i + h, j : j + w]
            k = np.exp(-((i - 2) ** 2 + (j - 2) ** 2) * 0.125 - (u - v) ** 2 * 4)
            sums, weights = sums + k * u, weights + k
    colour = b.reshape(h, w, 3).astype(np.int64)
    grey = colour @ [77, 150, 29] + 128 >> 8
    s = b[0].astype(np.int64).cumsum(axis=0).cumsum(axis=1)
    return {"y": f32(sums / weights), "s": s.astype(np.uint32), "g": grey.astype(np.uint8)}


def sparse(random, x):
    lengths = random[:50] % 8
    lengths[5] = 70
    y = np.zeros(50)
    used = random[: lengths.sum()]
    np.add.at(y, np.repeat(np.arange(50), lengths), (used >> 28) * x[(used >> 4) % 50].astype(np.float64))
    return {"y": f32(y), "z": f32(y)}


def structs(x):
    e = np.array([1.5, 2.5, -3, 4])[(np.arange(12) + 3) % 4]
    return {"y": f32(np.clip(3 * x[::2, :25] - 7, -90.5, 120)), "z": -5 - 600 + 0.25 + 600 + e + 5000000000 + 1000}


def cub(x):
    blocks = x.reshape(2, 256)
    keys = np.sort(blocks & 255, axis=1).astype(np.uint32)
    heads = np.ones_like(blocks)
    heads[:, 1:] = keys[:, 1:] != keys[:, :-1]
    first = x[:64].reshape(2, 32)
    most = np.maximum.accumulate(first, axis=1)
    before = np.concatenate([np.full((2, 1), -1000000, np.int32), most[:, :-1]], axis=1).reshape(8, 8)
    before[:, 0] += first.reshape(8, 8).sum(axis=1, dtype=np.int32)
    return {
        "sums": blocks.cumsum(axis=1, dtype=np.int32).reshape(-1),
        "sorted": keys.reshape(-1),
        "heads": heads.reshape(-1),
        "most": (blocks.max(axis=1) + blocks.sum(axis=1)).astype(np.int32),
        "y": before.reshape(-1),
    }


def atomics(x):
    v = x.astype(np.int64)
    u = v & 0xFFFFFFFF
    i = [v.sum(), -v.sum(), min(v.min(), 0), max(v.max(), 0), -1, 0, np.bitwise_xor.reduce(v), 128, v[:64].sum(), v[64:].sum()]
    count, down = 5, 5
    for _ in range(128):
        count = 0 if count >= 9 else count + 1
        down = 9 if down == 0 or down > 9 else down - 1
    bits = functools.reduce(lambda a, b: a | b, (1 << (int(k) & 63) for k in v))
    w = [sum(int(k) << 20 for k in v) % 2**64, int((v * v).max()), bits]
    odd = v[(v & 1) == 1]
    return {
        "i": np.array(i).astype(np.int32),
        "u": np.array([count, down, min(u.min(), 5), max(u.max(), 5)], np.uint32),
        "w": np.array(w, np.uint64),
        "l": np.array([min(v.min(), 0) << 33, max(v.max(), 0) << 33]),
        "f": f32([v.sum(), max(v.max(), 0)]),
        "d": np.array([v.sum() * 0.5]),
        "y": np.array([odd.sum(), max(v.max(), 0), len(odd)], np.int32),
    }


def language(x):
    inner = 11 * 6 + (3 * 5 + 0) - (7 * 5 + 0)
    root = 13 * 8 + inner - (5 * 4 + 0)
    t = np.arange(6)
    y = np.where(t & 1, root, inner) + np.where(t & 1, np.array([1, 2, 3])[t % 3], np.array([4, 0, 0])[t % 3])
    z = []
    for t, v in enumerate(int(v) for v in x):
        wide = v * v * 0x123456789ABCDEF
        u = int(f32(v).view(np.uint32)) ^ 0x1234
        last = 3 * (3 * v + t) + t if v & 1 else quotient(v, 3)
        z.append([(2 * v if v > 0 else -v) + v + 2 * v + 3 + 4, wrapped(u, 32), wrapped(13 + wrapped(wide >> 64, 32) + wrapped(wide, 32), 32), last])
    return {"y": y.astype(np.int32), "z": np.array(z, np.int32)}


def small_floats(exponent, mantissa, bias):
    """The finite values of a float of 8 bits that are not negative, by code"""
    code = np.arange(128)
    e, m = code >> mantissa, code & (1 << mantissa) - 1
    v = np.where(e > 0, (1 + m / 2.0**mantissa) * 2.0 ** (e - bias), m / 2.0**mantissa * 2.0 ** (1 - bias))
    return v[:127] if exponent == 4 else v[: 31 << mantissa]


def nearest(v, table):
    """Codes of what is nearest, the even one of two; the largest for what is beyond"""
    a = np.abs(v.astype(np.float64))
    up = np.minimum(np.searchsorted(table, a), len(table) - 1)
    down = np.maximum(up - 1, 0)
    low, high = a - table[down], table[up] - a
    code = np.where((low < high) | (low == high) & (down % 2 == 0), down, up)
    return (code | np.where(np.signbit(v), 128, 0)).astype(np.uint8)


def narrow(x):
    e4, e5 = small_floats(4, 3, 7), small_floats(5, 2, 15)
    a, b = nearest(x, e4), nearest(8 * x, e5)
    sign = np.where(np.signbit(x), -1, 1)
    back = sign * (e4[a & 127] + e5[b & 127])
    v = x.reshape(32, 2).astype(np.float64)
    return {
        "a": a,
        "b": b,
        "back": f32(back),
        "y": a.view(np.uint16),
        "z": f32(sign * e4[a & 127]).reshape(32, 2),
        "h": v.sum(axis=0).astype(np.float16),
        "c": (f32(np.trunc(v / 8).sum(axis=0)).view(np.uint32) >> 16).astype(np.uint16),
        "one": np.array([np.trunc(v[:, 0] / 4).sum(), 0], np.float16),
    }


def heap(x):
    modes = [np.bincount(row.view(np.uint32) % 7, minlength=7).argmax() for row in x]
    blocks = x.reshape(8, 60)
    z = np.roll(blocks, -1, axis=1) + 2 * blocks[:, ::-1]
    return {"y": np.sort(x, axis=1), "modes": np.array(modes, np.int32), "z": z.reshape(-1)}
