"""Floating point by exact rational arithmetic: the reference for the simulator's operation tests.

A value is ('nan',), ('inf', sign) or ('num', sign, Fraction >= 0); sign is 0 or 1. A NaN read from f32 or f64 is
('nan', BITS), the bits that it has in f64: the hardware keeps payloads in double precision, and makes them quiet.
"""
from fractions import Fraction
from math import isqrt


class Format:
    def __init__(self, name, bits, mbits, bias, nan, finite=False):
        self.name, self.bits, self.mbits, self.bias, self.nan = name, bits, mbits, bias, nan
        self.finite = finite  # no infinities: e4m3
        self.ebits = bits - 1 - mbits
        self.emax_field = (1 << self.ebits) - 1
        self.inf = self.emax_field << mbits

    def decode(self, u):
        sign = u >> (self.bits - 1)
        e, m = (u >> self.mbits) & self.emax_field, u & ((1 << self.mbits) - 1)
        if self.finite:
            if e == self.emax_field and m == (1 << self.mbits) - 1:
                return ('nan',)
        elif e == self.emax_field:
            if m and self.mbits >= 10:
                return ('nan', sign << 63 | 0x7ff8 << 48 | m << (52 - self.mbits))
            return ('nan',) if m else ('inf', sign)
        if e == 0:
            return ('num', sign, Fraction(m) * Fraction(2) ** (1 - self.bias - self.mbits))
        return ('num', sign, Fraction(m + (1 << self.mbits)) * Fraction(2) ** (e - self.bias - self.mbits))

    @property
    def largest(self):
        return self.inf - 1 if not self.finite else (1 << (self.bits - 1)) - 2

    def encode(self, v, mode='rn', satfinite=False):
        if v[0] == 'nan':
            return v[1] if self.bits == 64 and len(v) > 1 else self.nan
        top = v[1] << (self.bits - 1)
        if v[0] == 'inf':
            return top | (self.largest if satfinite or self.finite else self.inf)
        sign, x = v[1], v[2]
        if x == 0:
            return top
        # exponent of the leading bit
        e = x.numerator.bit_length() - x.denominator.bit_length()
        if Fraction(2) ** e > x:
            e -= 1
        e = max(e, 1 - self.bias)
        q = x / Fraction(2) ** (e - self.mbits)  # in units of the last place
        n, rest = q.numerator // q.denominator, q - q.numerator // q.denominator
        half = Fraction(1, 2)
        if mode == 'rn':
            up = rest > half or (rest == half and n & 1)
        elif mode == 'rna':
            up = rest >= half
        elif mode == 'rz':
            up = False
        elif mode == 'rm':
            up = bool(sign and rest)
        else:
            up = bool(not sign and rest)
        n += up
        u = n if e == 1 - self.bias else n + ((e + self.bias - 1) << self.mbits)
        if u > self.largest:
            to_inf = mode in ('rn', 'rna') or (mode == 'rm' and sign) or (mode == 'rp' and not sign)
            u = self.inf if to_inf and not (satfinite or self.finite) else self.largest
        return top | u


F16 = Format('f16', 16, 10, 15, 0x7fff)
BF16 = Format('bf16', 16, 7, 127, 0x7fff)
F32 = Format('f32', 32, 23, 127, 0x7fffffff)
F64 = Format('f64', 64, 52, 1023, 0xfff8000000000000)
E4M3 = Format('e4m3', 8, 3, 7, 0x7f, finite=True)
E5M2 = Format('e5m2', 8, 2, 15, 0x7f)
TF32 = Format('tf32', 19, 10, 127, 0x7fffffff >> 13)

NAN = ('nan',)


def signed(v):
    return -v[2] if v[1] else v[2]


def num(x, zero_sign=0):
    return ('num', 1 if x < 0 else zero_sign if x == 0 else 0, abs(Fraction(x)))


def neg(v):
    return v if v[0] == 'nan' else (v[0], 1 - v[1]) + tuple(v[2:])


