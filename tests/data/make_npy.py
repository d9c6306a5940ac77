#!/usr/bin/env python3
"""Writes tests/data/npy/ with numpy and ml_dtypes: good-* hold i - 3 (unsigned: i, bool: i % 2) in shape (2, 4) unless
said otherwise; bad-* are what must be refused. Checked in, so that the tests need neither."""
import os
import struct

import ml_dtypes
import numpy as np
from numpy.lib import format as npf

out = os.path.join(os.path.dirname(os.path.abspath(__file__)), "npy")
os.makedirs(out, exist_ok=True)


def save(name, x, version=None):
    with open(f"{out}/{name}.npy", "wb") as f:
        npf.write_array(f, np.asarray(x), version=version)


def raw(name, header, data=b"", version=1, length=None):
    header = header.encode("latin-1")
    n = len(header) if length is None else length
    size = struct.pack("<H", n) if version == 1 else struct.pack("<I", n)
    with open(f"{out}/{name}.npy", "wb") as f:
        f.write(b"\x93NUMPY" + bytes([version, 0]) + size + header + data)


i = np.arange(8).reshape(2, 4)
for t in "float64 float32 float16 int64 int32 int16 int8".split():
    save(f"good-{t}", (i - 3).astype(t))
for t in "uint64 uint32 uint16 uint8".split():
    save(f"good-{t}", i.astype(t))
save("good-bool", i % 2 == 1)
save("good-bfloat16", (i - 3).astype(ml_dtypes.bfloat16))
save("good-bfloat16-as-u2", (i - 3).astype(ml_dtypes.bfloat16).view(np.uint16))
save("good-float8_e4m3fn", (i - 3).astype(ml_dtypes.float8_e4m3fn))
save("good-float8_e5m2", (i - 3).astype(ml_dtypes.float8_e5m2))
save("good-int4", (i - 3).astype(ml_dtypes.int4))  # one element to a byte
n = (i - 3) & 15
save("good-int4-packed", (n[:, 0::2] | n[:, 1::2] << 4).astype(np.uint8))
save("good-v2", (i - 3).astype(np.float32), (2, 0))
save("good-v3", (i - 3).astype(np.float32), (3, 0))
save("good-scalar", np.float32(2.5))
save("good-empty", np.zeros((0, 4), np.float32))
save("good-fortran-1d", np.asfortranarray(np.arange(8, dtype=np.float32)))
raw("good-python2", "{'shape': (2L, 4L), 'fortran_order': False, 'descr': \"<f4\"}\n",
    (i - 3).astype("<f4").tobytes())

save("bad-fortran", np.asfortranarray((i - 3).astype(np.float32)))
save("bad-bigendian", (i - 3).astype(">f4"))
save("bad-object", np.array([1, None], dtype=object))
save("bad-string", np.array(["a", "b"]))
save("bad-dates", np.array(["2020-01-01"], dtype="M8[D]"))
save("bad-structure", np.zeros(2, dtype=[("a", "f4"), ("b", "i4")]))
save("bad-rank", np.zeros((1,) * 9, np.float32))
f4 = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }\n"
raw("bad-short", f4 % "(2, 4)", b"\0" * 31)
raw("bad-long", f4 % "(2, 4)", b"\0" * 33)
raw("bad-huge", f4 % "(4611686018427387904, 4)", b"\0" * 32)
raw("bad-huge-dim", f4 % "(99999999999999999999999,)")
raw("bad-negative", f4 % "(-1,)")
raw("bad-shape", f4 % "[2, 4]", b"\0" * 32)
raw("bad-shape-text", f4 % "(2, x)", b"\0" * 32)
raw("bad-header-length", f4 % "(2,)", b"\0" * 8, length=60000)
raw("bad-header-huge", f4 % "(2,)", b"\0" * 8, version=2, length=0xFFFFFFFF)
raw("bad-key", "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}\n", b"\0" * 8)
raw("bad-key-twice", "{'descr': '<f4', 'descr': '<f4', 'shape': (2,)}\n", b"\0" * 8)
raw("bad-key-missing", "{'descr': '<f4', 'shape': (2,)}\n", b"\0" * 8)
raw("bad-type", "{'descr': '<q9', 'fortran_order': False, 'shape': (2,)}\n", b"\0" * 18)
raw("bad-type-size", "{'descr': '<f99999999999999999999', 'fortran_order': False, 'shape': (2,)}\n")
raw("bad-order", "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,)}\n", b"\0" * 8)
raw("bad-text-after", f4 % "(2,)" + "x", b"\0" * 8)
raw("bad-unclosed", "{'descr': '<f4', 'fortran_order': False, 'shape': (2,", b"\0" * 8)
raw("bad-version", f4 % "(2,)", b"\0" * 8, version=9)
with open(f"{out}/bad-magic.npy", "wb") as f:
    f.write(b"NUMPY, but not quite")
with open(f"{out}/bad-cut.npy", "wb") as f:
    f.write(b"\x93NUMPY\x01")
