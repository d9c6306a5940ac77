"""Norms and softmaxes over any axes, and losses."""
from spec import Spec, activation

LETTERS, TERMS, DIMS = 'abijk', 'pqrst', 'ABIJK'
LENGTHS = [1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 31, 33, 40, 64, 65, 100, 130, 257, 500]


class Axes:
    """Axes of a tensor, some of which are reduced."""

    def __init__(self, s, least=1, most=5):
        r = s.r
        rank = min(most, max(least, r.choices([1, 2, 3, 4, 5], [8, 30, 32, 22, 8])[0]))
        how = s.weighed(last=30, trailing=15, leading=10, one=20, any=25)
        self.index = list(LETTERS[:rank])
        if how == 'last':
            over = [rank - 1]
        elif how == 'trailing':
            over = list(range(r.randrange(rank), rank))
        elif how == 'leading':
            over = list(range(r.randint(1, rank)))
        elif how == 'one':
            over = [r.randrange(rank)]
        else:
            over = [k for k in range(rank) if s.chance(0.5)] or [r.randrange(rank)]
        self.over = over
        self.extents = [s.extent(DIMS[k], lambda r: r.choice(LENGTHS[:12] if rank > 2 and s.chance(0.6) else LENGTHS))
                        for k in range(rank)]
        s.fit(*self.extents)
        self.all = [(i, e.text) for i, e in zip(self.index, self.extents)]
        self.kept = [a for k, a in enumerate(self.all) if k not in over]
        self.terms = {self.index[k]: TERMS[k] for k in over}

    def some(self, s):
        return [a for a in self.all if s.chance(0.4)] or [s.r.choice(self.all)]

    def left(self, name, index):
        return f'{name}[{",".join(i for i, _ in index)}]' if index else name

    def reduced(self, s, what, text):
        """A reduction over the axes, of a function of the subscripts that are another's."""
        words = [f'{self.terms[i]} < {e}' if s.chance(0.1) else self.terms[i] for i, e in self.all if i in self.terms]
        if s.chance(0.3):
            s.r.shuffle(words)
        return f'{what}[{",".join(words)}]({text(self.terms)})'

    def count(self):
        return ' * '.join(e.operand() for k, e in enumerate(self.extents) if k in self.over)


def element(s, m, x):
    """What is normalised, as a function of subscripts: an element, or something made of it."""
    how = s.weighed(plain=60, residual=10, scaled=8, function=8, masked=8, cast=6)
    if how == 'residual':
        other = s.tensor('z', s.pick('f32', 'f16'), m.all)
        return lambda at: f'({x(**at)} + {other(**at)})'
    if how == 'scaled':
        other = s.tensor('z', 'f32', m.some(s))
        return lambda at: f'{x(**at)} * {other(**at)}'
    if how == 'function':
        form = s.pick('abs({})', 'relu({})', 'silu({})', 'tanh({})')
        return lambda at: form.format(x(**at))
    if how == 'masked':
        other = s.tensor('on', 'bool', m.some(s))
        return lambda at: f'({other(**at)} ? {x(**at)} : {s.outside})'
    if how == 'cast':
        return lambda at: f'f32({x(**at)})'
    return lambda at: x(**at)


KINDS = {'rms': 12, 'layer': 14, 'moments': 14, 'softmax': 16, 'log_softmax': 8, 'exps': 8, 'range': 7, 'norm': 8, 'lse': 6, 'two': 6,
         'chosen': 5, 'argmax': 4, 'statistics': 10}


