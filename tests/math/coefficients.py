#!/usr/bin/env python3
"""The constants of lib/lower/mathlib/f32.k and f64.k.

    coefficients.py [NAME...]      all, or those whose name begins with one of NAMES

Needs mpmath, numpy and scipy.  Prints each polynomial with its error relative to the function: what
minimax could do, and what is left after rounding the coefficients.
"""
import sys

from minimax import fit, fit_quotient, hexf, mp, mpf, round_to, show

LN2 = mp.log(2)
wanted = sys.argv[1:]


def poly(name, *args, suffix='f', **kw):
    if not wanted or any(name.startswith(w) for w in wanted):
        show(name, fit(*args, **kw), suffix)


def quotient(name, *args):
    if not wanted or any(name.startswith(w) for w in wanted):
        p, q, err = fit_quotient(*args)
        print('%s: 2^%.2f' % (name, float(mp.log(err, 2))))
        for what, v in (('P', p), ('Q', q)):
            print('    %s %s' % (what, ' '.join(hexf(round_to(c, 24), 'f') for c in v)))


def split(name, value, parts, bits=24, suffix='f'):
    """value as an unevaluated sum; bits may be a list, one entry a part"""
    if wanted and not any(name.startswith(w) for w in wanted):
        return
    print('%s:' % name)
    for i in range(parts):
        h = round_to(value, bits[i] if isinstance(bits, list) else bits)
        print('    %s' % hexf(h, suffix))
        value -= h


def one_plus(value, bits):
    """value = 1 + c, c rounded to bits: for x + x (c + ...)"""
    return 1 + round_to(value - 1, bits)


def odd(top):
    return list(range(1, top + 1, 2))


def upto(top, first=0):
    return list(range(first, top + 1))


# ---- f32: exp and what is made of it

split('f32 log2(e)', 1 / LN2, 2)
split('f32 ln 2', LN2, 2)
poly('f32 exp', mp.exp, -LN2 / 2 * 1.001, LN2 / 2 * 1.001, upto(6), fixed={0: 1, 1: 1})
poly('f32 exp2', lambda r: mpf(2)**r, -0.5001, 0.5001, upto(6), fixed={0: 1})
poly('f32 falling', lambda r: mpf(2)**r, -0.5001, 0.5001, upto(5), fixed={0: 1})

B = 2 * mp.sqrt(2 / mp.pi) * mpf('0.044715')
split('f32 gelu_tanh g', 1 / mpf('0.044715'), 2, [12, 24])
split('f32 gelu_tanh b log2(e)', B / LN2, 1)
split('f32 gelu_tanh ln(2) / b', LN2 / B, 2, [14, 24])
R = LN2 / 2 / B * 1.002
poly('f32 gelu_tanh exp(-b r)', lambda r: mp.exp(-B * r), -R, R, upto(6), fixed={0: 1})

poly('f32 tanh', mp.tanh, 1e-9, 1.0, odd(15), fixed={1: 1})

# ---- f32: the error function

poly('f32 erf small', mp.erf, 1e-9, 1.0, odd(13), fixed={1: one_plus(2 / mp.sqrt(mp.pi), 24)})
poly('f32 erf large', lambda a: mp.log(mp.erfc(a), 2), 1.0, 3.95, upto(6, 1),
     weight=lambda a: mp.erfc(a) / mp.erf(a) * LN2)


def tail(a):
    return mp.erfc(a / mp.sqrt(2)) / 2


def mapped(f, k):
    """f as a function of u = (a - k) / (a + k)"""
    return lambda u: f(k * (1 + u) / (1 - u))


def upper(a, k):
    return (a - k) / (a + k)


poly('f32 gelu centre', lambda x: mpf(1) / 2 - tail(x), 1e-9, 1.03, odd(11), weight=lambda x: 1 / tail(x))
K = mpf('1.96875')
poly('f32 gelu tail', mapped(lambda a: a * tail(a) * mp.exp(a * a / 2), K), upper(mpf('0.98'), K),
     upper(mpf('14.5'), K), upto(8))

# ---- f32: the circular functions

split('f32 2/pi', 2 / mp.pi, 1)
split('f32 pi/2', mp.pi / 2, 3)
poly('f32 sin', mp.sin, 1e-9, 0.7854, odd(7), fixed={1: 1})
poly('f32 cos', mp.cos, 1e-9, 0.7854, [0, 2, 4, 6, 8], fixed={0: 1, 2: -0.5})

