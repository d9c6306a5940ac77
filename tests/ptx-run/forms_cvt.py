# Conversions; read by make_ops.py.

def value_range(t):
    n = WIDTH[t]
    return (-(1 << (n - 1)), (1 << (n - 1)) - 1) if t[0] == 's' else (0, M[n])


def int_value(x, t):
    return s(x, WIDTH[t]) if t[0] == 's' else x & M[WIDTH[t]]


ALL = ('u8', 's8', 'u16', 's16', 'u32', 's32', 'u64', 's64')
for to in ALL:
    for frm in ALL:
        out = max(16, WIDTH[to])
        if to != frm:
            form('cvt.%s.%s' % (to, frm), [frm], out, lambda a, to=to, frm=frm: int_value(int_value(a, frm), to))
        if to != frm and value_range(frm)[1] > value_range(to)[1] or value_range(frm)[0] < value_range(to)[0]:
            form('cvt.sat.%s.%s' % (to, frm), [frm], out, lambda a, to=to, frm=frm: clamp(int_value(a, frm), *value_range(to)))
# a destination wider than the type: extended by its sign
form('cvt.s8.s32', ['s32'], 64, lambda a: s(a, 8), name='cvt.s8.s32.wide')
form('cvt.u8.u32', ['u32'], 32, lambda a: a & 255, name='cvt.u8.u32.wide')
form('cvt.s16.s64', ['s64'], 32, lambda a: s(a, 16), name='cvt.s16.s64.wide')

FLOAT = {'f16': F16, 'bf16': BF16, 'f32': F32, 'f64': F64}


def to_float(fmt, mode, sat=False, ftz=False):
    def run(x):
        v = num(x)
        r = fmt.decode(fmt.encode(v, mode))
        return fmt.encode(saturate(r) if sat else r)
    return run


for to in ('f16', 'f32', 'f64', 'bf16'):
    for frm in ALL if to != 'bf16' else ('s32', 'u64', 's16'):
        for mode in ('rn', 'rz', 'rm', 'rp') if WIDTH[frm] >= 32 and to != 'bf16' else ('rn',):
            form('cvt.%s.%s.%s' % (mode, to, frm), [frm], FLOAT[to].bits,
                 lambda a, frm=frm, run=to_float(FLOAT[to], mode): run(int_value(a, frm)))
form('cvt.rn.sat.f32.s32', ['s32'], 32, lambda a: to_float(F32, 'rn', True)(s(a, 32)))


def to_int(t, mode, fmt, ftz=False):
    n, (lo, hi) = WIDTH[t], value_range(t)

    def run(a):
        v = fmt.decode(a)
        if ftz:
            v = flush(v, fmt)
        if v[0] == 'nan':
            return int_value(NAN_TO_INT(t, fmt), t)
        if v[0] == 'inf':
            return lo if v[1] else hi
        return clamp(int(signed(integral(v, mode))), lo, hi)
    return run


def NAN_TO_INT(t, fmt):
    return 1 << (WIDTH[t] - 1) if WIDTH[t] == 64 or fmt is F64 else 0


for frm, sets_ in (('f32', ('f32', 'near32')), ('f64', ('f64', 'near')), ('f16', ('f16',)), ('bf16', ('bf16',))):
    for to in ALL if frm != 'bf16' else ('s32', 'u16'):
        for mode in ('rzi', 'rni', 'rmi', 'rpi') if to[1:] != '16' else ('rzi',):
            for k, operands in enumerate(sets_):
                form('cvt.%s.%s.%s' % (mode, to, frm), [operands], max(16, WIDTH[to]), to_int(to, mode, FLOAT[frm]),
                     name='cvt.%s.%s.%s%s' % (mode, to, frm, '.near' * k))
form('cvt.rpi.ftz.s32.f32', ['f32'], 32, to_int('s32', 'rpi', F32, True))
form('cvt.rmi.ftz.s64.f32', ['f32'], 64, to_int('s64', 'rmi', F32, True))


def between(to, frm, mode='rn', sat=False, ftz=False, relu=False, satfinite=False):
    a, b = FLOAT[frm], FLOAT[to]

    def run(x):
        v = a.decode(x)
        if ftz and a is F32:
            v = num(0) if v[0] == 'nan' and sat else ('nan', 0x7fffffffe0000000) if v[0] == 'nan' else flush(v, F32)
        if v[0] == 'nan' and not sat and len(v) > 1 and a is F64:  # the top of the payload stays
            m = v[1] & ((1 << 52) - 1)
            return v[1] >> 63 << (b.bits - 1) | b.inf | m >> (52 - b.mbits)
        if a is BF16 and b is F32 and v[0] == 'nan':
            return x << 16
        if a is BF16 and b is F64 and v[0] == 'nan':
            v = F32.decode(x << 16)
        if sat:
            v = saturate(v)
        if relu and v[0] != 'nan' and v[1]:
            v = num(0)
        r = b.decode(b.encode(v, mode, satfinite))
        return b.encode(flush(r, F32) if ftz and b is F32 else r)
    return run


