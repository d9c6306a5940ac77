"""What the kernels of this folder must compute; see ../expect.py."""
import numpy as np


def f32(v):
    return np.asarray(v).astype(np.float32)


def product(a, b, out):
    """a b: of small whole numbers, which every order of adding up gives exactly"""
    return (a.astype(np.float64) @ b.astype(np.float64)).astype(out)


def vector_add(x, y):
    return {"z": x + y}


def softmax(x):
    e = np.exp(x.astype(np.float64))
    return {"y": f32(e / e.sum(axis=1, keepdims=True))}


def layer_norm(x, weight, bias):
    v = x.astype(np.float64)
    mean = v.mean(axis=1, keepdims=True)
    rstd = (v.var(axis=1, keepdims=True) + 0.001) ** -0.5
    return {"y": f32((v - mean) * rstd * weight + bias), "mean": f32(mean[:, 0]), "rstd": f32(rstd[:, 0])}


def matmul(a, b):
    return {"c": product(a, b, np.float16)}


def matmul_tma(a, b):
    return {"c": product(a, b.T, np.float16)}


def matmul_persistent(a, b):
    return {"c": product(a, b.T, np.float16)}


matmul_cluster = matmul_persistent


def attention(q, k, v, length):
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    s = np.where(np.tri(length), q @ k.transpose(0, 2, 1) * 0.5, -np.inf)
    e = np.exp(s)
    total = e.sum(axis=2, keepdims=True)
    return {"o": f32(e / total @ v), "lse": f32(np.log2(total[..., 0]))}


def dropout(x, n):
    """Philox 4x32-10 of the element's number, as tl.rand() has it"""
    low = np.uint64(0xFFFFFFFF)
    c = [np.arange(n, dtype=np.uint64), *(np.zeros(n, np.uint64) for _ in range(3))]
    k = [123, 0]
    for _ in range(10):
        p, q = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [q >> np.uint64(32) ^ c[1] ^ np.uint64(k[0]), q & low, p >> np.uint64(32) ^ c[3] ^ np.uint64(k[1]), p & low]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    word = c[0].astype(np.uint32).view(np.int32)
    random = f32(np.where(word < 0, ~word, word)) * np.float32(4.6566127342e-10)
    return {"y": np.where(random > np.float32(0.5), 2 * x, np.float32(0))}


def grouped_matmul(a, b, sizes):
    assert sizes.sum() == len(a)
    parts = [product(x, y, np.float16) for x, y in zip(np.split(a, sizes.cumsum()[:-1]), b)]
    return {"c": np.concatenate(parts)}


def matmul_fp8(a, b):
    return {"c": product(a, b.T, np.float32)}


def scans(x):
    counts = [np.bincount(row & 15, minlength=16) for row in x]
    return {
        "sums": x.cumsum(axis=1, dtype=np.int32),
        "sorted": np.sort(x, axis=1),
        "counts": np.array(counts, np.int32),
        "best": x.argmax(axis=1).astype(np.int32),
    }


def by_atomics(x):
    bins = np.bincount(x % 10, minlength=10).astype(np.int32)
    return {"bins": bins, "top": x.max(keepdims=True), "s": x.sum(keepdims=True, dtype=np.int32)}


def cross_entropy(x, label, rows):
    v = x.astype(np.float64)
    return {"loss": f32(np.log(np.exp(v).sum(axis=1)) - v[np.arange(rows), label])}
