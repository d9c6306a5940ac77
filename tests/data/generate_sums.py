#!/usr/bin/env python3
"""Prints numbers that tests/unit/data_generate.c compares with: quantiles of the normal distribution at 40 digits, from
mpmath's inverse error function."""
import mpmath as mp

mp.mp.dps = 40
for word in (0, 1, 1000, 0x01000000, 0x10000000, 0x13333333, 0x20000000, 0x7FFFFFFF, 0x80000000, 0xC0000000,
             0xF0000000, 0xFFFFFFFF):
    p = (mp.mpf(word) + mp.mpf("0.5")) / 2**32
    x = -mp.sqrt(2) * mp.erfinv(1 - 2 * p)
    print(f"    {{0x{word:08x}, {mp.nstr(x, 20)}}},")


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & M, (p0 >> 32) ^ c[3] ^ k[1], p0 & M]
        k = [(k[0] + 0x9E3779B9) & M, (k[1] + 0xBB67AE85) & M]
    return c


M = 0xFFFFFFFF
FNV, PRIME = 0xCBF29CE484222325, 0x100000001B3


def fnv(data):
    h = FNV
    for b in data:
        h = ((h ^ b) * PRIME) & 0xFFFFFFFFFFFFFFFF
    return h


def words(n, seed=0, name=None):
    stream = fnv(name.encode()) if name else 0
    key = (seed & M, seed >> 32)
    out = []
    for block in range((n + 3) // 4):
        out += philox((block & M, block >> 32, stream & M, stream >> 32), key)
    return out[:n]


def show(what, data):
    print(f"{what}: 0x{fnv(data.tobytes()):016x}")


import ml_dtypes
import numpy as np

N = 1000


def normal(w):
    x = [-mp.sqrt(2) * mp.erfinv(1 - 2 * (mp.mpf(v) + 0.5) / 2**32) for v in w]
    return np.array([float(v) for v in x])


def uniform(w, p):
    return np.array([(v >> (32 - p)) / 2**p for v in w])


show("@normal f32", normal(words(N, name="x")).astype(np.float32))
show("@normal:1 bf16", normal(words(N, 1)).astype(np.float32).astype(ml_dtypes.bfloat16))
show("@uniform:7 f32", uniform(words(N, 7), 24).astype(np.float32))
show("@uniform:7 f16", uniform(words(N, 7), 11).astype(np.float16))
show("@uniform:7 e4m3", uniform(words(N, 7), 4).astype(ml_dtypes.float8_e4m3fn))
show("@uniform bool", np.array([v >> 31 for v in words(N, name="x")], dtype=np.uint8))
r = np.array([(v * 16 >> 32) - 8 for v in words(N, 3)]) & 15
show("@randint:-8:8:3 i4", (r[0::2] | r[1::2] << 4).astype(np.uint8))
r = np.array([(v * 200 >> 32) - 100 for v in words(N, name="x")])
show("@randint:-100:100 f16", r.astype(np.float16))
w, lo = words(2 * N, 5), -0x7FFFFFFFFFFFFFFF
r = [lo + ((w[2 * i] | w[2 * i + 1] << 32) * (2 * -lo) >> 64) for i in range(N)]
show("@randint, 64 bits, i64", np.array(r, dtype=np.int64))
show("@arange u8", (np.arange(N) & 255).astype(np.uint8))
