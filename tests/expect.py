#!/usr/bin/env python3
"""What kernels must compute, by numpy: expect.py [--bless] FOLDER [NAME...]

Of each NAME.launch in FOLDER, FOLDER/results.py has a function NAME (what is behind a point is left off). It gets the inputs
and numbers of the line "# args:", made as kaio-run makes them (Philox4x32-10), and returns the outputs. Compares with those
of the launch contract, or with --bless puts them there: in "# sum: NAME DIGITS ..." the first 16 digits of the SHA-256 of each
output's bytes; of each "# near: OUTPUT RTOL ATOL" the file NAME.OUTPUT.npy, here compared within a thousandth of that, or two ulps.
"""
import hashlib
import importlib.util
import inspect
import pathlib
import re
import sys

import numpy as np


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


PRECISION = {"f16": 11, "bf16": 8, "f32": 24}


def generate(text, shape, kind):
    """The values of a generator for elements of that kind, in a type that holds them."""
    n = int(np.prod(shape))
    words = text.split(":")
    if words[0] == "@randint":
        lo, hi, seed = map(int, words[1:])
        if hi - lo > 1 << 32:
            w = philox(2 * n, seed)
            v = [(((int(high) << 32 | int(low)) * (hi - lo)) >> 64) + lo for low, high in w.reshape(-1, 2)]
            v = np.array(v, np.uint64 if hi > 1 << 63 else np.int64)
        else:
            v = (philox(n, seed) * np.uint64(hi - lo) >> np.uint64(32)).astype(np.int64) + lo
    elif words[0] == "@uniform":
        bits = PRECISION.get(kind, 32)
        v = (philox(n, int(words[1])) >> np.uint64(32 - bits)) * 2.0**-bits
    elif words[0] == "@arange":
        v = np.arange(n)
    else:
        v = np.full(n, {"@zeros": 0, "@ones": 1}[words[0]] if len(words) == 1 else float(words[1]))
    return v.reshape(shape)


def bf16(v):
    """Rounds to bf16, to nearest and ties to even, and keeps f32."""
    u = np.ascontiguousarray(v, np.float32).view(np.uint32)
    u = u + 0x7FFF + (u >> 16 & 1) & 0xFFFF0000
    return u.astype(np.uint32).view(np.float32)


TYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "bool": np.bool_}
TYPES |= {f"{sign}{bits}": np.dtype(f"{sign}{bits // 8}") for sign in "iu" for bits in (8, 16, 32, 64)}


def outputs_of(results, name, text):
    """The outputs that the launch contract TEXT declares: name to array of the declared type."""
    args = dict(a.split("=", 1) for a in re.search(r"^# args: ?(.*)$", text, re.M)[1].split())
    known = {a: int(v) if re.fullmatch(r"-?\d+", v) else float(v) for a, v in args.items() if v[0] != "@"}
    params = re.findall(r"^  (\w+): (in|out|inout) (\w+)\[([^]]*)\]$", text, re.M)
    for p, direction, kind, shape in params:
        if direction != "out":
            v = generate(args[p], [int(known.get(e, e)) for e in shape.split(", ")], kind)
            known[p] = bf16(v) if kind == "bf16" else v.astype(TYPES.get(kind, np.float64))
    function = getattr(results, name.split(".")[0])
    outputs = function(**{p: known[p] for p in inspect.signature(function).parameters})
    for p, direction, kind, shape in params:
        if direction == "in":
            continue
        assert outputs[p].dtype == TYPES[kind], (name, p, outputs[p].dtype)
        shape = [int(known.get(e, e)) for e in shape.split(", ") if re.fullmatch(r"\w+", e)]
        assert np.prod(shape) == outputs[p].size or len(shape) != outputs[p].ndim, (name, p, outputs[p].shape)
    return outputs


def wrong(path, results, bless):
    """What of a launch contract is not numpy's: a list of words."""
    text = path.read_text()
    outputs = outputs_of(results, path.stem, text)
    near = {line.split()[0]: [float(x) for x in line.split()[1:]] for line in re.findall(r"^# near: (.*)$", text, re.M)}
    assert all(p in near or re.search(rf"^# sum:.* {p} ", text, re.M) for p in outputs), (path.name, "an output is compared with nothing")
    digits = {p: hashlib.sha256(np.ascontiguousarray(v).tobytes()).hexdigest()[:16] for p, v in outputs.items()}
    line = "# sum: " + " ".join(f"{p} {d}" for p, d in digits.items() if p not in near)
    new = re.sub(r"^# sum:.*$", line, text, flags=re.M)
    bad = ["sum"] if new != text else []
    for p, (rtol, atol) in near.items():
        file = path.with_name(f"{path.stem.split('.')[0]}.{p}.npy")
        old = np.load(file) if file.exists() else None
        v = np.ascontiguousarray(outputs[p])
        assert np.isfinite(v.astype(np.float64)).all(), (path.name, p, "is not finite")
        least = 2 * np.finfo(v.dtype).eps
        ulps = 2 * np.finfo(np.float64).eps  # numpy's functions near 1 on another CPU, of which a sum may be nearly 0
        if old is None or old.shape != v.shape or not np.allclose(old, v, rtol=max(rtol / 1000, least), atol=max(atol / 1000, ulps)):
            bad.append(p)
            if bless:
                np.save(file, v)
    if bless:
        path.write_text(new)
    return bad


def main(words):
    bless = "--bless" in words
    folder, *names = [w for w in words if w != "--bless"]
    folder = pathlib.Path(folder)
    spec = importlib.util.spec_from_file_location("results", folder / "results.py")
    results = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(results)
    status = 0
    for path in [folder / f"{n}.launch" for n in names] or sorted(folder.glob("*.launch")):
        bad = wrong(path, results, bless)
        if bad and not bless:
            print(f"{path}: not those of numpy: {' '.join(bad)}")
            status = 1
    return status


sys.dont_write_bytecode = True
sys.exit(main(sys.argv[1:]))