def norm(r, name):
    s = Spec(r, name, 4000)
    kind = r.choices(list(KINDS), list(KINDS.values()))[0]
    s.outside = '-inf' if kind in ('softmax', 'log_softmax', 'exps', 'lse') and s.chance(0.5) else '0'
    m = Axes(s)
    type_ = s.pick('f32', 'f32', 'f16', 'f16', 'bf16', 'f64')
    x = s.tensor('x', type_, m.all)
    e = element(s, m, x)
    own, k = e({}), m.kept
    at = lambda name: m.left(name, k)
    eps = s.scalar('eps', '1e-3') if s.chance(0.4) else '1e-3'
    small = []
    if kind == 'rms':
        s.define('ms', k, m.reduced(s, 'sum', lambda t: f'{e(t)} * {e(t)}') + f' / ({m.count()})')
        text = f'{own} * rsqrt({at("ms")} + {eps})'
    elif kind == 'layer':
        s.define('mu', k, m.reduced(s, 'sum', e) + f' / ({m.count()})')
        s.define('va', k, m.reduced(s, 'sum', lambda t: f'({e(t)} - {at("mu")}) * ({e(t)} - {at("mu")})') + f' / ({m.count()})')
        text = f'({own} - {at("mu")}) * rsqrt({at("va")} + {eps})'
        small = ['mu', 'va'] if s.chance(0.25) else []
    elif kind == 'moments':
        s.define('mu', k, m.reduced(s, 'mean', e))
        s.define('va', k, m.reduced(s, s.pick('var', 'std'), e))
        text = f'({own} - {at("mu")}) / {s.pick("", "sqrt")}({at("va")} + {eps})'
        small = ['mu', 'va'] if s.chance(0.25) else []
    elif kind in ('softmax', 'log_softmax'):
        index = [i for i, _ in m.all if i in m.terms]
        text = f'{kind}[{",".join(index)}]({own})'
    elif kind == 'exps':
        s.define('top', k, m.reduced(s, 'max', e))
        s.define('ex', m.all, f'exp({own} - {at("top")})')
        s.define('su', k, m.reduced(s, 'sum', lambda t: 'ex[' + ','.join(t.get(i, i) for i in m.index) + ']'))
        text = f'ex[{",".join(m.index)}] / {at("su")}'
    elif kind == 'range':
        s.define('lo', k, m.reduced(s, 'min', e))
        s.define('hi', k, m.reduced(s, 'max', e))
        text = f'({own} - {at("lo")}) / ({at("hi")} - {at("lo")} + 1)'
        small = ['lo', 'hi'] if s.chance(0.3) else []
    elif kind == 'norm':
        text = f'{own} / ({m.reduced(s, s.pick("norm1", "norm2"), e)} + {eps})'
    elif kind == 'two':
        text = f'{own} / ({m.reduced(s, "norm1", e)} + 1) + {m.reduced(s, "max", lambda t: f"abs({e(t)})")}'
    elif kind == 'chosen':
        s.define('size', k, m.reduced(s, 'sum', lambda t: f'abs({e(t)})'))
        text = f'{own} > 0 ? {at("size")} : f32({own})'
        small = ['size']
    elif kind == 'lse':
        s.params.append(('y', f'out {s.pick("f32", type_)}', [n for _, n in k]))
        s.define('y', [i for i, _ in k], m.reduced(s, 'logsumexp', e))
    elif kind == 'argmax':
        m.over, m.terms = m.over[:1], {m.index[m.over[0]]: TERMS[m.over[0]]}
        m.kept = k = [a for i, a in enumerate(m.all) if i not in m.over]
        s.params.append(('y', f'out {s.pick("i64", "i32")}', [n for _, n in k]))
        kind_of = s.params[-1][1].split()[1]
        s.define('y', [i for i, _ in k], f'{kind_of}({m.reduced(s, s.pick("argmax", "argmin"), e)})')
    else:
        for number in range(r.randint(2, 4)):
            what = s.pick('sum', 'mean', 'var', 'std', 'max', 'min', 'norm1', 'norm2', 'logsumexp')
            s.params.append((f'y{number}', f'out {s.pick("f32", "f32", type_)}', [n for _, n in k]))
            s.define(f'y{number}', [i for i, _ in k], m.reduced(s, what, e))
    if kind not in ('lse', 'argmax', 'statistics'):
        gain = s.chance(0.35)
        if gain:
            text = f'({text}) * {s.tensor("gain", s.pick("f32", "f16"), m.some(s))()}'
        if s.chance(0.25):
            text = f'({text}) + {s.tensor("bias", "f32", m.some(s))()}'
        if s.chance(0.15):
            text = activation(s, text)
        s.params.append(('y', f'out {type_ if s.chance(0.7) else "f32"}', [n for _, n in m.all]))
        s.define('y', m.index, text)
    s.params += [(n, 'out f32', [x for _, x in k]) for n in small]
    s.equations = [t if not any(t.startswith(f'{n}[') for n in small) else t for t in s.equations]
    if s.chance(0.1):
        s.r.shuffle(s.equations)
    return s


# ---- losses ----------------------------------------------------------------------------------------------------------

