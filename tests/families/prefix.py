"""Prefixes: running reductions along any axis, exclusive, reversed, in segments, several at once."""
from spec import Spec, activation

LONG = [1, 2, 3, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 255, 256, 257, 300, 511, 513, 700, 1000, 1024, 1025, 1500, 2049, 4100]
SHORT = [1, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33]


class Axes:
    def __init__(self, s, work=9000):
        r = s.r
        self.index = list('abij'[:r.choices([1, 2, 3, 4], [30, 40, 22, 8])[0]])
        self.along = r.randrange(len(self.index))
        long = [n for n in LONG if n < 600 or s.chance(0.15)]
        self.extents = [s.extent('ABIJ'['abij'.index(i)], lambda r, k=k: r.choice(long if k == self.along else SHORT))
                        for k, i in enumerate(self.index)]
        s.fit(*self.extents, most=work)
        self.i, self.n = self.index[self.along], self.extents[self.along]
        self.all = [(i, e.text) for i, e in zip(self.index, self.extents)]

    def some(self, s):
        """Some of the axes, in their order."""
        return [a for a in self.all if s.chance(0.5)] or [s.r.choice(self.all)]


def bounds(s, m, way):
    """The range of a prefix at i."""
    i, n = m.i, m.n.operand()
    return {
        'plain': f'0..{i} + 1', 'exclusive': f'0..{i}', 'reversed': f'{i}..{n}', 'after': f'{i} + 1..{n}',
        'segment': f'{i} / {s.width} * {s.width}..{i} + 1',
        'window': f'max({i} - {s.width}, 0)..{i} + 1',
    }[way]


def operation(s, kind):
    if kind in ('i32', 'i64'):
        return s.weighed(sum=6, max=2, min=2, argmax=1, argmin=1)
    return s.weighed(sum=55, prod=10, max=10, min=10, argmax=6, argmin=4, any=3, all=2)


def term(s, m, x, what, at):
    """What is reduced: x at the prefix's index."""
    read = x(**{m.i: at})
    if what in ('any', 'all'):
        return f'{read} {s.pick(">", "<")} {s.pick("0.5", "1.0")}' if what == 'any' else f'{read} > -2.0'
    if what == 'prod':
        return f'1 + 0.01 * clamp({read}, -1.0, 1.0)'
    how = s.weighed(plain=50, square=8, size=8, gain=14, mask=12, far=4, function=4)
    if s.integers and how in ('function', 'gain'):
        how = 'plain'
    other = m.some(s)
    there = {m.i: at}
    if how == 'gain':
        name = f'gain{len(s.params)}'
        return f'{read} * {s.tensor(name, s.pick("f32", "f16"), other, shuffle=0.2)(**there)}'
    if how == 'mask':
        name = f'mask{len(s.params)}'
        if not s.integers and s.chance(0.3):
            return f'{read} > 0 ? {read} : 0'
        zero = 'i32(0)' if s.integers else '0'
        return f'{s.tensor(name, "bool", other, shuffle=0.2)(**there)} ? {read} : {zero}'
    return {'plain': read, 'square': f'{read} * {read}', 'size': f'abs({read})', 'far': f'{read} + 1',
            'function': activation(s, read)}[how]


def one(s, m, x, number):
    """A running reduction as text."""
    what = operation(s, s.kind)
    k = 'pqrs'[number]
    if s.way == 'condition':
        t = term(s, m, x, 'sum', k)
        test = f'{k} {s.pick("<=", "<")} {m.i}' if s.pick(0, 1) else f'{k} >= {m.i}'
        return 'sum', f'sum[{k} < {m.n.text}]({test} ? {t if "?" not in t else f"({t})"} : 0)'
    way = s.way
    return what, f'{what}[{k} in {bounds(s, m, way)}]({term(s, m, x, what, k)})'


