# Integer forms; read by make_ops.py.

def each_int(fn, widths=(16, 32, 64), signs='us'):
    for n in widths:
        for sg in signs:
            fn('%s%d' % (sg, n), n, (lambda x, n=n: s(x, n)) if sg == 's' else (lambda x, n=n: x & M[n]))


def clamp(x, lo, hi):
    return max(lo, min(hi, x))


def trunc_div(a, b):
    q = abs(a) // abs(b)
    return -q if (a < 0) != (b < 0) else q


def arithmetic(t, n, v):
    form('add.' + t, [t, t], n, lambda a, b: a + b)
    form('sub.' + t, [t, t], n, lambda a, b: a - b)
    form('mul.lo.' + t, [t, t], n, lambda a, b: a * b)
    form('mul.hi.' + t, [t, t], n, lambda a, b: (v(a) * v(b)) >> n)
    form('mad.lo.' + t, [t, t, t], n, lambda a, b, c: a * b + c)
    form('mad.hi.' + t, [t, t, t], n, lambda a, b, c: ((v(a) * v(b)) >> n) + c)
    if n < 64:
        form('mul.wide.' + t, [t, t], 2 * n, lambda a, b: v(a) * v(b))
        wide = t[0] + str(2 * n)
        form('mad.wide.' + t, [t, t, wide], 2 * n, lambda a, b, c: v(a) * v(b) + c)
    form('sad.' + t, [t, t, t], n, lambda a, b, c: c + abs(v(a) - v(b)))
    # what the hardware's division sequences give for a zero divisor
    form('div.' + t, [t, t], n, lambda a, b: trunc_div(v(a), v(b)) if b else -1)
    form('rem.' + t, [t, t], n, lambda a, b: v(a) - trunc_div(v(a), v(b)) * v(b) if b else -1)
    form('min.' + t, [t, t], n, lambda a, b: min(v(a), v(b)))
    form('max.' + t, [t, t], n, lambda a, b: max(v(a), v(b)))
    form('shr.' + t, [t, 'shift'], n, lambda a, b: v(a) >> min(b, n))
    if t[0] == 's':
        form('abs.' + t, [t], n, lambda a: abs(v(a)))
        form('neg.' + t, [t], n, lambda a: -v(a))
    for c in ('eq', 'ne', 'lt', 'le', 'gt', 'ge') + (('lo', 'ls', 'hi', 'hs') if t[0] == 'u' else ()):
        predicate('setp.%s.%s' % (c, t), [t, t], lambda a, b, c=c: {
            'eq': v(a) == v(b), 'ne': v(a) != v(b), 'lt': v(a) < v(b), 'le': v(a) <= v(b), 'gt': v(a) > v(b),
            'ge': v(a) >= v(b), 'lo': a < b, 'ls': a <= b, 'hi': a > b, 'hs': a >= b}[c])


each_int(arithmetic)
form('add.sat.s32', ['s32', 's32'], 32, lambda a, b: clamp(s(a, 32) + s(b, 32), -2**31, 2**31 - 1))
form('sub.sat.s32', ['s32', 's32'], 32, lambda a, b: clamp(s(a, 32) - s(b, 32), -2**31, 2**31 - 1))
form('mad.hi.sat.s32', ['s32'] * 3, 32,
     lambda a, b, c: clamp(((s(a, 32) * s(b, 32)) >> 32) + s(c, 32), -2**31, 2**31 - 1))
form('min.relu.s32', ['s32', 's32'], 32, lambda a, b: max(0, min(s(a, 32), s(b, 32))))
form('max.relu.s32', ['s32', 's32'], 32, lambda a, b: max(0, s(a, 32), s(b, 32)))


def s24(x):
    return s((x & 0xffffff) << 8, 32) >> 8


for t, v in (('u32', lambda x: x & 0xffffff), ('s32', s24)):
    form('mul24.lo.' + t, [t, t], 32, lambda a, b, v=v: v(a) * v(b))
    form('mul24.hi.' + t, [t, t], 32, lambda a, b, v=v: (v(a) * v(b)) >> 16)
    form('mad24.lo.' + t, [t, t, t], 32, lambda a, b, c, v=v: v(a) * v(b) + c)
    form('mad24.hi.' + t, [t, t, t], 32, lambda a, b, c, v=v: ((v(a) * v(b)) >> 16) + c)