TERM = {
    'mse': '({a} - {b}) * ({a} - {b})',
    'mae': 'abs({a} - {b})',
    'huber': 'abs({a} - {b}) < 1 ? 0.5 * ({a} - {b}) * ({a} - {b}) : abs({a} - {b}) - 0.5',
    'hinge': 'max(1 - {a} * {b}, 0)',
    'bce': 'softplus({a}) - {a} * sigmoid({b})',
    'kl': 'exp(clamp({b}, -3.0, 3.0)) * ({b} - {a})',
    'log_cosh': 'softplus(2 * ({a} - {b})) - ({a} - {b})',
    'poisson': 'exp(clamp({a}, -3.0, 3.0)) - {b} * {a}',
    'focal': '(1 - sigmoid({a})) * (1 - sigmoid({a})) * softplus(-{a} * {b})',
}


def pairs(s, m, type_):
    a, b = s.tensor('left', type_, m.all), s.tensor('right', s.pick(type_, 'f32'), m.all if s.chance(0.7) else m.some(s))
    form = s.r.choice(list(TERM.values()))
    weight = s.tensor('weight', 'f32', m.some(s)) if s.chance(0.3) else None

    def term(at):
        text = form.format(a=a(**at), b=b(**at))
        return f'({text}) * {weight(**at)}' if weight else text
    return term


def loss(r, name):
    s = Spec(r, name, 4000)
    kind = s.weighed(pairs=60, cross_entropy=18, triplet=8, cosine=8, contrastive=6)
    m = Axes(s, 1 if kind == 'pairs' else 2)
    type_ = s.pick('f32', 'f32', 'f16', 'bf16')
    if kind == 'pairs':
        term = pairs(s, m, type_)
        what = s.pick('mean', 'sum')
        if s.chance(0.4) or not m.kept:
            m.over, m.kept = list(range(len(m.all))), []
            m.terms = dict(zip(m.index, TERMS))
        text = m.reduced(s, what, term)
        s.params.append(('y', 'out f32', [n for _, n in m.kept]))
        s.define('y', [i for i, _ in m.kept], text if s.chance(0.7) else f'{text} * 0.5 + 1')
        return s
    # of rows, along the last axis, and then over all rows
    c, n = m.all[-1]
    rows = m.all[:-1]
    at = lambda name: m.left(name, rows)
    x = s.tensor('x', type_, m.all)
    if kind == 'cross_entropy':
        target = s.tensor('target', s.pick('i32', 'i64'), rows)()
        s.define('row', rows, f'logsumexp[p]({x(**{c: "p"})}) - {x(**{c: target})}')
        if s.chance(0.3):
            s.define('whole', rows, f'sum[q]({x(**{c: "q"})}) / {m.extents[-1].operand()}')
            s.equations[0] = s.equations[0] + f' + 0.1 * {at("whole")}'
    elif kind == 'triplet':
        near, far = s.tensor('near', type_, m.all), s.tensor('far', type_, m.all)
        s.define('dn', rows, f'norm2[p]({x(**{c: "p"})} - {near(**{c: "p"})} + 1e-3)')
        s.define('df', rows, f'norm2[q]({x(**{c: "q"})} - {far(**{c: "q"})} + 1e-3)')
        s.define('row', rows, f'max({at("dn")} - {at("df")} + 1, 0)')
    elif kind == 'cosine':
        z = s.tensor('z', type_, m.all)
        for name, a, b in ('xz', x, z), ('xx', x, x), ('zz', z, z):
            s.define(name, rows, f'sum[p]({a(**{c: "p"})} * {b(**{c: "p"})})')
        s.define('row', rows, f'1 - {at("xz")} * rsqrt(max({at("xx")} * {at("zz")}, 1e-8))')
    else:
        z, same = s.tensor('z', type_, m.all), s.tensor('same', 'bool', rows)()
        s.define('d', rows, f'norm2[p]({x(**{c: "p"})} - {z(**{c: "p"})})')
        s.define('gap', rows, f'max(4 - {at("d")}, 0)')
        s.define('row', rows, f'{same} ? {at("d")} * {at("d")} : {at("gap")} * {at("gap")}')
    if s.chance(0.25):
        s.params.append(('y', 'out f32', [e for _, e in rows]))
        s.define('y', [i for i, _ in rows], at('row'))
    else:
        s.params.append(('y', 'out f32', []))
        what = s.pick('mean', 'sum')
        s.define('y', [], f'{what}[{",".join(i for i, _ in rows)}]({at("row")})')
    return s