for to, frm, modes in (('f32', 'f64', ('rn', 'rz', 'rm', 'rp')), ('f16', 'f32', ('rn', 'rz', 'rm', 'rp')),
                       ('f16', 'f64', ('rn', 'rz', 'rm', 'rp')), ('bf16', 'f32', ('rn', 'rz', 'rm', 'rp')),
                       ('bf16', 'f64', ('rn',)), ('bf16', 'f16', ('rn',)), ('f16', 'bf16', ('rn', 'rz'))):
    for mode in modes:
        form('cvt.%s.%s.%s' % (mode, to, frm), [frm], FLOAT[to].bits, between(to, frm, mode))
        if frm == 'f32':
            form('cvt.%s.%s.%s' % (mode, to, frm), ['tie'], FLOAT[to].bits, between(to, frm, mode),
                 name='cvt.%s.%s.%s.tie' % (mode, to, frm))
for to, frm in (('f64', 'f32'), ('f32', 'f16'), ('f64', 'f16'), ('f32', 'bf16'), ('f64', 'bf16')):
    form('cvt.%s.%s' % (to, frm), [frm], FLOAT[to].bits, between(to, frm))
form('cvt.rn.sat.f16.f32', ['f32'], 16, between('f16', 'f32', sat=True))
form('cvt.rn.ftz.f16.f32', ['f32'], 16, between('f16', 'f32', ftz=True))
form('cvt.rn.relu.f16.f32', ['f32'], 16, between('f16', 'f32', relu=True))
form('cvt.rn.relu.bf16.f32', ['f32'], 16, between('bf16', 'f32', relu=True))
form('cvt.rn.satfinite.f16.f32', ['f32'], 16, between('f16', 'f32', satfinite=True))
form('cvt.rz.satfinite.bf16.f32', ['f32'], 16, between('bf16', 'f32', 'rz', satfinite=True))
form('cvt.sat.f32.f32', ['f32'], 32, between('f32', 'f32', sat=True))
form('cvt.ftz.f32.f32', ['f32'], 32, between('f32', 'f32', ftz=True))
form('cvt.ftz.f64.f32', ['f32'], 64, between('f64', 'f32', ftz=True))
form('cvt.rn.ftz.f32.f64', ['f64'], 32, between('f32', 'f64', ftz=True))
form('cvt.sat.f32.f16', ['f16'], 32, between('f32', 'f16', sat=True))
for t in ('f32', 'f64', 'f16'):
    for mode in ('rni', 'rzi', 'rmi', 'rpi'):
        form('cvt.%s.%s.%s' % (mode, t, t), [t], FLOAT[t].bits,
             lambda a, f=FLOAT[t], mode=mode: f.encode(integral(f.decode(a), mode)))


def two(fmt, mode='rn', relu=False):
    def one(x):
        v = F32.decode(x)
        if relu and v[0] != 'nan' and v[1]:
            v = num(0)
        return fmt.encode(v, mode, fmt in (E4M3, E5M2))
    return lambda a, b: one(a) << fmt.bits | one(b)


for t, fmt in (('f16x2', F16), ('bf16x2', BF16)):
    form('cvt.rn.%s.f32' % t, ['f32', 'f32'], 32, two(fmt))
    form('cvt.rz.%s.f32' % t, ['f32', 'f32'], 32, two(fmt, 'rz'))
    form('cvt.rn.relu.%s.f32' % t, ['f32', 'f32'], 32, two(fmt, relu=True))


def tf32(mode, relu=False):
    def run(a):
        v = F32.decode(a)
        if v[0] == 'nan':
            return a & ~0x1fff if mode == 'rna' else 0x7fffe000
        if relu and v[1]:
            v = num(0)
        return TF32.encode(v, mode) << 13
    return run


form('cvt.rna.tf32.f32', ['tie'], 32, tf32('rna'))
form('cvt.rn.tf32.f32', ['tie'], 32, tf32('rn'))
form('cvt.rz.tf32.f32', ['tie'], 32, tf32('rz'))
for mode in ('rna', 'rn', 'rz'):
    form('cvt.%s.tf32.f32' % mode, ['f32'], 32, tf32(mode), name='cvt.%s.tf32.f32.special' % mode)

# fp8: two to a register
FP8 = {'e4m3x2': E4M3, 'e5m2x2': E5M2}
for t, fmt in FP8.items():
    form('cvt.rn.satfinite.%s.f32' % t, ['f32', 'f32'], 16, two(fmt))
    form('cvt.rn.satfinite.relu.%s.f32' % t, ['f32', 'f32'], 16, two(fmt, relu=True))
    form('cvt.rn.satfinite.%s.f16x2' % t, ['f16x2'], 16, lambda a, fmt=fmt: (
        fmt.encode(F16.decode(a >> 16), 'rn', True) << 8 | fmt.encode(F16.decode(a & 0xffff), 'rn', True)))
    form('cvt.rn.f16x2.%s' % t, ['b16'], 32, lambda a, fmt=fmt: (
        F16.encode(fmt.decode(a >> 8)) << 16 | F16.encode(fmt.decode(a & 255))))

# two integers, saturated, into the low part of a word
for t, lo, hi in ('u16', 0, 65535), ('s16', -32768, 32767), ('u8', 0, 255), ('s8', -128, 127):
    n = int(t[1:])
    def pack(a, b, c=0, n=n, lo=lo, hi=hi):
        return (clamp(s(a, 32), lo, hi) & M[n]) << n | clamp(s(b, 32), lo, hi) & M[n] | (c << 2 * n if n < 16 else 0)
    form('cvt.pack.sat.%s.s32%s' % (t, '.b32' if n < 16 else ''), ['s32', 's32'] + ['b32'] * (n < 16), 32, pack)
