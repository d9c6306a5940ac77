"""What the families of generate.py have in common: a spec whose axes are dimensions or numbers, and its cases."""
import re


class Extent:
    """How long an axis is: its text, and its length in each case; least is what it may be cut down to."""

    def __init__(self, text, sizes, least):
        self.text, self.sizes, self.least = text, sizes, least
        self.named = not re.fullmatch(r'\d+', text)

    def operand(self):
        """The text inside of sums and products."""
        return self.text if re.fullmatch(r'\w+', self.text) else f'({self.text})'


def number(text, plus):
    """text + plus, without a sign too many."""
    return text if plus == 0 else f'{text} + {plus}' if plus > 0 else f'{text} - {-plus}'


def times(factor, text):
    return text if factor == 1 else f'{factor} * {text}'


class Spec:
    CASES = 2

    def __init__(self, r, name, work):
        self.r, self.name, self.most = r, name, work
        self.params, self.derived, self.require, self.equations, self.fills = [], {}, [], [], {}
        self.scalars, self.schedule, self.math = {}, None, None
        self.extents = []
        self.open = r.random() < 0.75  # else all is numbers

    def chance(self, p):
        return self.r.random() < p

    def pick(self, *words):
        return self.r.choice(words)

    def weighed(self, **weights):
        return self.r.choices(list(weights), list(weights.values()))[0]

    # ---- axes ----

    def extent(self, name, sizes, least=1, fixed=0.3):
        """An axis of lengths from sizes, a function of what draws: a dimension, or a number."""
        if not self.open or self.chance(fixed):
            n = max(least, sizes(self.r))
            e = Extent(str(n), [n] * self.CASES, least)
        else:
            e = Extent(name, [max(least, sizes(self.r)) for _ in range(self.CASES)], least)
        self.extents.append(e)
        return e

    def fit(self, *axes, most=None):
        """Cuts dimensions until the product of these axes is within the budget, in every case."""
        for k in range(self.CASES):
            while True:
                total = 1
                for e in axes:
                    total *= max(e.sizes[k], 1)
                longest = max(axes, key=lambda e: (e.sizes[k] if e.sizes[k] > e.least else 0))
                if total <= (most or self.most) or longest.sizes[k] <= longest.least:
                    break
                half = max(longest.least, longest.sizes[k] // 2)
                if longest.named:
                    longest.sizes[k] = half
                else:  # a number is the same in all cases
                    longest.sizes, longest.text = [half] * self.CASES, str(half)

    # ---- text ----

    def tensor(self, name, kind, axes, shuffle=0.0, fill=None):
        """A parameter over axes, a list of (index, text of the extent); its text at an index for each, a function of them."""
        order = list(axes)
        if self.chance(shuffle):
            self.r.shuffle(order)
        self.params.append((name, kind, [e for _, e in order]))
        if fill:
            self.fills[name] = fill
        return lambda **at: f'{name}[{",".join(str(at.get(i, i)) for i, _ in order)}]' if order else f'{name}[0]'

    def scalar(self, name, value, kind='f32'):
        self.scalars[name] = f'{name}: {kind} = {value}'
        return name

    def define(self, name, index, text, kind=None):
        """An equation; an intermediate's index is (index, extent) where its range must be written."""
        left = [i if isinstance(i, str) else f'{i[0]} < {i[1]}' for i in index]
        self.equations.append(f'{name}[{", ".join(left)}] = {text}' if left else f'{name} = {text}')

    def product(self, left, right, around='{}'):
        """Two factors in some order."""
        pair = [around.format(left), around.format(right)]
        self.r.shuffle(pair)
        return ' * '.join(pair)

    def summed(self, indices, text, what='sum'):
        """A reduction whose indices, (index, extent), stand in some order, each perhaps with its range."""
        words = [f'{i} < {e}' if self.chance(0.15) else i for i, e in indices]
        if self.chance(0.4):
            self.r.shuffle(words)
        return f'{what}[{",".join(words)}]({text})'

    def drop_unused(self):
        """Leaves out parameters that no equation reads, but for those that alone say a dimension."""
        text = '\n'.join(self.equations + list(self.derived.values()))
        words = set(re.findall(r'[A-Za-z_]\w*', text))
        self.scalars = {k: v for k, v in self.scalars.items() if k in words}
        for p in [p for p in self.params if p[0] not in words]:
            others = set(re.findall(r'[A-Za-z_]\w*', ' '.join(e for q in self.params if q is not p for e in q[2])))
            if set(re.findall(r'[A-Za-z_]\w*', ' '.join(p[2]))) <= others:
                self.params.remove(p)
                self.fills.pop(p[0], None)

    def text(self):
        self.drop_unused()
        lines = [f'kernel: {self.name}']
        if self.derived:
            lines += ['dims:'] + [f'  {k}: {v}' for k, v in self.derived.items()]
        lines.append('params:')
        for name, kind, axes in self.params:
            lines.append(f'  {name}: {kind if " " in kind else "in " + kind}[{", ".join(axes)}]')
        lines += [f'  {s}' for s in self.scalars.values()]
        if self.require:
            lines.append(f'require: [{", ".join(self.require)}]')
        if self.math:
            lines.append(f'math: {self.math}')
        lines.append('compute: |')
        lines += [f'  {e}' for e in self.equations]
        if self.schedule:
            lines.append(f'schedule: {self.schedule}')
        known = set(re.findall(r'[A-Za-z_]\w*', '\n'.join(lines)))
        lines.append('cases:')
        names = [e for e in self.extents if e.named and e.text in known]
        for k in range(self.CASES if names else 1):
            values = [f'{e.text}: {e.sizes[k]}' for e in names]
            values += [f'{name}: "{fill}"' if fill.startswith('@') else f'{name}: {fill}' for name, fill in self.fills.items()]
            lines.append(f'  c{k}: {{{", ".join(values)}}}' if values else f'  c{k}: {{}}')
        return '\n'.join(lines)


# ---- what may be done to results -----------------------------------------------------------------------------------

ACTIVATIONS = ['relu({})', 'gelu({})', 'gelu_tanh({})', 'silu({})', 'sigmoid({})', 'tanh({})', 'softplus({})', 'mish({})',
               'hardswish({})', 'hardsigmoid({})', 'relu6({})', 'selu({})', 'elu({}, 1.0)', 'leaky_relu({}, 0.1)', 'softsign({})',
               'logsigmoid({})', 'clamp({}, -1.0, 1.5)', 'abs({})', '(-{})']


def activation(s, text):
    return s.r.choice(ACTIVATIONS).format(f'({text})' if ' ' in text else text)


def epilogue(s, text, index, channel=None):
    """Something elementwise of a result: index is its (index, extent), channel one of them."""
    for k in range(s.r.choices([0, 1, 2, 3], [35, 35, 20, 10])[0]):
        what = s.weighed(bias=4, activation=4, residual=2, scale=2, constant=1)
        if what == 'activation':
            text = activation(s, text)
            continue
        if what == 'constant':
            text = f'({text}) * {s.pick("0.5", "0.125", "2.0")}'
            continue
        own = [channel] if channel and what != 'residual' and s.chance(0.8) else index
        name = f'{what}{k}'
        at = s.tensor(name, s.pick('f32', 'f32', 'f16', 'bf16'), own)()
        text = f'({text}) * {at}' if what == 'scale' else f'{text} + {at}' if s.chance(0.7) else f'{at} + ({text})'
    return text