def halves(fn, v):
    return lambda a, b: (fn(v(a & 0xffff), v(b & 0xffff)) & 0xffff) | (fn(v(a >> 16), v(b >> 16)) & 0xffff) << 16


for t, v in (('u16x2', lambda x: x), ('s16x2', lambda x: s(x, 16))):
    form('add.' + t, [t, t], 32, halves(lambda x, y: x + y, v))
    form('min.' + t, [t, t], 32, halves(min, v))
    form('max.' + t, [t, t], 32, halves(max, v))

for n in (16, 32, 64):
    t = 'b%d' % n
    form('and.' + t, [t, t], n, lambda a, b: a & b)
    form('or.' + t, [t, t], n, lambda a, b: a | b)
    form('xor.' + t, [t, t], n, lambda a, b: a ^ b)
    form('not.' + t, [t], n, lambda a: ~a)
    form('cnot.' + t, [t], n, lambda a: int(a == 0))
    form('shl.' + t, [t, 'shift'], n, lambda a, b, n=n: a << min(b, n))
    form('selp.' + t, [t, t, 'u32'], n, lambda a, b, c: a if c & 1 else b, name='selp.' + t,
         body='and.b32 %%t, %%s2, 1;\nsetp.ne.u32 %%p, %%t, 0;\nselp.%s %%d, %%s0, %%s1, %%p;' % t)
    form('slct.%s.s32' % t, [t, t, 's32'], n, lambda a, b, c: a if s(c, 32) >= 0 else b)
    form('slct.%s.f32' % t, [t, t, 'f32'], n,
         lambda a, b, c: b if F32.decode(c)[0] == 'nan' or compare('lt', F32.decode(c), num(0)) else a)
for table in (0x00, 0x80, 0xe8, 0x96, 0xca, 0x1b, 0xff):
    form('lop3.b32', ['b32'] * 3, 32, lambda a, b, c, k=table: sum(
        ((k >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1))) & 1) << i for i in range(32)),
        suffix=', 0x%x' % table, name='lop3.b32.%02x' % table)

def bfi(a, b, pos, length, n):
    if n == 32:
        pos, length = pos & 255, length & 255
    pos, field = min(pos, n), (1 << min(length, n)) - 1
    return (b & ~(field << pos)) | (a & field) << pos


for n in (32, 64):
    t = 'b%d' % n
    form('popc.' + t, [t], 32, lambda a: bin(a).count('1'))
    form('clz.' + t, [t], 32, lambda a, n=n: n - a.bit_length())
    form('brev.' + t, [t], n, lambda a, n=n: int(format(a, '0%db' % n)[::-1], 2))
    form('bfi.' + t, [t, t, 'shift', 'shift'], n, lambda a, b, c, e, n=n: bfi(a, b, c, e, n))


def bfe(a, pos, length, n, is_signed):
    if n == 32:  # 64-bit forms take them as they are
        pos, length = pos & 255, length & 255
    pos, length = min(pos, n), min(length, n)
    sign = (a >> min(pos + length - 1, n - 1)) & 1 if is_signed and length else 0
    r = 0
    for i in range(n):
        r |= ((a >> (pos + i)) & 1 if i < length and pos + i < n else sign) << i
    return r


def bfind(a, n, is_signed, amount):
    if is_signed and s(a, n) < 0:
        a = ~a & M[n]
    if a == 0:
        return M[32]
    top = a.bit_length() - 1
    return n - 1 - top if amount else top


for n in (32, 64):
    for sg in 'us':
        t = '%s%d' % (sg, n)
        form('bfe.' + t, [t, 'shift', 'shift'], n, lambda a, b, c, n=n, sg=sg: bfe(a, b, c, n, sg == 's'))
        form('bfind.' + t, [t], 32, lambda a, n=n, sg=sg: bfind(a, n, sg == 's', False))
        form('bfind.shiftamt.' + t, [t], 32, lambda a, n=n, sg=sg: bfind(a, n, sg == 's', True))

