"""Convolutions: forward, both gradients, transposed, depthwise, of 1 to 3 dimensions."""
from math import prod

from spec import Spec, epilogue, number, times


class Window:
    """Along one dimension of pixels: how an output i and a tap u make a pixel."""

    def __init__(self, s, name, spatial, long):
        r = s.r
        self.name = name
        self.taps = r.choice([1, 2, 3, 3, 3, 4, 5] if spatial < 3 else [1, 2, 3])
        self.stride, self.dilation = r.choice([1, 1, 1, 2, 3]), r.choice([1, 1, 1, 2, 3])
        self.before = r.choice([0, (self.taps - 1) * self.dilation // 2, r.randint(0, 3)])
        self.after = self.before if s.chance(0.8) else r.randint(0, 3)
        self.least = max(1, (self.taps - 1) * self.dilation + 1 - self.before - self.after, self.before + 1, self.after + 1)
        self.pixels = s.extent(name.upper(), lambda r: r.choice(long), self.least)
        self.kernel = str(self.taps)

    def outputs(self, s):
        """How many outputs there are, in the text, and by a name where dims derives it."""
        reach = self.before + self.after - self.dilation * (self.taps - 1) - 1
        if self.pixels.named:
            text = number(self.pixels.text, reach)
            text = f'({text}) / {self.stride} + 1' if self.stride > 1 else number(self.pixels.text, reach + 1)
            if text == self.pixels.text or s.chance(0.5):
                return text
            s.derived['O' + self.name.upper()] = text
            return 'O' + self.name.upper()
        return str((self.pixels.sizes[0] + reach) // self.stride + 1)

    def at(self, i, u):
        """The pixel, as a sum."""
        return number(f'{times(self.stride, i)} + {times(self.dilation, u)}', -self.before)

    def inside(self):
        return self.before == 0 and self.after == 0

    def read(self, how, i, u):
        """The pixel by a kind of padding that stays inside."""
        e, n = self.at(i, u), self.pixels.operand()
        return {
            'reflect': f'({n} - 1 - abs({n} - 1 - abs({e})))',
            'replicate': f'clamp({e}, 0, {n} - 1)',
            'circular': f'({e} + {n}) % {n}',
        }[how]


TYPES = ['f16', 'bf16', 'f32', 'tf32', 'i8', 'e4m3']


def types(s):
    """The type of the operands, what is written around each, and the type of results."""
    t = s.r.choices(TYPES, [26, 12, 24, 12, 14, 12])[0]
    around = f'{s.pick("tf32", "tf32_rn", "tf32_rz")}({{}})' if t == 'tf32' else '{}'
    t = 'f32' if t == 'tf32' else t
    out = {'i8': s.pick('i32', 'i8', 'f32'), 'e4m3': s.pick('f16', 'f32', 'bf16')}.get(t, t if s.chance(0.7) else 'f32')
    return t, around, out


def finish(s, text, index, out, kind, channel):
    """The equations of the result y of the sum text."""
    if kind == 'i8' and out != 'i32':
        s.define('s', index, text)
        text = f'f32(s[{",".join(i for i, _ in index)}])'
        scale = s.tensor('scale', 'f32', [channel] if channel else index[:1])()
        text = epilogue(s, f'{text} * {scale} * 0.01', index, channel)
        text = f'i8(clamp(rint({text}), -128.0, 127.0))' if out == 'i8' else text
    elif kind == 'i8':
        text += s.pick('', ' + 3', ' * 2')
    elif s.chance(0.15):
        s.define('s', index, text)
        text = epilogue(s, f's[{",".join(i for i, _ in index)}]', index, channel)
    else:
        text = epilogue(s, text, index, channel)
    s.params.append(('y', f'out {out}', s.order))
    s.equations.append(f'y[{s.left}] = {text}')


class Images:
    """Axes of images and filters, and in which order tensors have them."""

    def __init__(self, s):
        r = s.r
        self.spatial = r.choices([1, 2, 3], [25, 60, 15])[0]
        long = {1: [1, 3, 8, 17, 33, 70], 2: [1, 2, 4, 5, 7, 8, 11, 16], 3: [1, 2, 3, 4, 5]}[self.spatial]
        self.windows = [Window(s, name, self.spatial, long) for name in 'dhw'[3 - self.spatial:]]
        self.outs, self.taps = list('lij'[3 - self.spatial:]), list('tuv'[3 - self.spatial:])
        self.order = s.pick('last', 'first', 'first', 'any')
        few = [1, 2, 3, 4, 5, 8, 16, 17, 24, 32, 40]
        self.images = s.extent('N', lambda r: r.choice([1, 1, 2, 3]))
        self.channels = s.extent('C', lambda r: r.choice(few))
        self.filters = s.extent('F', lambda r: r.choice(few + [64, 65]))
        self.groups = s.extent('G', lambda r: r.choice([2, 3, 4])) if s.chance(0.2) else None

    def taps_of(self):
        return prod(w.taps for w in self.windows)

    def grouped(self):
        return [('g', self.groups.text)] if self.groups else []

    def layout(self, s, head, places, channels):
        axes = {'last': head + places + channels, 'first': head + channels + places, 'any': head + places + channels}[self.order]
        if self.order == 'any':
            s.r.shuffle(axes)
        return axes


def padded(s, m, tensor, at, windows):
    """The read of a pixel, by padding that is drawn."""
    how = s.weighed(zero=62, value=6, reflect=6, replicate=6, circular=6)
    if how in ('zero', 'value'):
        text = tensor(**at)
        if all(w.inside() for w in windows):
            return text
        return f'pad({text}, {"0" if how == "zero" else s.pick("1", "-2")})'
    for w, i, u in zip(windows, m.outs, m.taps):
        if not w.inside():
            at[i] = w.read(how, i, u)
    return tensor(**at)


def forward(s):
    m = Images(s)
    kind, around, out = types(s)
    s.fit(m.images, m.channels, m.filters, *[w.pixels for w in m.windows], *([m.groups] if m.groups else []),
          most=s.most // m.taps_of())
    places = [(i, w.outputs(s)) for i, w in zip(m.outs, m.windows)]
    g = m.grouped()
    x = s.tensor('x', kind, m.layout(s, [('b', m.images.text)], [(i, w.pixels.text) for i, w in zip(m.outs, m.windows)],
                                     g + [('q', m.channels.text)]))
    taps = [(u, w.kernel) for u, w in zip(m.taps, m.windows)]
    weight = s.tensor('k', kind, m.layout(s, g + [('o', m.filters.text)], taps, [('q', m.channels.text)]),
                      shuffle=0.15)
    at = {i: w.at(i, u) for i, w, u in zip(m.outs, m.windows, m.taps)}
    read = padded(s, m, x, at, m.windows)
    text = s.summed([('q', m.channels.text)] + taps, s.product( read, weight(), around))
    result(s, m, text, [('b', m.images.text)], places, g + [('o', m.filters.text)], out, kind)


def result(s, m, text, head, places, channels, out, kind):
    axes = m.layout(s, head, places, channels)
    s.order, s.left = [e for _, e in axes], ','.join(i for i, _ in axes)
    finish(s, text, axes, out, kind, channels[-1])


def depthwise(s):
    m = Images(s)
    kind, around, out = types(s)
    s.fit(m.images, m.channels, *[w.pixels for w in m.windows], most=s.most // 8)
    places = [(i, w.outputs(s)) for i, w in zip(m.outs, m.windows)]
    x = s.tensor('x', kind, m.layout(s, [('b', m.images.text)], [(i, w.pixels.text) for i, w in zip(m.outs, m.windows)],
                                     [('q', m.channels.text)]))
    taps = [(u, w.kernel) for u, w in zip(m.taps, m.windows)]
    weight = s.tensor('k', kind, [('q', m.channels.text)] + taps, shuffle=0.4)
    at = {i: w.at(i, u) for i, w, u in zip(m.outs, m.windows, m.taps)}
    text = s.summed(taps, s.product( padded(s, m, x, at, m.windows), weight(), around))
    result(s, m, text, [('b', m.images.text)], places, [('q', m.channels.text)], out, kind)


def transposed(s):
    """Also the gradient by x: an output i meets the pixels (i + before - dilation * u) / stride."""
    m = Images(s)
    kind, around, out = types(s)
    s.fit(m.images, m.channels, m.filters, *[w.pixels for w in m.windows], most=s.most // (4 * m.taps_of()))
    places, at, whole = [], {}, []
    for i, u, w in zip(m.outs, m.taps, m.windows):
        e = number(i, w.before) + f' - {times(w.dilation, u)}'
        plus = w.dilation * (w.taps - 1) + 1 - w.before - w.after - w.stride + s.r.randint(0, w.stride - 1)
        while w.stride * min(w.pixels.sizes) + plus < 1:
            plus += w.stride
        places.append((i, number(times(w.stride, w.pixels.text), plus) if w.pixels.named else
                       str(w.stride * w.pixels.sizes[0] + plus)))
        at[i] = f'({e}) / {w.stride}' if w.stride > 1 else e
        whole += [f'({e}) % {w.stride} == 0'] if w.stride > 1 else []
    taps = [(u, w.kernel) for u, w in zip(m.taps, m.windows)]
    x = s.tensor('x', kind, m.layout(s, [('b', m.images.text)], [(i, w.pixels.text) for i, w in zip(m.outs, m.windows)],
                                     [('q', m.channels.text)]))
    weight = s.tensor('k', kind, m.layout(s, [('q', m.channels.text)], taps, [('o', m.filters.text)]))
    read, zero = f'pad({x(**at)}, 0)', '0'
    if whole and s.chance(0.5):
        text = s.product( f'({" && ".join(whole)} ? {read} : {zero})', weight(), around)
    else:
        text = s.product( read, weight(), around)
        text = f'{" && ".join(whole)} ? {text} : {zero}' if whole else text
    text = s.summed([('q', m.channels.text)] + taps, text)
    result(s, m, text, [('b', m.images.text)], places, [('o', m.filters.text)], out, kind)


def by_weight(s):
    """The gradient by the filters: a sum over the images' pixels."""
    m = Images(s)
    kind, around, out = types(s)
    out = 'i32' if kind == 'i8' else out
    s.fit(m.images, m.channels, m.filters, *[w.pixels for w in m.windows], most=s.most // m.taps_of())
    places = [(i, w.outputs(s)) for i, w in zip(m.outs, m.windows)]
    g = m.grouped()
    x = s.tensor('x', kind, m.layout(s, [('b', m.images.text)], [(i, w.pixels.text) for i, w in zip(m.outs, m.windows)],
                                     g + [('q', m.channels.text)]))
    dy = s.tensor('dy', kind, m.layout(s, [('b', m.images.text)], places, g + [('o', m.filters.text)]))
    at = {i: w.at(i, u) for i, w, u in zip(m.outs, m.windows, m.taps)}
    text = x(**at) if all(w.inside() for w in m.windows) else f'pad({x(**at)}, 0)'
    text = s.summed([('b', m.images.text)] + places, s.product( dy(), text, around))
    taps = [(u, w.kernel) for u, w in zip(m.taps, m.windows)]
    result(s, m, text, g + [('o', m.filters.text)], taps, [('q', m.channels.text)], out, kind)


def convolution(r, name):
    s = Spec(r, name, 60000)
    how = s.weighed(forward=50, transposed=20, by_weight=15, depthwise=15)
    {'forward': forward, 'transposed': transposed, 'by_weight': by_weight, 'depthwise': depthwise}[how](s)
    if s.chance(0.05):
        s.math = 'strict'
    return s
