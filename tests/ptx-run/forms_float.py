# Floating-point arithmetic; read by make_ops.py.
import math


def flush(v, fmt):
    """A subnormal becomes a zero of its sign."""
    small = v[0] == 'num' and 0 < v[2] < Fraction(2) ** (1 - fmt.bias)
    return ('num', v[1], Fraction(0)) if small else v


def evaluate(fn, fmt, mode='rn', ftz=False, sat=False, relu=False):
    """fn of values, as an instruction: bits to bits."""
    def run(*args):
        v = [fmt.decode(a) for a in args]
        if ftz:
            v = [flush(x, fmt) for x in v]
        bits = fmt.encode(fn(*v), mode)
        r = fmt.decode(bits)
        if ftz:
            r = flush(r, fmt)
        if sat:
            r = saturate(r)
        if relu and r[0] != 'nan' and r[1]:
            r = num(0)
        return fmt.encode(r)
    return run


def arith(op, n, t, fmt, mode='', ftz=False, sat=False, relu=False):
    words = [op, mode] + ['ftz'] * ftz + ['sat'] * sat + ['relu'] * relu + [t]
    fn = {'add': add, 'sub': lambda a, b, m: add(a, neg(b), m), 'mul': mul, 'div': div, 'fma': fma, 'sqrt': sqrt,
          'rcp': lambda a, m: div(num(1), a, m)}[op]
    m = mode or 'rn'
    form('.'.join(w for w in words if w), [t] * n, fmt.bits,
         evaluate(lambda *v: fn(*v, m), fmt, m, ftz, sat, relu))


for op, n in (('add', 2), ('sub', 2), ('mul', 2), ('fma', 3), ('div', 2), ('rcp', 1), ('sqrt', 1)):
    for mode in ('rn', 'rz', 'rm', 'rp'):
        arith(op, n, 'f32', F32, mode)
        arith(op, n, 'f64', F64, mode)
        arith(op, n, 'f32', F32, mode, ftz=True) if mode in ('rn', 'rp') else None
    if n > 1 and op != 'div':
        arith(op, n, 'f32', F32, 'rn', sat=True)
        arith(op, n, 'f32', F32, 'rz', ftz=True, sat=True)
for op in ('add', 'sub', 'mul'):
    arith(op, 2, 'f32', F32)
    arith(op, 2, 'f64', F64)


def both_halves(run):
    return lambda *a: run(*[x & 0xffff for x in a]) | run(*[x >> 16 for x in a]) << 16


for op, n in (('add', 2), ('sub', 2), ('mul', 2), ('fma', 3)):
    arith(op, n, 'f16', F16, 'rn')
    arith(op, n, 'f16', F16, 'rn', ftz=True)
    arith(op, n, 'f16', F16, 'rn', sat=True)
    arith(op, n, 'bf16', BF16, 'rn')
    fn = {'add': add, 'sub': lambda a, b: add(a, neg(b)), 'mul': mul, 'fma': fma}[op]
    form('%s.rn.f16x2' % op, ['f16x2'] * n, 32, both_halves(evaluate(fn, F16)))
    form('%s.rn.bf16x2' % op, ['bf16x2'] * n, 32, both_halves(evaluate(fn, BF16)))
arith('fma', 3, 'f16', F16, 'rn', relu=True)
arith('fma', 3, 'bf16', BF16, 'rn', relu=True)
form('fma.rn.relu.f16x2', ['f16x2'] * 3, 32, both_halves(evaluate(fma, F16, relu=True)))

# min and max
for name, fn in (('min', minimum), ('max', maximum)):
    form(name + '.f32', ['f32', 'f32'], 32, evaluate(fn, F32))
    form(name + '.ftz.f32', ['f32', 'f32'], 32, evaluate(fn, F32, ftz=True))
    form(name + '.NaN.f32', ['f32', 'f32'], 32, evaluate(lambda a, b, fn=fn: fn(a, b, True), F32))
    form(name + '.f64', ['f64', 'f64'], 64, evaluate(fn, F64))

    def xorsign(a, b, fn=fn):
        r = fn(a if a[0] == 'nan' else (a[0], 0) + tuple(a[2:]), b if b[0] == 'nan' else (b[0], 0) + tuple(b[2:]))
        return r
    for t, fmt in (('f16', F16), ('bf16', BF16)):
        form('%s.%s' % (name, t), [t, t], 16, evaluate(fn, fmt))
        form('%s.NaN.%s' % (name, t), [t, t], 16, evaluate(lambda a, b, fn=fn: fn(a, b, True), fmt))
        form('%s.%sx2' % (name, t), [t + 'x2'] * 2, 32, both_halves(evaluate(fn, fmt)))


