#!/usr/bin/env python3
"""Random kernels for the map strategy: maps.py SEED COUNT prints COUNT specs with cases.

Subscripts are sums, products, quotients and rests of indices, dimensions and constants; what may lie outside is read
through pad() or behind a condition. Some outputs are transposed, some read intermediates at other elements.
"""
import random
import sys

BUFFERS = {'x': 'abc', 'p': 'bc', 'q': 'c', 'w': 'cb', 'v': 'a', 'n': 'c'}
INDEX = {'a': 'i', 'b': 'j', 'c': 'k'}
DIM = {'i': 'a', 'j': 'b', 'k': 'c'}


def subscript(index, depth):
    kind = random.random()
    if depth == 0 or kind < 0.35:
        return random.choice(index * 3 + ['1', '2', '3', 'a', 'b', 'c'])
    inner = subscript(index, depth - 1)
    if kind < 0.55:
        return f"({inner} + {random.choice(['1', '2', '-1', '4', '8', 'b', 'c', 'c / 2'])})"
    if kind < 0.65:
        return f"({inner} - {random.choice(['1', '3', '8', 'c / 2', 'b'])})"
    if kind < 0.75:
        return f"({inner} * {random.choice('234')})"
    if kind < 0.95:
        return f"({inner} {random.choice('/%')} {random.choice('2348abc')})"
    return f'abs({inner})'


def read(index):
    name = random.choice('xxpqwv')
    dims = BUFFERS[name]
    own = [INDEX[d] for d in dims]
    subs = []
    for i in own:
        if i in index and random.random() < 0.55:
            subs.append(i)
        elif 'k' in index and random.random() < 0.15:
            subs.append('n[k]')
        else:
            subs.append(subscript(index, 2))
    text = f"{name}[{', '.join(subs)}]"
    if subs == own and random.random() < 0.8:
        return text
    if random.random() < 0.2:
        inside = ' && '.join(f'{s} >= 0 && {s} < {d}' for s, d in zip(subs, dims))
        return f'({inside} ? {text} : 1)'
    return f"pad({text}, {random.choice('01')})"


def value(index, depth):
    kind = random.random()
    if depth == 0 or kind < 0.5:
        return read(index)
    x, y = value(index, depth - 1), value(index, depth - 1)
    if kind < 0.8:
        return f"({x} {random.choice('+-')} {y})"
    if kind < 0.9:
        return f"({subscript(index, 1)} {random.choice(['<', '>=', '==', '!='])} {subscript(index, 1)} ? {x} : {y})"
    if kind < 0.95:
        return f"sum[s < 3]({read(index + ['s'])})"
    return f'max({x}, {y})'


def kernel(number):
    types = {b: random.choice(['f32', 'f16', 'i8', 'i32']) for b in BUFFERS}
    types['x'] = random.choice(['f32', 'f32', 'f16', 'i8', 'bf16', 'f64', 'i4'])
    types['n'] = 'i32'
    index = random.choice([list('ijk'), list('ijk'), list('ikj'), list('kji'), list('jk'), list('kj'), list('k')])
    lines = []
    if random.random() < 0.3:
        subs = [s if s in index and random.random() < 0.6 else subscript(index, 1) for s in 'ijk']
        lines.append(f"  t[i < a, j < b, k < c] = {value(list('ijk'), 1)}")
        result = f"pad(t[{', '.join(subs)}], 0) + {value(index, 2)}"
    else:
        result = value(index, 2)
    lines.append(f"  y[{', '.join(index)}] = {result}")
    text = '\n'.join(lines)
    print(f'---\nkernel: map{number}\nparams:')
    for name, dims in BUFFERS.items(): # all of them, so that every dimension has one
        print(f"  {name}: in {types[name]}[{', '.join(dims)}]")
    print(f"  y: out {random.choice(['f32', 'f32', 'f16', 'f64'])}[{', '.join(DIM[i] for i in index)}]")
    if types['x'] == 'i4':
        print('require: [c % 2 == 0]')
    print(f'compute: |\n{text}\ncases:')
    for case in range(4):
        c = random.choice([1, 3, 4, 7, 8, 16, 24, 32, 34, 40])
        c += c % 2 if types['x'] == 'i4' else 0
        print(f'  c{case}: {{a: {random.choice([1, 2, 3, 17, 20])}, b: {random.choice([1, 2, 5, 8, 16, 33])}, c: {c}}}')


random.seed(int(sys.argv[1]))
for n in range(int(sys.argv[2])):
    kernel(n)
