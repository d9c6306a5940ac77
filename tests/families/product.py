"""Products of f32, which tensor cores take in parts; and activations."""
from spec import Spec, activation, epilogue

ROWS = [1, 2, 3, 5, 8, 15, 16, 17, 31, 33, 60, 64, 65, 70, 100, 127, 128, 130]
TERMS = [1, 2, 3, 7, 8, 16, 17, 31, 32, 33, 64, 65, 100, 128, 200, 323, 324, 325, 328, 352, 384, 511, 520, 700]


def factor(s, name, axes):
    """An operand, as it lies or made of what lies: its sizes may be far from 1."""
    type_ = 'f32' if s.chance(0.92) else s.pick('f16', 'bf16', 'i8', 'f64')
    s.parts = s.parts and type_ == 'f32'
    read = s.tensor(name, type_, axes, shuffle=0.5)()
    how = s.weighed(plain=60, scaled=10, function=6, far=8, spread=10, masked=6)
    if how == 'scaled':
        return f'({read} * {s.tensor(name + "_scale", "f32", [s.r.choice(axes)])()})'
    if how == 'function':
        return activation(s, read)
    if how in ('far', 'spread'):
        s.outs = ['f32']
    if how == 'far':
        return f'({read} * {s.pick("1e-18", "1e-30", "1e18", "3e-38", "1e-40", "1e30")})'
    if how == 'spread':  # exponents of their own, from subnormals to large numbers
        e = s.tensor(name + '_power', 'i32', [s.r.choice(axes)], fill=s.pick('-20..20', '-60..60', '-140..10', '0..100'))()
        return f'({read} * exp2(f32({e})))'
    if how == 'masked':
        return f'({s.tensor(name + "_on", "bool", [s.r.choice(axes)])()} ? {read} : 0)'
    return read


def product(r, name):
    s = Spec(r, name, 400000)
    s.parts = True  # whether f32 goes in parts
    s.outs = ['f32', 'f32', 'f32', 'f16', 'bf16']
    m, n = s.extent('M', lambda r: r.choice(ROWS)), s.extent('N', lambda r: r.choice(ROWS))
    k = s.extent('K', lambda r: r.choice(TERMS), fixed=0.4)
    batch = [('z', s.extent('B', lambda r: r.choice([1, 2, 3])))] if s.chance(0.25) else []
    s.fit(m, n, k, *[e for _, e in batch])
    batch = [(i, e.text) for i, e in batch]
    a = factor(s, 'a', batch + [('i', m.text), ('p', k.text)])
    b = factor(s, 'b', (batch if s.chance(0.7) else []) + [('p', k.text), ('j', n.text)])
    text = s.summed([('p', k.text)], s.product(a, b))
    index = batch + [('i', m.text), ('j', n.text)]
    plain = not s.chance(0.15)  # else a batch may be last, which is no product for tensor cores
    if not plain:
        s.r.shuffle(index)
    if s.chance(0.1):  # a second sum of the same shape
        c = factor(s, 'c', [('p', k.text), ('j', n.text)])
        text = f'{text} * sigmoid({s.summed([("p", k.text)], s.product(a, c))})'
    if s.chance(0.1):
        s.define('t', index, text)
        text = f't[{",".join(i for i, _ in index)}]'
    text = epilogue(s, text, index, ('j', n.text))
    s.params.append(('y', f'out {s.r.choice(s.outs)}', [e for _, e in index]))
    s.define('y', [i for i, _ in index], text)
    if s.chance(0.08):
        s.math = 'strict'
    elif plain and min(m.sizes + n.sizes + k.sizes) > 1 and s.chance(0.35):
        s.schedule = s.pick('{mma: fma}', '{mma: fma, split: 3}', *(['{mma: tf32x3}', '{mma: tf32x3, split: 2}'] * 2 if s.parts else []))
    return s


def activations(r, name):
    s = Spec(r, name, 3000)
    index = list('abij'[:r.randint(1, 4)])
    lengths = [1, 2, 3, 7, 8, 9, 31, 33, 64, 65, 130, 257]
    extents = [s.extent(i.upper(), lambda r: r.choice(lengths)) for i in index]
    s.fit(*extents)
    axes = [(i, e.text) for i, e in zip(index, extents)]
    kinds = ['f32', 'f32', 'f16', 'bf16', 'f64']
    reads = [s.tensor(f'x{k}', s.r.choice(kinds), axes if k == 0 else [a for a in axes if s.chance(0.5)] or axes[-1:],
                      shuffle=0.0 if k == 0 else 0.2)() for k in range(r.randint(1, 3))]
    for k in range(r.randint(1, 3)):
        text = activation(s, s.r.choice(reads))
        for _ in range(r.randint(0, 3)):
            how = s.weighed(activation=3, plus=3, times=3, chosen=1)
            other = s.r.choice(reads)
            text = (activation(s, text) if how == 'activation' else f'({text}) + {other}' if how == 'plus' else
                    f'({text}) * {other}' if how == 'times' else f'({other} > 0 ? f32({text}) : f32({activation(s, other)}))')
        s.params.append((f'y{k}', f'out {s.r.choice(kinds)}', [e for _, e in axes]))
        s.define(f'y{k}', index, text)
    if s.chance(0.15):
        s.math = s.pick('strict', 'fast')
    return s
