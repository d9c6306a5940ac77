"""Windows: poolings and stencils of 1 to 3 dimensions."""
from convolution import Images
from spec import Spec, activation, epilogue


def pooled(s, m, x, kind):
    """A reduction over windows of x."""
    what = s.weighed(max=30, min=8, mean=25, sum=15, argmax=5, any=3, norm2=4, logsumexp=4, prod=3, power=3)
    if kind == 'i32' and what not in ('max', 'min', 'sum', 'argmax', 'power'):
        what = 'max'
    if what == 'argmax' and len(m.windows) > 1:
        what = 'max'
    far = {'max': '-inf', 'min': 'inf', 'argmax': '-inf', 'logsumexp': '-inf'}
    zero = far.get(what, '0') if kind != 'i32' and s.chance(0.8) else s.pick('0', '1')
    how = s.weighed(pad=70, replicate=10, reflect=10, circular=10)
    at = {i: w.at(i, u) if how == 'pad' else w.read(how, i, u) for i, w, u in zip(m.outs, m.windows, m.taps)}
    read = x(**at)
    if not all(w.inside() for w in m.windows) and how == 'pad':
        read = f'pad({read}, {zero})'
    words = [f'{u} < {w.kernel}' for u, w in zip(m.taps, m.windows)]
    if s.chance(0.3):
        s.r.shuffle(words)
    if what in ('sum', 'mean', 'max') and kind != 'i32' and s.chance(0.2):
        read = activation(s, read)
    form = {'any': f'{read} > 1.0', 'prod': f'1 + 0.01 * clamp({read}, -1.0, 1.0)', 'power': f'abs({read}) * {read}'}
    return what, f'{"sum" if what == "power" else what}[{",".join(words)}]({form.get(what, read)})'


def weighted(s, m, x):
    """A stencil: a sum with weights that are made of the taps, or a few neighbours written out."""
    if len(m.windows) == 1 or s.chance(0.5):
        weight = ' * '.join(f'({w.taps} - abs({u} - {w.taps // 2}))' for u, w in zip(m.taps, m.windows))
        at = {i: w.at(i, u) for i, w, u in zip(m.outs, m.windows, m.taps)}
        words = [f'{u} < {w.kernel}' for u, w in zip(m.taps, m.windows)]
        return 'sum', f'sum[{",".join(words)}]({weight} * pad({x(**at)}, 0))'
    near = [f'{s.pick("0.25", "0.5", "2.0", "-1.5")} * pad({x(**{i: f"{i} {d}"})}, 0)' for i in m.outs for d in ('- 1', '+ 1')]
    return 'sum', ' + '.join([f'pad({x()}, 0)'] + near)


def window(r, name):
    s = Spec(r, name, 12000)
    m = Images(s)
    m.groups = None
    s.fit(m.images, m.channels, *[w.pixels for w in m.windows], most=s.most // m.taps_of())
    kind = s.pick('f32', 'f32', 'f32', 'f16', 'f16', 'bf16', 'f64', 'i32')
    channels = [] if s.chance(0.3) else [('q', m.channels.text)]
    places = [(i, w.outputs(s)) for i, w in zip(m.outs, m.windows)]
    x = s.tensor('x', kind, m.layout(s, [('b', m.images.text)], [(i, w.pixels.text) for i, w in zip(m.outs, m.windows)], channels))
    axes = m.layout(s, [('b', m.images.text)], places, channels)
    for number in range(r.choices([1, 2], [85, 15])[0]):
        what, text = weighted(s, m, x) if kind != 'i32' and s.chance(0.2) else pooled(s, m, x, kind)
        out = {'argmax': 'i64', 'any': 'bool'}.get(what, s.pick(kind, kind, 'i32' if kind == 'i32' else 'f32'))
        if out not in ('i64', 'bool', 'i32') and s.chance(0.3):
            text = epilogue_of(s, text, axes, channels, number)
        s.params.append((f'y{number}', f'out {out}', [e for _, e in axes]))
        s.define(f'y{number}', [i for i, _ in axes], text)
    return s


def epilogue_of(s, text, axes, channels, number):
    if number:
        return activation(s, text)
    return epilogue(s, text, axes, channels[0] if channels else None)