def xorsigned(fn, fmt):
    """The magnitudes' min or max with the product's sign; the signs of NaNs count as they stand."""
    top = 1 << (fmt.bits - 1)

    def run(a, b):
        r = fmt.encode(fn(fmt.decode(a & ~top), fmt.decode(b & ~top)))
        return r if fmt.decode(r)[0] == 'nan' else (r & ~top) | ((a ^ b) & top)
    return run


form('min.xorsign.abs.f32', ['f32', 'f32'], 32, xorsigned(minimum, F32))
form('max.xorsign.abs.f32', ['f32', 'f32'], 32, xorsigned(maximum, F32))
form('min.xorsign.abs.f16', ['f16', 'f16'], 16, xorsigned(minimum, F16))

# signs
def absolute(v):
    return v if v[0] == 'nan' else (v[0], 0) + tuple(v[2:])


for t, fmt in (('f32', F32), ('f64', F64), ('f16', F16), ('bf16', BF16)):
    top = 1 << (fmt.bits - 1)
    form('abs.' + t, [t], fmt.bits, evaluate(absolute, fmt))
    form('neg.' + t, [t], fmt.bits, evaluate(neg, fmt))
form('abs.ftz.f32', ['f32'], 32, evaluate(absolute, F32, ftz=True))
form('neg.ftz.f32', ['f32'], 32, evaluate(neg, F32, ftz=True))
form('neg.f16x2', ['f16x2'], 32, both_halves(evaluate(neg, F16)))
form('abs.bf16x2', ['bf16x2'], 32, both_halves(evaluate(absolute, BF16)))
form('copysign.f32', ['f32', 'f32'], 32, lambda a, b: (a & 1 << 31) | (b & 0x7fffffff))
form('copysign.f64', ['f64', 'f64'], 64, lambda a, b: (a & 1 << 63) | (b & ~(1 << 63)))

# comparisons
for t, fmt in (('f32', F32), ('f64', F64), ('f16', F16), ('bf16', BF16)):
    for c in ('eq', 'ne', 'lt', 'le', 'gt', 'ge', 'equ', 'neu', 'ltu', 'leu', 'gtu', 'geu', 'num', 'nan'):
        predicate('setp.%s.%s' % (c, t), [t, t], lambda a, b, c=c, fmt=fmt: compare(c, fmt.decode(a), fmt.decode(b)))
predicate('setp.lt.ftz.f32', ['f32', 'f32'], lambda a, b: compare('lt', flush(F32.decode(a), F32), flush(F32.decode(b), F32)))
predicate('setp.equ.ftz.f32', ['f32', 'f32'], lambda a, b: compare('equ', flush(F32.decode(a), F32), flush(F32.decode(b), F32)))
form('set.lt.u32.f32', ['f32', 'f32'], 32, lambda a, b: M[32] * compare('lt', F32.decode(a), F32.decode(b)))
form('set.geu.f32.f32', ['f32', 'f32'], 32, lambda a, b: 0x3f800000 * compare('geu', F32.decode(a), F32.decode(b)))
for t, fmt, one in (('f16', F16, 0x3c00), ('bf16', BF16, 0x3f80)):
    for c in ('eq', 'lt', 'neu', 'ge'):
        holds = lambda a, b, c=c, fmt=fmt: compare(c, fmt.decode(a), fmt.decode(b))
        form('set.%s.%sx2.%sx2' % (c, t, t), [t + 'x2'] * 2, 32, both_halves(lambda a, b, h=holds, one=one: one * h(a, b)))
        form('set.%s.u32.%sx2' % (c, t), [t + 'x2'] * 2, 32, both_halves(lambda a, b, h=holds: 0xffff * h(a, b)))
        form('setp.%s.%sx2' % (c, t), [t + 'x2'] * 2, 32,
             lambda a, b, h=holds: h(a & 0xffff, b & 0xffff) | h(a >> 16, b >> 16) << 1,
             body='{ .reg .pred q; .reg .b32 t; setp.%s.%sx2 %%p|q, %%s0, %%s1;\nselp.b32 %%d, 1, 0, %%p; selp.b32 t, 2, 0, q; '
                  'or.b32 %%d, %%d, t; }' % (c, t))
