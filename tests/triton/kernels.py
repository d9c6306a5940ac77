"""The kernels of this folder, in Triton."""
import triton
import triton.language as tl


@triton.jit
def vector_add(x_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    y = tl.load(y_ptr + i, mask=i < n)
    tl.store(z_ptr + i, x + y, mask=i < n)


@triton.jit
def softmax(x_ptr, y_ptr, rows, cols, BLOCK: tl.constexpr):
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        i = tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * cols + i, mask=i < cols, other=-float("inf"))
        e = tl.exp(x - tl.max(x, axis=0))
        tl.store(y_ptr + row * cols + i, e / tl.sum(e, axis=0), mask=i < cols)


@triton.jit
def layer_norm(x_ptr, weight_ptr, bias_ptr, y_ptr, mean_ptr, rstd_ptr, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], tl.float32)
    for at in range(0, cols, BLOCK):
        i = at + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * cols + i, mask=i < cols, other=0.0)
    mean = tl.sum(total, axis=0) / cols
    squares = tl.zeros([BLOCK], tl.float32)
    for at in range(0, cols, BLOCK):
        i = at + tl.arange(0, BLOCK)
        d = tl.where(i < cols, tl.load(x_ptr + row * cols + i, mask=i < cols, other=0.0) - mean, 0.0)
        squares += d * d
    rstd = 1 / tl.sqrt(tl.sum(squares, axis=0) / cols + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for at in range(0, cols, BLOCK):
        i = at + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * cols + i, mask=i < cols, other=0.0)
        y = (x - mean) * rstd * tl.load(weight_ptr + i, mask=i < cols) + tl.load(bias_ptr + i, mask=i < cols)
        tl.store(y_ptr + row * cols + i, y, mask=i < cols)