for mode in ('wrap', 'clamp'):
    def count(c, mode=mode):
        return c & 31 if mode == 'wrap' else min(c, 32)
    form('shf.l.%s.b32' % mode, ['b32', 'b32', 'shift'], 32,
         lambda a, b, c, count=count: ((b << 32 | a) << count(c)) >> 32)
    form('shf.r.%s.b32' % mode, ['b32', 'b32', 'shift'], 32, lambda a, b, c, count=count: (b << 32 | a) >> count(c))
    form('bmsk.%s.b32' % mode, ['shift', 'shift'], 32, lambda a, b, mode=mode: (
        ((1 << (b & 31)) - 1) << (a & 31) if mode == 'wrap' else ((1 << min(b, 32)) - 1) << min(a, 32)))
    for t in ('u32', 's32'):
        form('szext.%s.%s' % (mode, t), [t, 'shift'], 32, lambda a, b, mode=mode, t=t: bfe(
            a, 0, b & 31 if mode == 'wrap' else min(b, 32), 32, t == 's32'))


def prmt(a, b, sel):
    from_ = b << 32 | a
    r = 0
    for k in range(4):
        nib = sel >> (4 * k) & 15
        byte = from_ >> (8 * (nib & 7)) & 255
        r |= ((255 if byte & 128 else 0) if nib & 8 else byte) << (8 * k)
    return r


form('prmt.b32', ['b32'] * 3, 32, prmt)
for mode, table in (('f4e', [0x3210, 0x4321, 0x5432, 0x6543]), ('b4e', [0x5670, 0x6701, 0x7012, 0x0123]),
                    ('rc8', [0, 0x1111, 0x2222, 0x3333]), ('ecl', [0x3210, 0x3211, 0x3222, 0x3333]),
                    ('ecr', [0x0000, 0x1110, 0x2210, 0x3210]), ('rc16', [0x1010, 0x3232, 0x1010, 0x3232])):
    form('prmt.b32.' + mode, ['b32'] * 3, 32, lambda a, b, c, table=table: prmt(a, b, table[c & 3]))


def fns(mask, base, offset):
    base &= 31
    offset = s(offset, 32)
    if offset == 0:
        return base if mask >> base & 1 else M[32]
    pos = range(base, 32) if offset > 0 else range(base, -1, -1)
    hits = [p for p in pos if mask >> p & 1]
    return hits[abs(offset) - 1] if len(hits) >= abs(offset) else M[32]


form('fns.b32', ['b32', 'lane', 'lane'], 32, fns, body='and.b32 %s1, %s1, 31;\nand.b32 %s2, %s2, 7;\nsub.s32 %s2, %s2, 3;\n'
     'fns.b32 %d, %s0, %s1, %s2;') if False else None
for x, vx in (('u32', lambda v: v & 255), ('s32', lambda v: s(v, 8))):
    for y, vy in (('u32', lambda v: v & 255), ('s32', lambda v: s(v, 8))):
        form('dp4a.%s.%s' % (x, y), [x, y, 's32'], 32, lambda a, b, c, vx=vx, vy=vy: c + sum(
            vx(a >> 8 * i) * vy(b >> 8 * i) for i in range(4)))
        for half, sh in (('lo', 0), ('hi', 16)):
            form('dp2a.%s.%s.%s' % (half, x, y), [x, y, 's32'], 32, lambda a, b, c, x=x, vy=vy, sh=sh: c + sum(
                (s(a >> 16 * i, 16) if x == 's32' else a >> 16 * i & M[16]) * vy(b >> (8 * i + sh)) for i in range(2)))
form('vabsdiff4.u32.u32.u32', ['u32'] * 3, 32, lambda a, b, c: sum(
    abs((a >> 8 * i & 255) - (b >> 8 * i & 255)) << 8 * i for i in range(4)))
form('vabsdiff4.u32.u32.u32.add', ['u32'] * 3, 32, lambda a, b, c: c + sum(
    abs((a >> 8 * i & 255) - (b >> 8 * i & 255)) for i in range(4)))

# set, boolean operators, the pair of predicates
for t in ('s32', 'u64'):
    n = WIDTH[t]
    form('set.lt.u32.' + t, [t, t], 32, lambda a, b, n=n, t=t: M[32] if (s(a, n) < s(b, n) if t[0] == 's' else a < b) else 0)
    form('set.ge.f32.' + t, [t, t], 32, lambda a, b, n=n, t=t: 0x3f800000 if (s(a, n) >= s(b, n) if t[0] == 's' else a >= b) else 0)