# ---- f32: the logarithms

poly('f32 log', mp.log1p, -mpf(1) / 3, mpf(1) / 3, upto(10, 1), fixed={1: 1, 2: -0.5})
poly('f32 log2', lambda f: mp.log1p(f) / LN2, -mpf(1) / 3, mpf(1) / 3, upto(10, 1),
     fixed={1: one_plus(1 / LN2, 24)})
C = 1 / mp.log(10)
poly('f32 log10', lambda f: mp.log1p(f) * C, -mpf(1) / 3, mpf(1) / 3, upto(10, 1),
     fixed={1: round_to(C, 24) + round_to(C - round_to(C, 24), 24)})
split('f32 log10(e)', C, 2)
split('f32 log10(2)', LN2 * C, 2, [12, 24])

# ---- f32: the rest

poly('f32 expm1', mp.expm1, -LN2 / 2 * 1.001, LN2 / 2 * 1.001, upto(7, 1), fixed={1: 1})
poly('f32 sinh', mp.sinh, 1e-9, 1.0, odd(9), fixed={1: 1})
C10 = mp.log(10, 2)
split('f32 log2(10)', C10, 1)
split('f32 log10(2), short', 1 / C10, 2, [14, 24])
poly('f32 exp10', lambda r: mpf(10)**r, -0.5005 / C10, 0.5005 / C10, upto(6), fixed={0: 1})
poly('f32 asinh', mp.asinh, 1e-9, 0.5, odd(11), fixed={1: 1})
poly('f32 acosh', lambda t: mp.acosh(1 + t) / mp.sqrt(2 * t), 1e-9, 1, upto(6), fixed={0: 1})
poly('f32 atanh', mp.atanh, 1e-9, 0.5, odd(13), fixed={1: 1})
split('f32 pi', mp.pi, 2)
poly('f32 sinpi', mp.sinpi, 1e-9, 0.2501, odd(7),
     fixed={1: round_to(mp.pi, 24) + round_to(mp.pi - round_to(mp.pi, 24), 24)})
poly('f32 cospi', mp.cospi, 1e-9, 0.2501, [0, 2, 4, 6, 8], fixed={0: 1})
poly('f32 atan', mp.atan, 1e-9, 0.4143, odd(11), fixed={1: 1})
poly('f32 asin', mp.asin, 1e-9, 0.5, odd(13), fixed={1: 1})
poly('f32 pow atanh', lambda s: mp.atanh(s), 1e-9, 0.1717, odd(11),
     fixed={1: 1, 3: round_to(mpf(1) / 3, 24) + round_to(mpf(1) / 3 - round_to(mpf(1) / 3, 24), 24)})
split('f32 pow 1/3', mpf(1) / 3, 2)
split('f32 pow 2/ln 2', 2 / LN2, 2)
K = mpf('2.25')
poly('f32 erfc tail', mapped(lambda a: mp.erfc(a) * mp.exp(a * a) * (a + K), K), upper(mpf('0.74'), K),
     upper(mpf('10.4'), K), upto(8))

# ---- for results rounded to 16 bits

poly('half exp2', lambda r: mpf(2)**r, -0.5001, 0.5001, upto(4), fixed={0: 1})
poly('half rcp', lambda e: 1 / (1 - e), -0.0509, 0.0509, upto(3), fixed={0: 1})
K = mpf('3.36')**2 / 2
poly('half erf', lambda c: mp.erf(mp.sqrt(c + K)) / mp.sqrt(c + K), -K * mpf('0.99999'), K, upto(10))
C = 2 * mp.sqrt(2 / mp.pi) / LN2
split('half gelu_tanh -1', C, 1)
split('half gelu_tanh -3', C * mpf('0.044715'), 1)
quotient('half tanh', lambda z: mp.tanh(mp.sqrt(z)) / mp.sqrt(z), 1e-9, mpf('6.5')**2, 3, 3)
K = mpf(7)
poly('half gelu log2', lambda z: mp.log(tail(z + K)) / LN2, -K, mpf('14.5') - K, upto(10), weight=lambda z: LN2,
     first_bits={0: 60})
poly('tensor gelu log2', lambda z: mp.log(tail(z)) / LN2, 1e-9, mpf('5.75'), upto(6),
     weight=lambda z: LN2 * z * tail(z) / max(z * tail(z), mpf(2)**-14))
C = 40 - mpf(float.fromhex('0x1.3c0ebb515cc41p5'))  # x^0 of the one before, less the integer
poly('half gelu exp2', lambda r: mpf(2)**(r + C), -0.5001, 0.5001, upto(4))