def first_nan(*values):
    return next(v for v in values if v[0] == 'nan')


def add(a, b, mode='rn'):
    if a[0] == 'nan' or b[0] == 'nan':
        return first_nan(b, a)
    if a[0] == 'inf':
        return NAN if b[0] == 'inf' and b[1] != a[1] else a
    if b[0] == 'inf':
        return b
    s = signed(a) + signed(b)
    if s == 0:
        return ('num', a[1] if a[1] == b[1] else int(mode == 'rm'), Fraction(0))
    return num(s)


def mul(a, b, mode='rn'):
    if a[0] == 'nan' or b[0] == 'nan':
        return first_nan(b, a)
    sign = a[1] ^ b[1]
    if 'inf' in (a[0], b[0]):
        other = b if a[0] == 'inf' else a
        return NAN if other[0] == 'num' and other[2] == 0 else ('inf', sign)
    return ('num', sign, a[2] * b[2])


def div(a, b, mode='rn'):
    if a[0] == 'nan' or b[0] == 'nan':
        return first_nan(a, b)
    sign = a[1] ^ b[1]
    if a[0] == 'inf':
        return NAN if b[0] == 'inf' else ('inf', sign)
    if b[0] == 'inf':
        return ('num', sign, Fraction(0))
    if b[2] == 0:
        return NAN if a[2] == 0 else ('inf', sign)
    return ('num', sign, a[2] / b[2])


def fma(a, b, c, mode='rn'):
    if 'nan' in (a[0], b[0], c[0]):
        return first_nan(b, c, a)
    return add(mul(a, b), c, mode)


def sqrt(a, mode='rn'):
    """Exact enough for any rounding to 60 bits: the root cut off, with a sticky bit."""
    if a[0] == 'nan' or (a[0] == 'num' and a[2] == 0):
        return a
    if a[1]:
        return NAN
    if a[0] == 'inf':
        return a
    shift = 1200
    n = a[2].numerator * 4 ** shift // a[2].denominator
    r = isqrt(n)
    exact = r * r == n and a[2].numerator * 4 ** shift % a[2].denominator == 0
    return ('num', 0, Fraction(2 * r + (not exact), 2 ** (shift + 1)))


def less(a, b):
    """a < b for numbers and infinities, -0 = +0."""
    def key(v):
        return (Fraction(10) ** 400 * (-1 if v[1] else 1)) if v[0] == 'inf' else signed(v)
    return key(a) < key(b)


def minimum(a, b, nan=False):
    if a[0] == 'nan' or b[0] == 'nan':
        return NAN if nan else b if a[0] == 'nan' else a
    if less(a, b):
        return a
    if less(b, a):
        return b
    return a if a[1] >= b[1] else b


def maximum(a, b, nan=False):
    if a[0] == 'nan' or b[0] == 'nan':
        return minimum(a, b, nan)
    return neg(minimum(neg(a), neg(b), nan))


def saturate(v):
    if v[0] == 'nan' or v[1]:
        return num(0)
    if v[0] == 'inf' or v[2] > 1:
        return num(1)
    return v


def integral(v, mode):
    """Rounded to an integral value, sign kept."""
    if v[0] != 'num':
        return v
    x = v[2]
    n = x.numerator // x.denominator
    rest = x - n
    half = Fraction(1, 2)
    up = {'rni': rest > half or (rest == half and n & 1), 'rzi': False,
          'rmi': bool(v[1] and rest), 'rpi': bool(not v[1] and rest)}[mode]
    return ('num', v[1], Fraction(n + bool(up)))


def compare(op, a, b):
    nan = a[0] == 'nan' or b[0] == 'nan'
    if op == 'num':
        return not nan
    if op == 'nan':
        return nan
    if nan:
        return op.endswith('u')
    lt, gt = less(a, b), less(b, a)
    return {'eq': not lt and not gt, 'ne': lt or gt, 'lt': lt, 'le': not gt, 'gt': gt, 'ge': not lt}[op.rstrip('u')]