for op, fn in (('and', lambda x, y: x & y), ('or', lambda x, y: x | y), ('xor', lambda x, y: x ^ y)):
    form('setp.lt.%s.u32' % op, ['u32', 'u32', 'u32'], 32,
         lambda a, b, c, fn=fn: fn(a < b, bool(c & 1)) | fn(a >= b, bool(c & 1)) << 1,
         body='and.b32 %%t, %%s2, 1;\nsetp.ne.u32 %%p, %%t, 0;\nsetp.lt.%s.u32 %%p|%%q, %%s0, %%s1, %%p;\n'
              'selp.b32 %%d, 1, 0, %%p;\nselp.b32 %%t, 2, 0, %%q;\nor.b32 %%d, %%d, %%t;' % op)
    form('%s.pred' % op, ['u32', 'u32'], 32, lambda a, b, fn=fn: fn(a & 1, b >> 1 & 1),
         body='{\n.reg .pred %%a, %%b;\n.reg .b32 %%u, %%v;\nand.b32 %%u, %%s0, 1;\nand.b32 %%v, %%s1, 2;\n'
              'setp.ne.u32 %%a, %%u, 0;\nsetp.ne.u32 %%b, %%v, 0;\n%s.pred %%p, %%a, %%b;\nselp.b32 %%d, 1, 0, %%p;\n}' % op)
form('not.pred', ['u32'], 32, lambda a: ~a & 1,
     body='and.b32 %t, %s0, 1;\nsetp.ne.u32 %p, %t, 0;\nnot.pred %q, %p;\nselp.b32 %d, 1, 0, %q;')

# carries: the high word of sums, differences and products of two words
two = 'mov.b64 {%l0, %h0}, %s0;\nmov.b64 {%l1, %h1}, %s1;\n'
regs = '{\n.reg .b32 %l0, %h0, %l1, %h1, %l, %h;\n'
form('add.cc.u32', ['u64', 'u64'], 64, lambda a, b: a + b,
     body=regs + two + 'add.cc.u32 %l, %l0, %l1;\naddc.u32 %h, %h0, %h1;\nmov.b64 %d, {%l, %h};\n}')
form('sub.cc.u32', ['u64', 'u64'], 64, lambda a, b: a - b,
     body=regs + two + 'sub.cc.u32 %l, %l0, %l1;\nsubc.u32 %h, %h0, %h1;\nmov.b64 %d, {%l, %h};\n}')
form('mad.cc.u32', ['u64', 'u64'], 64, lambda a, b: (a & M[32]) * (b & M[32]) + (b >> 32) + ((a >> 32) << 32),
     body=regs + two + 'mad.lo.cc.u32 %l, %l0, %l1, %h1;\nmadc.hi.u32 %h, %l0, %l1, %h0;\nmov.b64 %d, {%l, %h};\n}')
form('add.cc.u64', ['u64', 'u64'], 64, lambda a, b: (a + b) >> 64,
     body='add.cc.u64 %w, %s0, %s1;\naddc.u64 %d, 0, 0;')

# pack and unpack
form('mov.b32.pack', ['b16', 'b16'], 32, lambda a, b: a | b << 16, body='mov.b32 %d, {%s0, %s1};')
form('mov.b64.pack', ['b32', 'b32'], 64, lambda a, b: a | b << 32, body='mov.b64 %d, {%s0, %s1};')
form('mov.b64.pack4', ['b16'] * 4, 64, lambda a, b, c, e: a | b << 16 | c << 32 | e << 48,
     body='mov.b64 %d, {%s0, %s1, %s2, %s3};')
form('mov.b64.unpack', ['b64'], 32, lambda a: (a & M[32]) ^ (a >> 32) >> 1,
     body='{\n.reg .b32 %l, %h;\nmov.b64 {%l, %h}, %s0;\nshr.u32 %h, %h, 1;\nxor.b32 %d, %l, %h;\n}')
form('mov.b64.unpack4', ['b64'], 16, lambda a: (a >> 48) - (a >> 16),
     body='{\n.reg .b16 %l, %h;\nmov.b64 {_, %l, _, %h}, %s0;\nsub.u16 %d, %h, %l;\n}')
form('mov.b32.unpack', ['b32'], 16, lambda a: (a >> 16) - a,
     body='{\n.reg .b16 %l, %h;\nmov.b32 {%l, %h}, %s0;\nsub.u16 %d, %h, %l;\n}')