def after(s, m, what, text, x):
    """What is made of the running value."""
    if what in ('argmax', 'argmin'):
        return 'i64', text
    if what in ('any', 'all'):
        return 'bool', text
    if s.integers:
        return s.kind, text if s.chance(0.6) else f'{text} + {x()}'
    out = s.kind if s.chance(0.6) else s.pick('f32', 'f16', 'f64', 'bf16')
    how = s.weighed(plain=55, mean=10, less=10, function=10, gain=10, twice=5)
    if how == 'mean':
        text = f'({text}) / ({m.i} + 1)'
    elif how == 'less':
        text = f'{text} - {x()}'
    elif how == 'function':
        text = activation(s, text)
    elif how == 'gain':
        text = f'({text}) * {s.tensor(f"after{len(s.params)}", "f32", m.some(s))()}'
    elif how == 'twice':
        text = f'({text}) * 2 + 1'
    return out, text


def rows_of_matrix(s):
    """Segments that a sparse matrix has: begin[row[i]] is where the segment of element i begins."""
    m = Axes(s, 4000)
    rows = s.extent('ROWS', lambda r: r.choice([1, 2, 5, 30]), fixed=0)
    if not rows.named:
        s.extents.remove(rows)
    s.kind, s.integers = s.pick('f32', 'f32', 'f16', 'i32'), False
    s.integers = s.kind == 'i32'
    x = s.tensor('x', s.kind, m.all)
    row = s.tensor('row', 'i32', [(m.i, m.n.text)], fill=f'0..{min(rows.sizes) - 1}')()
    s.params.append(('begin', 'in i32', [f'{rows.operand()} + 1']))
    s.fills['begin'] = f'@offsets:{min(m.n.sizes)}'
    what = s.pick('sum', 'sum', 'max', 'prod') if not s.integers else s.pick('sum', 'max', 'min')
    t = term(s, m, x, what, 'p')
    text = f'{what}[p in begin[{row}]..{m.i} + 1]({t})'
    if s.chance(0.2):
        text = f'{what}[p in {m.i}..begin[{row} + 1]]({t})'
    out, text = after(s, m, what, text, x)
    s.params.append(('y', f'out {out}', [e for _, e in m.all]))
    s.equations.append(f'y[{",".join(m.index)}] = {text}')
    return s


def prefix(r, name):
    s = Spec(r, name, 9000)
    s.width = r.choice([1, 2, 3, 5, 16, 32, 100])
    if s.chance(0.08):
        return rows_of_matrix(s)
    m = Axes(s)
    s.kind = s.pick('f32', 'f32', 'f32', 'f16', 'f16', 'bf16', 'f64', 'i32', 'i64', 'i8')
    s.integers = s.kind in ('i32', 'i64', 'i8')
    s.kind_out = s.kind
    x = s.tensor('x', s.kind, m.all)
    if s.kind == 'i8':
        s.kind = 'i32'
    s.way = s.weighed(plain=40, exclusive=12, reversed=14, after=8, segment=12, condition=8, window=6)
    one_way = True
    for k in range(r.choices([1, 2, 3], [70, 22, 8])[0]):
        what, text = one(s, m, x, k)
        out, text = after(s, m, what, text, x)
        s.params.append((f'y{k}', f'out {out}', [e for _, e in m.all]))
        if s.chance(0.15) and out not in ('i64', 'bool'):
            s.define(f't{k}', m.all, text)
            text = f't{k}[{",".join(m.index)}]'
        s.equations.append(f'y{k}[{",".join(m.index)}] = {text}')
        if s.chance(0.1):
            s.way, one_way = s.weighed(plain=40, exclusive=12, reversed=14), False
    if s.chance(0.05):
        s.math = 'strict'
    if one_way and s.way not in ('window', 'segment') and s.chance(0.1):
        s.schedule = s.pick('{strategy: scan, split: 2}', '{strategy: scan, split: 1}', '{strategy: scan, threads: 8}',
                            '{strategy: scan, vector: 1}', '{strategy: scan, block: 64}')
    return s