# ---- f64


def poly64(name, *args, **kw):
    poly('f64 ' + name, *args, suffix='', bits=53, **kw)


def split64(name, value, parts, bits=53):
    split('f64 ' + name, value, parts, bits, '')


split64('log2(e)', 1 / LN2, 2)
split64('ln 2', LN2, 2)
split64('ln 2, short', LN2, 2, [42, 53])
poly64('exp', mp.exp, -LN2 / 2 * 1.001, LN2 / 2 * 1.001, upto(11), fixed={0: 1, 1: 1})
poly64('exp2', lambda r: mpf(2)**r, -0.5001, 0.5001, upto(12), fixed={0: 1})
poly64('expm1', mp.expm1, -LN2 / 2 * 1.001, LN2 / 2 * 1.001, upto(12, 1), fixed={1: 1, 2: 0.5})
split64('gelu_tanh g', 1 / mpf('0.044715'), 2, [26, 53])
split64('gelu_tanh b log2(e)', B / LN2, 1)
split64('gelu_tanh ln(2) / b', LN2 / B, 2, [40, 53])
poly64('gelu_tanh exp(-b r)', lambda r: mp.exp(-B * r), -R, R, upto(12), fixed={0: 1})
poly64('tanh', mp.tanh, 1e-9, 0.7, odd(27), fixed={1: 1})
poly64('sinh', mp.sinh, 1e-9, 1.0, odd(17), fixed={1: 1})

split64('log2(10)', C10, 1)
split64('log10(2), full', 1 / C10, 2)
poly64('exp10', lambda r: mpf(10)**r, -0.5005 / C10, 0.5005 / C10, upto(12), fixed={0: 1})
poly64('asinh', mp.asinh, 1e-9, 0.5, odd(25), fixed={1: 1})
poly64('acosh', lambda t: mp.acosh(1 + t) / mp.sqrt(2 * t), 1e-9, 1, upto(15), fixed={0: 1})
poly64('atanh near', mp.atanh, 1e-9, 0.5, odd(29), fixed={1: 1})
split64('pi', mp.pi, 2)
poly64('sinpi', mp.sinpi, 1e-9, 0.2501, odd(13),
       fixed={1: round_to(mp.pi, 53) + round_to(mp.pi - round_to(mp.pi, 53), 53)})
poly64('cospi', mp.cospi, 1e-9, 0.2501, [0, 2, 4, 6, 8, 10, 12, 14], fixed={0: 1})

poly64('atanh', mp.atanh, 1e-9, 0.1717, odd(17), fixed={1: 1})
split64('1/3', mpf(1) / 3, 2)
poly64('pow atanh', mp.atanh, 1e-9, 0.1717, odd(21),
       fixed={1: 1, 3: round_to(mpf(1) / 3, 53) + round_to(mpf(1) / 3 - round_to(mpf(1) / 3, 53), 53)})
split64('2/ln 2', 2 / LN2, 2)
split64('log10(e)', C, 2)
split64('log10(2)', LN2 * C, 2, [42, 53])

split64('2/pi', 2 / mp.pi, 1)
split64('pi/2', mp.pi / 2, 4)
split64('pi', mp.pi, 2)
poly64('sin', mp.sin, 1e-9, 0.7854, odd(15), fixed={1: 1})
poly64('cos', mp.cos, 1e-9, 0.7854, list(range(0, 17, 2)), fixed={0: 1, 2: -0.5})
poly64('atan', mp.atan, 1e-9, 0.4143, odd(25), fixed={1: 1})
poly64('asin', mp.asin, 1e-9, 0.5, odd(27), fixed={1: 1})

E = 2 / mp.sqrt(mp.pi)
poly64('erf', mp.erf, 1e-9, 1.0, odd(25), fixed={1: one_plus(E, 53)})
split64('erf c1 - 1', E - 1, 1)
K = mpf('3.5')
split64('sqrt(1/2)', mp.sqrt(mpf(1) / 2), 2)
poly64('erfc tail', mapped(lambda a: mp.erfc(a) * mp.exp(a * a) * (a + K), K), upper(mpf('0.69'), K),
       upper(mpf('27.4'), K), upto(20), first_bits={0: 106})
poly64('gelu centre', lambda x: mpf(1) / 2 - tail(x), 1e-9, 1.0, odd(21), weight=lambda x: 1 / tail(x))