form('set.gt.f16.f16', ['f16', 'f16'], 16, lambda a, b: 0x3c00 * compare('gt', F16.decode(a), F16.decode(b)))
for t, fmt in (('f32', F32), ('f64', F64)):
    e, m = fmt.emax_field, (1 << fmt.mbits) - 1

    def fields(a, fmt=fmt, e=e, m=m):
        return (a >> fmt.mbits) & e, a & m
    predicate('testp.finite.' + t, [t], lambda a, f=fields, e=e: f(a)[0] != e)
    predicate('testp.infinite.' + t, [t], lambda a, f=fields, e=e: f(a) == (e, 0))
    predicate('testp.number.' + t, [t], lambda a, f=fields, e=e: f(a)[0] != e or not f(a)[1])
    predicate('testp.notanumber.' + t, [t], lambda a, f=fields, e=e: f(a)[0] == e and f(a)[1])
    predicate('testp.normal.' + t, [t], lambda a, f=fields, e=e: (f(a)[0] or not f(a)[1]) and f(a)[0] != e)
    predicate('testp.subnormal.' + t, [t], lambda a, f=fields: f(a)[0] == 0 and f(a)[1])

# approximations: what is right, and how far off it the manual lets the hardware be, in ulp of the result


def real(fn, special=None):
    """A double-precision function of one operand, rounded to f32."""
    def run(a):
        v = F32.decode(a)
        if v[0] == 'nan':
            return F32.nan
        x = (-math.inf if v[1] else math.inf) if v[0] == 'inf' else float(v[2]) * (-1 if v[1] else 1)
        x = -0.0 if v[0] == 'num' and v[1] and v[2] == 0 else x
        try:
            r = fn(x)
        except (ValueError, OverflowError, ZeroDivisionError):
            r = special(x)
        if r != r:
            return F32.nan
        if abs(r) == math.inf:
            return 0xff800000 if r < 0 else 0x7f800000
        return F32.encode(('num', int(math.copysign(1, r) < 0), Fraction(abs(r))))
    return run


def rsqrt(x):
    return 1 / math.sqrt(x)


form('ex2.approx.f32', ['f32'], 32, real(lambda x: 2.0 ** x, lambda x: math.inf), ulp=3)
form('lg2.approx.f32', ['f32'], 32, real(math.log2, lambda x: -math.inf if x == 0 else math.nan), ulp=4, off=2.0 ** -22)
form('sqrt.approx.f32', ['f32'], 32, real(math.sqrt, lambda x: math.nan), ulp=2)
form('rsqrt.approx.f32', ['f32'], 32, real(rsqrt, lambda x: math.copysign(math.inf, x) if x == 0 else math.nan), ulp=3)
form('sin.approx.f32', ['angle'], 32, real(math.sin), ulp=2, off=2.0 ** -20.5)
form('cos.approx.f32', ['angle'], 32, real(math.cos), ulp=2, off=2.0 ** -20.5)
form('ex2.approx.ftz.f32', ['f32'], 32, lambda a: evaluate(lambda v: v, F32, ftz=True)(
    real(lambda x: 2.0 ** x, lambda x: math.inf)(evaluate(lambda v: v, F32, ftz=True)(a))), ulp=3)
form('div.full.f32', ['ordinary', 'ordinary'], 32, evaluate(div, F32), ulp=2)
form('div.approx.f32', ['ordinary', 'ordinary'], 32, evaluate(div, F32), ulp=2)
for t, fmt in (('f16', F16), ('bf16', BF16)):
    form('tanh.approx.' + t, [t], 16, lambda a, fmt=fmt: fmt.encode(F32.decode(real(math.tanh)(F32.encode(fmt.decode(a))))),
         ulp=2)
form('ex2.approx.f16', ['f16'], 16, lambda a: F16.encode(F32.decode(real(lambda x: 2.0 ** x, lambda x: math.inf)(
    F32.encode(F16.decode(a))))), ulp=2)
form('rcp.approx.f32', ['f32'], 32, evaluate(lambda a: div(num(1), a), F32), ulp=1)
form('tanh.approx.f32', ['f32'], 32, real(math.tanh), ulp=9000)
