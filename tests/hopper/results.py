"""What the kernels of this folder must compute; see ../expect.py."""
import numpy as np


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
