#!/usr/bin/env python3
"""Writes ops.txt: instruction forms, operands for them, and what each must give. The expected values are computed here
with Python's integers and rationals, independently of the simulator. tests/unit/sim_ops.c makes an entry of each form.

    set NAME WIDTH...            a list of operand tuples follows, one line each, in hexadecimal
    form ENTRY SET WIDTH [ULP OFF]   of an instruction with operands of the set and a result of so many bits. ULP: how
                                 far from the expected an f32 may be, in steps; OFF: or absolutely
    : TEXT                       its PTX: sources %s0, %s1, ..., result %d; %p %q %t %w may be used
    VALUE...                     the results, as many as the set has tuples, in its order
"""
import random
import struct
import sys
from softfloat import *

rng = random.Random(1)
M = {8: 0xff, 16: 0xffff, 32: 0xffffffff, 64: 0xffffffffffffffff}


def s(x, n):
    x &= M[n]
    return x - (1 << n) if x >> (n - 1) else x


# ---- operands -----------------------------------------------------------------------------------------------

INTS = {n: [0, 1, 2, 3, 5, 7, 10, (1 << (n - 1)) - 1, 1 << (n - 1), (1 << n) - 1, (1 << n) - 2, (1 << (n - 1)) + 1,
            0x55 * (M[n] // 0xff), 0xaa * (M[n] // 0xff)] for n in (8, 16, 32, 64)}


def some_int(n):
    if rng.random() < 0.5:
        return rng.choice(INTS[n])
    return rng.getrandbits(n) >> rng.randrange(n)


FLOATS = {
    'f32': [0x7fffffff, 0xffffffff, 0, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0xffc12345, 1,
            0x80000001, 0x007fffff, 0x00800000, 0x7f7fffff, 0xff7fffff, 0x3f7fffff, 0x3f800001, 0x40000000, 0x33800000,
            0x4b800000, 0x4b000001, 0x3f000000, 0x3effffff, 0x40200000, 0xbfc00000, 0x5f000000, 0xcf000000, 0x4f800000],
    'f64': [0, 1 << 63, 0x3ff << 52, 0xbff << 52, 0x7ff << 52, 0xfff << 52, 0x7ff8000000000000, 0x7ff0000000000001,
            0xfff8123456789abc, 1, (1 << 63) + 1, 0x000fffffffffffff, 0x0010000000000000, 0x7fefffffffffffff,
            0xffefffffffffffff, 0x3fefffffffffffff, 0x3ff0000000000001, 0x4000000000000000, 0x3ca0000000000000,
            0x4340000000000001, 0x3fe0000000000000, 0x3fdfffffffffffff, 0x4004000000000000, 0xbff8000000000000,
            0x43e0000000000000, 0xc1e0000000000000, 0x41f0000000000000, 0x47efffffe0000000, 0x47efffffefffffff,
            0x380fffffffffffff, 0x36a0000000000000, 0x3690000000000000],
    'f16': [0, 0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e00, 0x7c01, 0xfe12, 1, 0x8001, 0x03ff, 0x0400, 0x7bff,
            0xfbff, 0x3bff, 0x3c01, 0x4000, 0x1400, 0x6400, 0x3800, 0x37ff, 0x4100, 0xbe00],
    'bf16': [0, 0x8000, 0x3f80, 0xbf80, 0x7f80, 0xff80, 0x7fc0, 0x7f81, 0xffc1, 1, 0x8001, 0x007f, 0x0080, 0x7f7f,
             0xff7f, 0x3f7f, 0x3f81, 0x4000, 0x3b80, 0x4380, 0x3f00, 0x3eff, 0x4020, 0xbfc0],
}
FMT = {'f32': F32, 'f64': F64, 'f16': F16, 'bf16': BF16}


def some_float(t):
    f = FMT[t]
    r = rng.random()
    if r < 0.45:
        return rng.choice(FLOATS[t])
    if r < 0.8:  # of ordinary size, so that sums cancel and products stay finite
        e = f.bias + rng.randrange(-6, 7)
        return rng.getrandbits(1) << (f.bits - 1) | e << f.mbits | rng.getrandbits(f.mbits)
    return rng.getrandbits(f.bits)


def some(t):
    if t in FMT:
        return some_float(t)
    if t in ('f16x2', 'bf16x2'):
        return some_float(t[:-2]) << 16 | some_float(t[:-2])
    return some_int(WIDTH[t])


WIDTH = {'u8': 8, 's8': 8, 'b8': 8, 'u16': 16, 's16': 16, 'b16': 16, 'u32': 32, 's32': 32, 'b32': 32, 'u64': 64,
         's64': 64, 'b64': 64, 'f16': 16, 'bf16': 16, 'f32': 32, 'f64': 64, 'f16x2': 32, 'bf16x2': 32, 'u16x2': 32,
         's16x2': 32, 'shift': 32, 'lane': 32, 'near': 64, 'angle': 32, 'ordinary': 32, 'near32': 32, 'tie': 32}
sets = {}
NANS = [0x7ff8000000000001, 0xfff8000000000002, 0x7ff0000000000003, 0xfff0000000000004, 0x3ff0000000000000]


def operand_set(types, count=96):
    """The set of operand tuples of those types; every special value comes up in each place."""
    key = '_'.join(types)
    if key in sets:
        return key
    rows = [list(r) for r in zip(*[NANS[k:] + NANS[:k] for k in range(len(types))])] if set(types) == {'f64'} else []
    first = FLOATS.get(types[0], INTS.get(WIDTH[types[0]], [0]))
    for i in range(max(count, 2 * len(first))):
        row = []
        for k, t in enumerate(types):
            if t == 'shift':
                row.append(rng.choice([0, 1, 2, 7, 8, 15, 16, 17, 24, 31, 32, 33, 47, 63, 64, 65, 255, 256, 300, M[32]]))
            elif t == 'near':  # doubles near integers of every size, halves included
                x = rng.choice([-1, 1]) * (rng.getrandbits(rng.randrange(1, 66)) + rng.choice([0, 0.5, 0.25, 0.75]))
                row.append(struct.unpack('<Q', struct.pack('<d', float(x)))[0])
            elif t == 'near32':
                x = rng.choice([-1, 1]) * (rng.getrandbits(rng.randrange(1, 66)) + rng.choice([0, 0.5, 0.25, 0.75]))
                row.append(struct.unpack('<I', struct.pack('<f', float(x)))[0])
            elif t == 'angle':
                row.append(struct.unpack('<I', struct.pack('<f', rng.uniform(-6.2, 6.2)))[0])
            elif t == 'ordinary':
                row.append(rng.getrandbits(1) << 31 | rng.randrange(100, 150) << 23 | rng.getrandbits(23))
            elif t == 'tie':  # singles at and near the midpoints of 16-bit formats
                hi = rng.getrandbits(32) & 0xffffe000
                row.append((hi + rng.choice([0, 0x1000, 0x0fff, 0x1001, 0x2000, 0x3000])) & M[32])
            elif i < len(first) and t in FLOATS:
                row.append(FLOATS[t][(i * (2 * k + 1) + k) % len(FLOATS[t])])
            else:
                row.append(some(t))
        rows.append(row)
    sets[key] = ([WIDTH[t] for t in types], rows)
    return key


# ---- forms --------------------------------------------------------------------------------------------------

forms = []  # (entry, ptx text, set, result width, results, ulp)

def form(mnemonic, types, out, fn, ulp=0, off=0, suffix='', body=None, name=None):
    """d = mnemonic of operands of the types; fn gives the expected bits of width out."""
    key = operand_set(types)
    widths, rows = sets[key]
    entry = (name or mnemonic).replace('.', '_').replace('::', '_').lower()
    srcs = ''.join(', %%s%d' % k for k in range(len(widths)))
    text = body or '%s %%d%s%s;' % (mnemonic, srcs, suffix)
    forms.append((entry, text, key, out, [fn(*row) & M[out] for row in rows], ulp, off))


def predicate(mnemonic, types, fn, body=None, name=None):
    srcs = ''.join(', %%s%d' % k for k in range(len(types)))
    body = body or '%s %%p%s;' % (mnemonic, srcs)
    form(mnemonic, types, 32, lambda *a: int(bool(fn(*a))), body=body + '\nselp.b32 %d, 1, 0, %p;', name=name)


exec(open(sys.path[0] + '/forms_int.py').read())
exec(open(sys.path[0] + '/forms_float.py').read())
exec(open(sys.path[0] + '/forms_cvt.py').read())

# ---- files --------------------------------------------------------------------------------------------------


names = [f[0] for f in forms]
assert len(set(names)) == len(names), sorted(n for n in names if names.count(n) > 1)
with open(sys.path[0] + '/ops.txt', 'w') as f:
    f.write('# Written by make_ops.py, which says what the lines are.\n')
    for key in sorted({x[2] for x in forms}):
        widths, rows = sets[key]
        f.write('set %s %s\n' % (key, ' '.join(map(str, widths))))
        for row in rows:
            f.write(' '.join('%x' % x for x in row) + '\n')
    for entry, text, key, out, results, ulp, off in forms:
        f.write('form %s %s %d%s\n' % (entry, key, out, ' %g %g' % (ulp, off) if ulp else ''))
        for line in text.split('\n'):
            f.write(': %s\n' % line)
        for i in range(0, len(results), 16):
            f.write(' '.join('%x' % r for r in results[i:i + 16]) + '\n')
print('%d forms, %d results' % (len(forms), sum(len(x[4]) for x in forms)))
