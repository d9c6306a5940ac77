#!/usr/bin/env python3
"""Prints the checksums in tests/unit/data_dtype.c, from numpy's and ml_dtypes' own conversions.

The test compares against these numbers, so that it needs neither. FNV-1a over 32-bit words.
"""
import ml_dtypes
import numpy as np


def fnv(words):
    h = 0xCBF29CE484222325
    for w in words.tolist():
        h = ((h ^ w) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h


def widen(dtype, bits):
    codes = np.arange(1 << bits, dtype=np.uint32).astype(np.uint16 if bits == 16 else np.uint8)
    f = codes.view(dtype).astype(np.float32)
    # NaN compares by being one
    w = f.view(np.uint32).copy()
    w[np.isnan(f)] = 0x7FFFFFFF
    return w


def samples():
    """Every exponent and sign, and significands around every rounding boundary of every format."""
    i = np.arange(1 << 19, dtype=np.uint64)
    return ((i * 2654435761) & 0xFFFFFFFF).astype(np.uint32)


def narrow(dtype, largest, nan, bits):
    u = samples()
    f = u.view(np.float32)
    if largest:
        f = np.clip(f, -largest, largest)
    out = f.astype(dtype).view(np.uint16 if bits == 16 else np.uint8).astype(np.uint32)
    out[np.isnan(f)] = nan
    return out


np.seterr(all="ignore")
for name, t, bits, largest, nan in (
    ("half", np.float16, 16, 0, 0x7FFF),
    ("bf16", ml_dtypes.bfloat16, 16, 0, 0x7FFF),
    ("e4m3", ml_dtypes.float8_e4m3fn, 8, 448, 0x7F),
    ("e5m2", ml_dtypes.float8_e5m2, 8, 57344, 0x7F),
):
    print(f"{name}: to float 0x{fnv(widen(t, bits)):016x}, "
          f"from float 0x{fnv(narrow(t, largest, nan, bits)):016x}")
