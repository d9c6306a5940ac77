"""Contenders that take turns on one GPU: how they are timed, judged and compiled. For tests/pytorch.py and its like."""

import gc
import math
import os
import sys

GRAPH_SECONDS = 1e-3
GRAPH_MOST = 2048
ORDERS = 1  # the seed of the rounds' orders
BETWEEN = "-"  # the two ends, as text


def close(torch, got, want, tolerance):
    """NULL, or what is wrong: elements beyond a tolerance of their size and of the typical size."""
    got, want = got.double(), want.double()
    error = (got - want).abs()
    typical = want.abs().mean().clamp(min=1e-30)
    allowed = tolerance * (want.abs() + typical)
    bad = ~(error <= allowed)
    if not bad.any():
        return None
    at = int(bad.flatten().nonzero()[0])
    return f"{int(bad.sum())} of {bad.numel()} off, the first {got.flatten()[at]:.6g} for {want.flatten()[at]:.6g}"


class Contender:
    def __init__(self, name, enqueue):
        self.name, self.enqueue, self.samples, self.why, self.graph = name, enqueue, [], None, None

    def stats(self):
        v = sorted(self.samples)
        n = len(v)
        return v[-1], (v[n // 2] if n % 2 else (v[n // 2 - 1] + v[n // 2]) / 2), v[0]


def capture(torch, contender, sets, seconds, stream):
    """A graph of executions on one set after the other, of a millisecond at least where GRAPH_MOST will do."""
    rotations = max(1, math.ceil(GRAPH_SECONDS / max(seconds, 1e-7) / sets))
    contender.n = min(rotations * sets, max(GRAPH_MOST // sets, 1) * sets)
    contender.graph = None
    graph = torch.cuda.CUDAGraph()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):  # torch.cuda.graph() would collect garbage first, each time
        contender.enqueue(0)  # libraries make what they need on this stream now
        graph.capture_begin(capture_error_mode="thread_local")
        gc.disable()  # what it frees is no part of the graph
        results = [None] * sets
        for i in range(contender.n):
            results[i % sets] = None
            results[i % sets] = contender.enqueue(i % sets)
        gc.enable()
        graph.capture_end()
        del results
    torch.cuda.current_stream().wait_stream(stream)
    contender.graph = graph


def batch(torch, contender, repeats, events):
    contender.graph.replay()
    events[0].record()
    for _ in range(repeats):
        contender.graph.replay()
    events[1].record()
    events[1].synchronize()
    return events[0].elapsed_time(events[1]) * 1e-3 / (repeats * contender.n)


def estimate(torch, contender, events):
    contender.enqueue(0)
    torch.cuda.synchronize()
    events[0].record()
    for _ in range(3):
        contender.enqueue(0)
    events[1].record()
    events[1].synchronize()
    return events[0].elapsed_time(events[1]) * 1e-3 / 3


def order(draw, n):
    return draw.sample(range(n), n)


def shares(n, parts):
    """n in as many parts, as even as may be, none of them 0."""
    return [n // parts + (i < n % parts) for i in range(min(parts, n))]


def measure(torch, contenders, sets, args, draw, warm, runs):
    events = (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
    for c in contenders:
        capture(torch, c, sets, estimate(torch, c, events), args.stream)
        seconds = batch(torch, c, 1, events)
        if seconds * c.n < GRAPH_SECONDS / 2:  # the estimate was of the host's time
            capture(torch, c, sets, seconds, args.stream)
            seconds = batch(torch, c, 1, events)
        c.repeats = max(1, math.ceil(args.round_ms * 1e-3 / (seconds * c.n)))
    for round_ in range(warm + runs):
        for i in order(draw, len(contenders)):
            seconds = batch(torch, contenders[i], contenders[i].repeats, events)
            if round_ >= warm:
                contenders[i].samples.append(seconds)


def queued(torch, contender, n, sets, events):
    events[0].record()
    for i in range(n):
        contender.enqueue(i % sets)
    events[1].record()
    events[1].synchronize()
    return events[0].elapsed_time(events[1]) * 1e-3 / n


def measure_queued(torch, contenders, sets, args, draw, warm, runs):
    """The same without graphs, for what is not captured or takes much longer than to be queued."""
    events = (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
    for c in contenders:
        queued(torch, c, 2, sets, events)
        c.n = max(1, int(args.round_ms * 1e-3 / queued(torch, c, 2, sets, events)))
    for round_ in range(warm + runs):
        for i in order(draw, len(contenders)):
            seconds = queued(torch, contenders[i], contenders[i].n, sets, events)
            if round_ >= warm:
                contenders[i].samples.append(seconds)


def between(ratios):
    """Between what the median of ratios lies with 95 %, or as surely as so few can say."""
    n, cut = len(ratios), 0
    # of n tosses of a coin no more than `cut` are heads: 2.5 % at most
    while cut + 1 < (n + 1) // 2 and sum(math.comb(n, k) for k in range(cut + 2)) <= 0.025 * 2 ** n:
        cut += 1
    ratios = sorted(ratios)
    return ratios[cut], ratios[n - 1 - cut]


def compiled(torch, call):
    """The function of tensors, compiled for their shapes alone."""
    torch._dynamo.reset()
    return torch.compile(call, dynamic=False)


def settings(torch):
    """Which configuration a compiled kernel uses is measured anew each time: other processes' measurements were
    taken while the GPU was busy."""
    import torch._inductor.config as inductor
    for name in ("autotune_local_cache",):
        if hasattr(inductor, name):
            setattr(inductor, name, False)


def import_torch(cache):
    """PyTorch with its compiler's caches in a folder; exits with 77 where it can't be used."""
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(cache, "inductor")
    os.environ["TRITON_CACHE_DIR"] = os.path.join(cache, "triton")
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    try:
        import torch
    except ImportError:
        print(f"{os.path.basename(sys.argv[0])}: there is no PyTorch here", file=sys.stderr)
        sys.exit(77)
    if not torch.cuda.is_available():
        print(f"{os.path.basename(sys.argv[0])}: PyTorch sees no GPU", file=sys.stderr)
        sys.exit(77)
    return torch