@triton.jit
def tile_of(pid, m, n, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    """Tiles in an order that keeps what neighbours share in the cache."""
    across = tl.cdiv(n, BN)
    group = pid // (GROUP * across)
    first = group * GROUP
    size = min(tl.cdiv(m, BM) - first, GROUP)
    return first + pid % (GROUP * across) % size, pid % (GROUP * across) // size


@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    row, col = tile_of(tl.program_id(0), m, n, BM, BN, GROUP)
    i = (row * BM + tl.arange(0, BM)) % m
    j = (col * BN + tl.arange(0, BN)) % n
    kk = tl.arange(0, BK)
    a = a_ptr + i[:, None] * k + kk[None, :]
    b = b_ptr + kk[:, None] * n + j[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for at in range(0, tl.cdiv(k, BK)):
        acc = tl.dot(tl.load(a, mask=kk[None, :] < k - at * BK, other=0.0), tl.load(b, mask=kk[:, None] < k - at * BK, other=0.0), acc)
        a += BK
        b += BK * n
    i = row * BM + tl.arange(0, BM)
    j = col * BN + tl.arange(0, BN)
    tl.store(c_ptr + i[:, None] * n + j[None, :], acc.to(c_ptr.dtype.element_ty), mask=(i[:, None] < m) & (j[None, :] < n))


@triton.jit
def matmul_tma(a_desc, b_desc, c_desc, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(0) * BM
    j = tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for at in range(0, k, BK):
        acc = tl.dot(a_desc.load([i, at]), b_desc.load([j, at]).T, acc)
    c_desc.store([i, j], acc.to(tl.float16))


@triton.jit
def matmul_persistent(a_ptr, b_ptr, c_ptr, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """By tensor maps that the kernel makes for itself; each program takes every so many tiles."""
    a = tl.make_tensor_descriptor(a_ptr, shape=[m, k], strides=[k, 1], block_shape=[BM, BK])
    b = tl.make_tensor_descriptor(b_ptr, shape=[n, k], strides=[k, 1], block_shape=[BN, BK])
    c = tl.make_tensor_descriptor(c_ptr, shape=[m, n], strides=[n, 1], block_shape=[BM, BN])
    across = tl.cdiv(n, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(m, BM) * across, tl.num_programs(0), flatten=True):
        i = tile // across * BM
        j = tile % across * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for at in range(0, k, BK):
            acc = tl.dot(a.load([i, at]), b.load([j, at]).T, acc)
        c.store([i, j], acc.to(tl.float16))


@triton.jit
def attention(q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, length, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    first = tl.program_id(0) * BM
    head = tl.program_id(1) * length * D
    i = first + tl.arange(0, BM)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + head + i[:, None] * D + d[None, :])
    most = tl.full([BM], -float("inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    for at in range(0, first + BM, BN):
        j = at + tl.arange(0, BN)
        key = tl.load(k_ptr + head + j[None, :] * D + d[:, None])
        s = tl.dot(q, key) * (scale * 1.44269504)
        s = tl.where(i[:, None] >= j[None, :], s, -1.0e6)
        new = tl.maximum(most, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        alpha = tl.exp2(most - new)
        total = total * alpha + tl.sum(p, 1)
        v = tl.load(v_ptr + head + j[:, None] * D + d[None, :])
        acc = tl.dot(p.to(tl.float16), v, acc * alpha[:, None])
        most = new
    tl.store(lse_ptr + tl.program_id(1) * length + i, most + tl.log2(total))
    tl.store(o_ptr + head + i[:, None] * D + d[None, :], acc / total[:, None])


@triton.jit
def dropout(x_ptr, y_ptr, n, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    keep = tl.rand(seed, i) > p
    tl.store(y_ptr + i, tl.where(keep, x / (1 - p), 0.0), mask=i < n)


@triton.jit
def grouped_matmul(a_ptr, b_ptr, c_ptr, sizes_ptr, groups, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Rows of a, the next sizes[g] of them, times b[g]: each program takes every so many tiles of all."""
    tile = tl.program_id(0)
    done = 0
    start = 0
    across = tl.cdiv(n, BN)
    for g in range(groups):
        rows = tl.load(sizes_ptr + g)
        tiles = tl.cdiv(rows, BM) * across
        while tile >= done and tile < done + tiles:
            i = (tile - done) // across * BM + tl.arange(0, BM)
            j = (tile - done) % across * BN + tl.arange(0, BN)
            kk = tl.arange(0, BK)
            acc = tl.zeros((BM, BN), tl.float32)
            for at in range(0, k, BK):
                a = tl.load(a_ptr + (start + i)[:, None] * k + at + kk[None, :], mask=i[:, None] < rows, other=0.0)
                b = tl.load(b_ptr + g * k * n + (at + kk)[:, None] * n + j[None, :], mask=j[None, :] < n, other=0.0)
                acc = tl.dot(a, b, acc)
            tl.store(c_ptr + (start + i)[:, None] * n + j[None, :], acc.to(tl.float16), mask=(i[:, None] < rows) & (j[None, :] < n))
            tile += tl.num_programs(0)
        done += tiles
        start += rows


@triton.jit
def matmul_fp8(a_ptr, b_ptr, c_ptr, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    kk = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for at in range(0, k, BK):
        a = tl.load(a_ptr + i[:, None] * k + at + kk[None, :])
        b = tl.load(b_ptr + j[None, :] * k + at + kk[:, None])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + i[:, None] * n + j[None, :], acc)


@triton.jit
def combine(a, b):
    return a + b


@triton.jit
def scans(x_ptr, sum_ptr, sorted_ptr, count_ptr, best_ptr, N: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, N)
    x = tl.load(x_ptr + row * N + i)
    tl.store(sum_ptr + row * N + i, tl.associative_scan(x, 0, combine))
    tl.store(sorted_ptr + row * N + i, tl.sort(x))
    tl.store(count_ptr + row * 16 + tl.arange(0, 16), tl.histogram(x & 15, 16))
    tl.store(best_ptr + row, tl.argmax(x, 0))


@triton.jit
def by_atomics(x_ptr, bins_ptr, top_ptr, lock_ptr, sum_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.atomic_add(bins_ptr + x % 10, 1, mask=i < n)
    tl.atomic_max(top_ptr, tl.max(x, 0))
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(sum_ptr, tl.load(sum_ptr) + tl.sum(x, 0))
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def cross_entropy(x_ptr, label_ptr, loss_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + i, mask=i < cols, other=-float("inf")).to(tl.float32)
    most = tl.max(x, 0)
    lse = most + tl.log(tl.sum(tl.exp(x - most), 0))
    label = tl.load(label_ptr + row)
    tl.store(loss_ptr + row, lse - tl.load(x_ptr + row * cols + label).to(tl.float32))
