#!/usr/bin/env python3
"""Random kernels like attention: generate.py SEED COUNT [FIRST] prints COUNT specs with their cases, from number FIRST on.

Each is a chain over keys j: scores are sums of products, something elementwise is made of them, and this is reduced over j,
mostly with values v. What is drawn: axes of batch and heads and how heads share keys, the order of every tensor's dimensions,
extents (dimensions, constants, expressions), types and where weights are rounded, the scale's place, masks (as ranges of the
sums, or as conditions), what is done to scores, weights (exponentials with and without the maximum and the total, and others),
where it is normalised, which equations stand inside of others, and the outputs. One in eight is a backward pass. Kernel NUMBER
of a seed is the same whatever COUNT is.
"""
import random
import re
import sys

COST = 250000  # products in a case: the simulator's time
GROUPS = [1, 2, 3, 4, 7, 8]  # heads of queries that share one of keys
FLOATS = ['f16', 'bf16', 'f32']
WEIGHTS = {
    'softmax': 52,
    'softmax2': 12,
    'plain': 7,
    'relu': 5,
    'square': 3,
    'sigmoid': 5,
    'linear': 5,
    'decay': 4,
    'taylor': 3,
    'silu': 4,
}


class Extent:
    """How long an axis is: a dimension, a constant or an expression of dimensions."""

    def __init__(self, r, name, sizes, plain=False):
        self.sizes, self.names, self.name = sizes, [name], name
        kind = 'name' if plain else r.choices(['name', 'constant', 'one more', 'difference', 'twice'], [76, 10, 6, 5, 3])[0]
        self.kind, self.width = kind, r.randint(1, 5)
        self.fixed = min(max(sizes(r), 1), 40) if kind == 'constant' else None
        self.text = {
            'name': name,
            'constant': str(self.fixed),
            'one more': f'{name} + 1',
            'difference': f'{name} - {name}w + 1',
            'twice': f'2 * {name}',
        }[kind]

    def operand(self):
        """Its text inside of sums and products."""
        return self.text if re.fullmatch(r'\w+', self.text) else f'({self.text})'

    def draw(self, r):
        return self.fixed if self.fixed is not None else self.at_least(self.sizes(r))

    def at_least(self, n):
        """The nearest length that the expression can have."""
        least = {'one more': 1, 'twice': 2}.get(self.kind, 0)
        n = max(n, least)
        return n - n % 2 if self.kind == 'twice' else n

    def values(self, n):
        return {
            'name': {self.name: n},
            'constant': {},
            'one more': {self.name: n - 1},
            'difference': {self.name: n + self.width - 1, self.name + 'w': self.width},
            'twice': {self.name: n // 2},
        }[self.kind]


def rows(r):
    return r.choices([r.randint(1, 20), r.randint(20, 70), r.choice([16, 32, 64]), 130, 1, 0], [33, 44, 8, 8, 5, 2])[0]


def few_rows(r):
    return r.choice([1, 1, r.randint(1, 20)])


def channels(r):
    return r.choices([r.randint(1, 40), r.choice([8, 16, 32]), 64, 96, 128], [65, 17, 9, 4, 5])[0]


class Kernel:
    def __init__(self, r, name):
        self.r, self.name = r, name
        self.params, self.require, self.equations, self.fills = [], [], [], {}
        self.tables = {}
        self.inlined = {}
        self.fresh = 0
        self.whole = r.random() < 0.05  # whatever may stand inside of another equation does

    # ---- text ----

    def param(self, name, text, fill=None):
        self.params.append(f'{name}: {text}')
        if fill:
            self.fills[name] = fill

    def chance(self, p):
        return self.r.random() < p

    def define(self, name, index, text, inline=0.0):
        """An intermediate; or, with the probability inline, what stands for it."""
        if inline and (self.whole or self.chance(inline)):
            self.inlined[name] = text
        else:
            self.inlined[name] = None
            at = [f'{i} < {self.n.operand()}' if i == 'j' and self.paged else i for i in index]
            self.equations.append(f'{name}[{",".join(at)}] = {text}' if index else f'{name} = {text}')
        self.tables[name] = index

    def use(self, name, j='j'):
        """The intermediate at j, which may have another name."""
        text = self.inlined[name]
        if text is None:
            return f'{name}[{",".join(j if i == "j" else i for i in self.tables[name])}]' if self.tables[name] else name
        for bound in set(re.findall(r'(?:sum|max)\[(\w+)', text)):
            self.fresh += 1
            text = re.sub(rf'\b{bound}\b', f'{bound}{self.fresh}', text)
        return f'({text})' if j == 'j' else '(' + re.sub(r'\bj\b', j, text) + ')'

    # ---- axes ----

    def draw_axes(self):
        """Batch axes: (index, extent of queries, index and extent of keys or None)."""
        r = self.r
        self.axes = []
        self.few = False  # rows, as where heads of a group are packed
        few = lambda r: r.randint(1, 3)
        if self.chance(0.7):
            b = Extent(r, 'b', few)
            self.axes.append(('z', b, 'z', b))
        if self.chance(0.15):
            t = Extent(r, 't', few)
            self.axes.append(('y', t, 'y', t))
        if self.chance(0.8):
            self.draw_heads(few)
        r.shuffle(self.axes)
        self.m, self.n = Extent(r, 'm', few_rows if self.few else rows), Extent(r, 'n', rows)
        self.d, self.e = Extent(r, 'd', channels), Extent(r, 'e', channels)
        self.paged = self.packed = self.shared = False
        how = r.choices(['', 'self', 'packed', 'shared', 'paged'], [66, 12, 6, 5, 6])[0]
        if how == 'packed' and any(q is not k for _, q, _, k in self.axes):
            how = 'self'
        if how in ('self', 'packed'):
            self.m = self.n
        if how == 'packed':
            self.packed = True
        if how in ('packed', 'shared'):
            self.e = self.d
        self.shared = how == 'shared'
        if how == 'paged':
            self.paged = True
            self.page = r.choice([4, 8, 16])
            self.n = Extent(r, 'most', lambda r: r.randint(1, 6), plain=True)
            self.n.text = f'{self.page} * most'

    def draw_heads(self, few):
        r = self.r
        kind = r.choices(['own', 'grouped', 'factor', 'times', 'interleaved', 'one'], [40, 20, 10, 7, 8, 15])[0]
        self.few = kind not in ('own', 'interleaved') and self.chance(0.5)
        if kind == 'own':
            h = Extent(r, 'hq', few)
            self.axes.append(('h', h, 'h', h))
            return
        if kind == 'factor':
            g = r.choice(GROUPS[1:])
            hk = Extent(r, 'hk', few, plain=True)
            hq = Extent(r, 'hk', few, plain=True)
            hq.text, hq.factor = f'{g} * hk', g
            self.axes.append(('h', hq, f'h / {g}', hk))
            return
        if kind == 'times':
            hk = Extent(r, 'hk', few, plain=True)
            hq = Extent(r, 'hk', few, plain=True)
            hq.text, hq.factor = 'members * hk', 1
            self.axes.append(('h', hq, 'h / members', hk))
            return
        hq = Extent(r, 'hq', lambda r: r.choice([1, 2, 3, 4, 6]), plain=kind != 'one')
        if kind == 'one':
            self.axes.append(('h', hq, None, None))
            return
        hk = Extent(r, 'hk', few, plain=True)
        self.require += ['hk >= 1', 'hq % hk == 0']
        self.axes.append(('h', hq, 'h / (hq / hk)' if kind == 'grouped' else 'h % hk', hk))

    def rows_of(self, *own):
        """The batch's indices, and others behind them."""
        return [a[0] for a in self.axes] + list(own)

    def tensor(self, name, kind, axes, fill=None):
        """A parameter whose dimensions lie in a random order; its text at an index for each axis, a function of them."""
        order = list(axes)
        if self.chance(0.55):
            self.r.shuffle(order)
        direction = 'out' if kind.startswith('out ') else 'in'
        self.param(name, f'{direction} {kind.split()[-1]}[{", ".join(axes[a].text for a in order)}]', fill)
        return lambda **at: f'{name}[{",".join(at.get(a, a) for a in order)}]'

    def of_batch(self, keys=False):
        return {a: k if keys else q for a, q, _, k in self.axes if not keys or k is not None}

    def keys_at(self):
        return {a: at for a, _, at, _ in self.axes if at}

    def some_axes(self, *own):
        """A random part of the batch's axes and others, never none."""
        axes = {a: q for a, q, _, _ in self.axes if self.chance(0.5)}
        axes.update(own)
        return axes

    # ---- tensors ----

    def draw_types(self):
        r = self.r
        self.tq = r.choices([*FLOATS, 'e4m3', 'e5m2'], [20, 12, 12, 5, 1])[0]
        self.tk = self.tq if self.chance(0.85) else r.choice(FLOATS + ['i8', 'e4m3'])
        self.tv = self.tk if self.chance(0.8) else r.choice(FLOATS + ['i8', 'e4m3'])
        if self.packed or self.shared:
            self.tv = self.tk
        if self.packed:
            self.tk = self.tv = self.tq
        self.to = r.choices([self.tq if self.tq in FLOATS else 'bf16', 'f32', r.choice(FLOATS)], [6, 3, 1])[0]

    def draw_operands(self):
        if self.packed:
            whole = {'three': None, **self.of_batch(), 'i': self.n, 'c': self.d}
            three = Extent(self.r, 'three', lambda r: 3, plain=True)
            three.text = '3'
            whole['three'] = three
            read = self.tensor('qkv', self.tq, whole)
            self.q = read(three='0')
            self.k = read(three='1', i='j')
            self.v = read(three='2', i='j', c='x')
            return
        self.q = self.tensor('q', self.tq, {**self.of_batch(), 'i': self.m, 'c': self.d})()
        self.k, self.v = self.keys('k', self.tk, 'c', self.d), None
        self.v = self.k.replace(',c', ',x').replace('[c', '[x') if self.shared else self.keys('v', self.tv, 'x', self.e)

    def keys(self, name, kind, column, extent):
        batch = self.of_batch(keys=True)
        if not self.paged:
            return self.tensor(name, kind, {**batch, 'j': self.n, column: extent})(**self.keys_at())
        pages = Extent(self.r, 'pages', lambda r: r.randint(1, 9), plain=True)
        self.pages = pages
        slot = Extent(self.r, 'slot', lambda r: self.page, plain=True)
        slot.text = str(self.page)
        if 'page' not in self.fills:
            at = {'z': self.of_batch()['z']} if 'z' in self.of_batch() else {}
            most = Extent(self.r, 'most', lambda r: 1, plain=True)
            self.page_at = self.tensor('page', 'i32', {**at, 'p': most})(p=f'j / {self.page}')
            self.fills['page'] = 'pages'
        batch.pop('z', None)
        return self.tensor(name, kind, {'g': pages, **batch, 's': slot, column: extent})(
            g=self.page_at, s=f'j % {self.page}', **self.keys_at())

    # ---- scores ----

    def dot(self, q, k):
        if self.tq == self.tk == 'f32' and self.chance(0.2):
            rounds = self.r.choice(['tf32', 'tf32_rn', 'tf32_rz'])
            q, k = f'{rounds}({q})', f'{rounds}({k})'
        if self.scale_at == 'query':
            q = f'{self.scale} * {q}'
        return f'sum[c]({q} * {k})' if self.chance(0.8) else f'sum[c]({k} * {q})'

    def draw_scale(self):
        r = self.r
        self.scale_at = r.choices(['score', 'late', 'query', 'none'], [60, 15, 10, 15])[0]
        value = r.choice([0.05, 0.125, 0.17, 0.25]) * (0.01 if 'i8' in (self.tq, self.tk) else 1)
        if {'e4m3', 'e5m2'} & {self.tq, self.tk}:
            value *= 0.3
        kind = r.choice(['parameter', 'constant', 'expression'])
        if kind == 'parameter':
            self.param('scale', f'f32 = {value}')
        root = f'rsqrt(1 + {self.d.operand()})' if 'i8' not in (self.tq, self.tk) else f'{value}'
        self.scale = {'parameter': 'scale', 'constant': f'{value}', 'expression': root}[kind]
        if self.scale_at == 'none':
            self.scale_at = 'score' if 'i8' in (self.tq, self.tk) or not self.small_products() else 'none'

    def small_products(self):
        """Whether scores need no scale: few channels."""
        return self.d.fixed is not None and self.d.fixed < 12

    def scores(self):
        """Defines s: products, scaled, and what is done to them; and the masks as conditions."""
        r = self.r
        self.scores_index = self.rows_of('i', 'j')
        text = self.dot(self.q, self.k)
        if self.chance(0.07) and not self.packed:
            text = f'({text} + {self.second_product()})'
        elif self.chance(0.04):
            text = f'{r.choice(["f16", "bf16"])}({text})'
        if self.scale_at == 'score':
            text += f' * {self.scale}'
        text = self.score_functions(text)
        if self.where == 'score' and self.conditions:
            self.define('s', self.scores_index, text, 0.15)
            masked = f'{self.condition()} ? {self.use("s")} : -inf'
            if self.chance(0.2):
                masked = f'{self.use("s")} + ({self.condition()} ? 0 : -inf)'
            self.define('u', self.scores_index, masked, 0.3)
            return 'u'
        self.define('s', self.scores_index, text, 0.25)
        return 's'

    def second_product(self):
        extent = Extent(self.r, 'r', lambda r: r.randint(1, 20))
        a = self.tensor('q2', self.tq, {**self.of_batch(), 'i': self.m, 'w': extent})()
        b = self.tensor('k2', self.tk if self.tk in FLOATS else self.tq, {'j': self.n, 'w': extent})()
        return f'sum[w]({a} * {b})'

    def score_functions(self, text):
        r = self.r
        for _ in range(r.choices([0, 1, 2], [50, 38, 12])[0]):
            kind = r.choice(['cap', 'alibi', 'bias', 'relative', 'temperature', 'clamp', 'keys'])
            name = f'{kind}_of' if f'{kind}_of' not in [p.split(':')[0] for p in self.params] else None
            if not name:
                continue
            if kind == 'cap':
                cap = r.choice([2, 5, 30])
                self.define('raw', self.scores_index, text, 0.7)
                return f'{cap} * tanh({self.use("raw")} / {cap})'
            if kind == 'alibi':
                axes = self.some_axes()
                slope = self.tensor(name, 'f32', axes, '@uniform')() if axes else '0.1'
                far = r.choice([f'(i + {self.offset()} - j)', 'abs(i - j)', '(j - i)'])
                text += f' - {slope} * {far}' if far != '(j - i)' else f' + {slope} * 0.25 * {far}'
            elif kind == 'bias':
                axes = self.some_axes(('i', self.m), ('j', self.n))
                text += f' + {self.tensor(name, r.choice(FLOATS), axes)()}'
            elif kind == 'relative':
                span = Extent(r, 'span', lambda r: 1, plain=True)
                span.text = f'{self.m.operand()} + {self.n.operand()}'
                axes = {**self.some_axes(), 'x': span}
                text += f' + {self.tensor(name, r.choice(FLOATS), axes)(x=f"i - j + {self.n.operand()}")}'
            elif kind == 'temperature':
                axes = self.some_axes(('i', self.m))
                text = f'({text}) * {self.tensor(name, "f32", axes, "@uniform")()}'
            elif kind == 'keys':
                axes = self.some_axes(('j', self.n))
                text = f'({text}) * {self.tensor(name, "f32", axes, "@uniform")()}'
            else:
                text = f'clamp({text}, -{r.choice([1, 3, 8])}, {r.choice([1, 3, 8])})'
        return text

    # ---- masks ----

    def offset(self):
        """Where the first query stands among the keys."""
        return '0' if self.m is self.n else self.shift

    def draw_masks(self):
        r = self.r
        self.shift = f'({self.n.operand()} - {self.m.operand()})' if self.chance(0.7) else '0'
        self.low, self.high, self.conditions = [], [], []
        self.may_be_empty = False
        kinds = ['causal', 'window', 'length', 'document', 'table', 'prefix', 'stride', 'chunk', 'begin']
        wanted = r.choices([[], [r.choice(kinds)], r.sample(kinds, 2)], [30, 50, 20])[0]
        if self.chance(0.25) and 'causal' not in wanted:
            wanted = ['causal'] + wanted
        self.ranged = self.chance(0.55)
        # conditions stand on scores, or on weights
        self.where = r.choice(['score', 'score', 'weight'])
        for kind in wanted:
            getattr(self, f'mask_{kind}')()

    def bound(self, low, high, conditions):
        if self.ranged and self.chance(0.9):
            self.low += low
            self.high += high
        else:
            self.conditions += conditions
        self.may_be_empty = True

    def mask_causal(self):
        end = f'i + {self.offset()} + 1' if self.offset() != '0' else 'i + 1'
        at = end[:-4] if self.offset() != '0' else 'i'
        self.bound([], [end], [self.r.choice([f'j <= {at}', f'{at} >= j', f'j < {end}', f'!(j > {at})'])])

    def mask_window(self):
        size = self.r.randint(1, 40)
        text = str(size)
        if self.chance(0.4):
            text = 'window'
            self.param('window', f'i32 = {size}')
        at = f'i + {self.offset()}' if self.offset() != '0' else 'i'
        if self.chance(0.6):
            self.bound([f'{at} - {text} + 1'], [], [f'j > {at} - {text}'])
        else:
            self.bound([f'{at} - {text}'], [f'{at} + {text} + 1'], [f'abs({at} - j) <= {text}'])

    def batch_or_none(self):
        return {a: q for a, q, _, _ in self.axes if a in 'zy' and self.chance(0.8)} or {a: q for a, q, _, _ in self.axes[:1]}

    def mask_length(self):
        axes = self.batch_or_none()
        if axes:
            at = self.tensor('len', self.r.choice(['i32', 'i64', 'u32']), axes, 'len')()
            self.bound([], [at], [f'j < {at}'])

    def mask_begin(self):
        axes = self.batch_or_none()
        if axes:
            at = self.tensor('begin', 'i32', axes, 'begin')()
            self.bound([at], [], [f'j >= {at}'])

    def mask_document(self):
        axes = self.batch_or_none()
        fill = self.r.choice(['0..2', '0..4', '@sorted:0:4'])
        if self.m is self.n and self.chance(0.7):
            doc = self.tensor('doc', 'i32', {**axes, 'j': self.n}, fill)
            self.conditions.append(f'{doc(j="i")} == {doc()}')
        else:
            a = self.tensor('doc_q', 'i32', {**axes, 'i': self.m}, fill)()
            self.conditions.append(f'{a} == {self.tensor("doc_k", "i32", {**axes, "j": self.n}, fill)()}')
            self.may_be_empty = True

    def mask_table(self):
        own = [('j', self.n)] if self.chance(0.4) else [('i', self.m), ('j', self.n)]
        self.conditions.append(self.tensor('mask', 'bool', self.some_axes(*own))())
        self.may_be_empty = True

    def mask_prefix(self):
        axes = self.batch_or_none()
        if axes:
            at = self.tensor('prefix', 'i32', axes, 'len')()
            here = f'i + {self.offset()}' if self.offset() != '0' else 'i'
            self.bound([], [f'max({at}, {here} + 1)'], [f'(j < {at} || j <= {here})'])

    def mask_stride(self):
        self.conditions.append(f'(j - i) % {self.r.randint(2, 5)} == 0')
        self.may_be_empty = True

    def mask_chunk(self):
        size = self.r.choice([4, 7, 16, 32])
        self.bound([f'i / {size} * {size}'], [f'(i / {size} + 1) * {size}'], [f'i / {size} == j / {size}'])

    def condition(self):
        terms = list(self.conditions)
        self.r.shuffle(terms)
        return ' && '.join(terms)

    def over(self, j='j'):
        """The range of a reduction over keys."""
        if not self.low and not self.high:
            return f'{j} < {self.n.operand()}' if self.paged or self.explicit else j
        low = f'max({", ".join(["0"] + self.low)})' if self.low else '0'
        if len(self.low) > 1:
            low = f'max({self.low[0]}, max({", ".join(["0"] + self.low[1:])}))'
        high = self.n.operand()
        for h in self.high:
            high = f'min({high}, {h})'
        return f'{j} in {low}..{high}'

    # ---- weights ----

    def rounded(self, text):
        if self.cast:
            return f'{self.cast}({text})'
        return text if re.fullmatch(r'[\w\[\],]+', text) else f'({text})'

    def weigh(self, score):
        """Defines p, and top where it is taken off."""
        r, kind = self.r, self.kind
        index = self.rows_of('i')
        s = self.use(score)
        late = f' * {self.scale}' if self.scale_at == 'late' else ''
        zero = bool(self.conditions) and self.where == 'weight'
        if kind.startswith('softmax'):
            self.base2 = kind == 'softmax2'
            inside = s if self.where == 'score' or not self.conditions else f'{self.condition()} ? {s} : -inf'
            if zero and self.chance(0.25):
                inside = s  # a maximum of more keys does as well
            self.define('top', index, f'max[{self.over()}]({inside})', 0.12)
            base = 'top'
            if self.may_be_empty:
                top = self.use('top')
                guard = r.choice([f'{top} == -inf ? 0 : {top}', f'isinf({top}) ? 0 : {top}', f'max({top}, -1e30)'])
                self.define('base', index, guard, 0.3 if self.inlined['top'] is None else 0)
                base = 'base'
            text = f'{"exp2" if self.base2 else "exp"}(({s} - {self.use(base)}){late})' if late else \
                f'{"exp2" if self.base2 else "exp"}({s} - {self.use(base)})'
        else:
            if late:
                s = f'{s}{late}'
            far = f'(i + {self.offset()} - j)'
            text = {
                'plain': f'{r.choice(["exp", "exp2"])}({s})',
                'relu': f'relu({s})',
                'square': f'({s}) * ({s})',
                'sigmoid': f'sigmoid({s} - 1)',
                'linear': s,
                'decay': f'({s}) * exp2(-0.125 * abs({far}))',
                'taylor': f'1 + {s} + 0.5 * ({s}) * ({s})',
                'silu': f'silu({s})',
            }[kind]
        if zero:
            text = f'{self.condition()} ? {text} : 0'
        self.define('p', self.scores_index, text, 0.3)

    def forward(self):
        r = self.r
        self.draw_masks()
        self.draw_scale()
        self.explicit = self.chance(0.2)
        self.cast = self.draw_cast()
        kind = self.kind = r.choices(*zip(*WEIGHTS.items()))[0]
        if not kind.startswith('softmax') and kind not in ('plain', 'relu', 'sigmoid'):
            self.where = 'weight'  # a score of -inf has no weight of 0
        self.weigh(self.scores())
        index = self.rows_of('i')
        positive = kind not in ('linear', 'decay', 'silu')
        soft = kind.startswith('softmax')
        total = soft or (positive and self.chance(0.5))
        summed = self.rounded(self.use('p')) if self.chance(0.12) else self.use('p')
        if total:
            text = f'sum[{self.over()}]({summed})'
            if soft and self.chance(0.12):
                axes = self.some_axes()
                sink = self.tensor('sink', 'f32', axes)() if axes else '0.5'
                base = 'base' if 'base' in self.tables else 'top'
                text += f' + {"exp2" if self.base2 else "exp"}({sink} - {self.use(base)})'
            elif not soft:
                text += f' + {r.choice(["1", "0.5"])}'
            self.define('total', index, text, 0.15)
        self.outputs(kind, total, soft)

    def draw_cast(self):
        narrow = {'f16': 'f16', 'bf16': 'bf16', 'f32': 'f16', 'i8': 'f16', 'e4m3': 'e4m3', 'e5m2': 'e4m3'}[self.tv]
        return self.r.choices([narrow, None, self.r.choice(['f16', 'bf16'])], [60, 28, 12])[0]

    def outputs(self, kind, total, soft):
        r = self.r
        index = self.rows_of('i')
        which = r.choices(['o', 'o lse', 'o top', 'o total', 'lse', 'o p', 'o keys', 'o best', 'top total'],
                          [48, 24, 4, 4, 4, 4, 4, 3, 3])[0].split()
        if not total:
            which = [w for w in which if w not in ('lse', 'total')] or ['o']
        if not soft:
            which = [w for w in which if w != 'top'] or ['o']
        of_row = {**self.of_batch(), 'i': self.m}
        for w in which:
            getattr(self, f'out_{w}')(of_row, total, index)

    def out_o(self, of_row, total, index):
        r = self.r
        to = self.tensor('o', f'out {self.to}', {**of_row, 'x': self.e})()
        p, v = self.use('p'), self.v
        if self.tv == 'i8' and self.chance(0.6):
            v = f'(0.01 * {v})' if self.chance(0.5) else v
        if total and self.chance(0.15):
            all_of = self.use('total')
            p = f'({p}) / {all_of}' if not self.may_be_empty else f'({all_of} == 0 ? 0 : ({p}) / {all_of})'
            total = False
        term = f'{self.rounded(p)} * {v}' if self.chance(0.85) else f'{v} * {self.rounded(p)}'
        text = f'sum[{self.over()}]({term})'
        if not total:
            self.equations.append(f'{to} = {text}' if self.chance(0.8) else f'{to} = {text} * 0.5')
            return
        all_of = self.use('total')
        if self.may_be_empty or self.chance(0.1):
            self.define('sum_of', [*index, 'x'], text, 0.3)
            y = self.use('sum_of')
            guard = r.choice([
                f'{all_of} == 0 ? 0 : {y} / {all_of}',
                f'{all_of} > 0 ? {y} / {all_of} : 0',
                f'{y} / max({all_of}, 1e-20)',
            ])
            self.equations.append(f'{to} = {guard}')
        else:
            by = r.choice([f'/ {all_of}', f'/ {all_of}', f'* rcp({all_of})', f'* (1 / {all_of})'])
            self.equations.append(f'{to} = {text} {by}')

    def out_lse(self, of_row, total, index):
        base = 'base' if 'base' in self.tables and self.chance(0.5) else 'top'
        log = f'log({self.use("total")})'
        if 'top' in self.tables:
            if self.scale_at == 'late':
                log = f'{self.use(base)} * {self.scale} + {"log2" if self.base2 else "log"}({self.use("total")})'
            else:
                log = f'{self.use(base)} + {"log2" if self.base2 else "log"}({self.use("total")})'
        self.equations.append(f'{self.tensor("lse", "out f32", of_row)()} = {log}')

    def out_top(self, of_row, total, index):
        self.equations.append(f'{self.tensor("peak", "out f32", of_row)()} = {self.use("top")}')

    def out_total(self, of_row, total, index):
        self.equations.append(f'{self.tensor("weight", "out f32", of_row)()} = {self.use("total")}')

    def out_p(self, of_row, total, index):
        kind = self.r.choice(['f32', 'f16'])
        self.equations.append(f'{self.tensor("weights", f"out {kind}", {**of_row, "j": self.n})()} = {self.use("p")}')

    def out_keys(self, of_row, total, index):
        """What each key got from all rows."""
        of = {**self.of_batch(), 'j': self.n}
        self.equations.append(f'{self.tensor("got", "out f32", of)()} = sum[i < {self.m.operand()}]({self.use("p")})')

    def out_best(self, of_row, total, index):
        self.equations.append(f'{self.tensor("best", "out i32", of_row)()} = argmax[{self.over()}]({self.use("p")})')

    # ---- backward ----

    def backward(self):
        r = self.r
        self.ranged = self.explicit = False
        self.draw_masks()
        self.low = self.high = []
        self.draw_scale()
        self.scale_at = 'score'
        causal = r.choice(['', 'range', 'condition'])
        row, both = self.rows_of('i'), self.rows_of('i', 'j')
        to = r.choice(['f16', 'bf16']) if self.chance(0.8) else None
        cast = lambda text: f'{to}({text})' if to else text
        dout = self.tensor('dout', self.tq, {**self.of_batch(), 'i': self.m, 'x': self.e})()
        lse = self.tensor('lse', 'f32', {**self.of_batch(), 'i': self.m})()
        if self.chance(0.6):
            delta = self.tensor('delta', 'f32', {**self.of_batch(), 'i': self.m})()
        else:
            o = self.tensor('o', self.tq, {**self.of_batch(), 'i': self.m, 'x': self.e})()
            self.define('delta', row, f'sum[x]({o} * {dout})')
            delta = self.use('delta')
        self.scores_index = both
        self.define('s', both, f'sum[c]({self.q} * {self.k}) * {self.scale}', 0.2)
        conditions = list(self.conditions) + ([f'j <= i + {self.offset()}'] if causal == 'condition' else [])
        weight = f'exp({self.use("s")} - {lse})'
        self.define('p', both, f'{" && ".join(conditions)} ? {weight} : 0' if conditions else weight, 0.2)
        self.define('dp', both, f'sum[x]({dout} * {self.v})', 0.2)
        self.define('ds', both, f'{self.use("p")} * ({self.use("dp")} - {delta})', 0.3)
        over_j, over_i = 'j', 'i'
        if causal == 'range':
            over_j = f'j in 0..min({self.n.operand()}, i + {self.offset()} + 1)'
            over_i = f'i in max(0, j - {self.offset()})..{self.m.operand()}'
        elif self.paged:
            over_j = f'j < {self.n.operand()}'
        for which in r.choice([['dq'], ['dk'], ['dv'], ['dk', 'dv'], ['dq', 'dk', 'dv'], ['dv', 'dq']]):
            if which == 'dq':
                at = self.tensor('dq', f'out {self.to}', {**self.of_batch(), 'i': self.m, 'c': self.d})()
                self.equations.append(f'{at} = sum[{over_j}]({cast(self.use("ds"))} * {self.k}) * {self.scale}')
            elif which == 'dk':
                at = self.tensor('dk', f'out {self.to}', {**self.of_batch(), 'j': self.n, 'c': self.d})()
                self.equations.append(f'{at} = sum[{over_i}]({cast(self.use("ds"))} * {self.q}) * {self.scale}')
            else:
                at = self.tensor('dv', f'out {self.to}', {**self.of_batch(), 'j': self.n, 'x': self.e})()
                self.equations.append(f'{at} = sum[{over_i}]({cast(self.use("p"))} * {dout})')

    # ---- cases ----

    def extents(self):
        seen = {}
        batch = [e for _, q, _, k in self.axes for e in (q, k) if e is not None]
        for e in batch + [self.m, self.n, self.d, self.e]:
            seen.setdefault(id(e), e)
        return list(seen.values())

    def case(self, name, used):
        r = self.r
        values, sizes = {}, {}
        for e in self.extents():
            if e.text == 'members * hk':
                values['members'] = e.factor = r.choice(GROUPS)
            if e.name in values and e.kind == 'name':
                sizes[id(e)] = values[e.name] * getattr(e, 'factor', 1)
                continue
            n = e.draw(r)
            values.update(e.values(n))
            sizes[id(e)] = n * getattr(e, 'factor', 1)
        self.group(values, sizes)
        if self.paged:
            values['pages'] = r.randint(1, 9)
            sizes[id(self.n)] = values['most'] * self.page
        self.shrink(values, sizes)
        for extra in ['r', 'rw']:
            if re.search(rf'\b{extra}\b', used):
                values[extra] = {'r': r.randint(5, 20), 'rw': r.randint(1, 4)}[extra]
        words = [f'{k}: {v}' for k, v in values.items() if re.search(rf'\b{k}\b', used)]
        n = sizes[id(self.n)]
        for k, fill in self.fills.items():
            if fill == 'len':
                words.append(f'{k}: 0..{n + 2}' if self.chance(0.7) else f'{k}: {max(1, n // 2)}..{n + 1}')
            elif fill == 'begin':
                words.append(f'{k}: 0..{max(0, n // 2)}')
            elif fill == 'pages':
                words.append(f'{k}: 0..{values["pages"] - 1}')
            else:
                words.append(f'{k}: "{fill}"' if '@' in fill else f'{k}: {fill}')
        return f'  {name}: {{{", ".join(words)}}}'

    def group(self, values, sizes):
        """Makes the heads a multiple of those that are shared."""
        if 'hq % hk == 0' not in self.require:
            return
        values['hq'] = values['hk'] * self.r.choice(GROUPS)
        for a, q, _, _ in self.axes:
            if a == 'h':
                sizes[id(q)] = values['hq']

    def shrink(self, values, sizes):
        """Makes the case smaller until it is cheap."""

        def cost():
            batch = 1
            for _, q, _, _ in self.axes:
                batch *= sizes[id(q)]
            return batch * sizes[id(self.m)] * sizes[id(self.n)] * (sizes[id(self.d)] + sizes[id(self.e)])
        most = COST // (8 if self.inlined.get('top') or self.inlined.get('total') else 1)
        batch = [q for a, q, _, k in self.axes if a in 'zy' or k is q]
        for _ in range(16):
            can = [e for e in [self.m, self.n, self.d, self.e] + batch if e.fixed is None and sizes[id(e)] > 2]
            if self.paged:
                can = [e for e in can if e is not self.n]
            if cost() <= most or not can:
                return
            e = self.r.choices(can, [10 if e in batch else sizes[id(e)] for e in can])[0]
            sizes[id(e)] = e.at_least(sizes[id(e)] // 3 if e in batch else sizes[id(e)] * 2 // 3)
            values.update(e.values(sizes[id(e)]))

    def drop_unused(self):
        """Leaves out intermediates and inputs of which nothing is made."""
        def used(name, texts):
            return any(re.search(rf'\b{name}\b', t) for t in texts)

        def serves(k, text):
            name = re.match(r'\w+', text).group()
            return name not in self.tables or used(name, [t for i, t in enumerate(self.equations) if i != k])

        while not all(serves(k, text) for k, text in enumerate(self.equations)):
            self.equations = [text for k, text in enumerate(self.equations) if serves(k, text)]
        self.params = [p for p in self.params if used(p.split(':')[0], self.equations)]
        self.fills = {name: fill for name, fill in self.fills.items() if used(name, self.equations)}

    def text(self):
        self.draw_axes()
        self.draw_types()
        self.draw_operands()
        if self.chance(0.125) and not self.packed:
            self.backward()
        else:
            self.forward()
        self.drop_unused()
        order = list(self.equations)
        if self.chance(0.1):
            self.r.shuffle(order)
        lines = [f'kernel: {self.name}', 'params:'] + [f'  {p}' for p in self.params]
        if self.require:
            lines.append(f'require: [{", ".join(self.require)}]')
        if self.chance(0.03):
            lines.append('math: strict')
        lines += ['compute: |'] + [f'  {e}' for e in order]
        used = '\n'.join(lines)
        lines.append('cases:')
        lines += [self.case(f'c{k}', used) for k in range(self.r.choice([1, 2]))]
        return '\n'.join(lines)


def main():
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    for number in range(first, first + count):
        print('---')
        print(Kernel(random.Random(f'{seed} {number}'), f'a{seed}_{number}').text())


if __name__ == '__main__':
    main()
