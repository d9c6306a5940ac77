#!/usr/bin/env python3
"""Compares specs/attention with attention in numpy: specs.py FOLDER runs the case odd of each spec there on the simulator, and
says in TAP what differs.

kaio-verify judges a kernel by the spec's own equations; whether these are attention is judged here. Each variant is written
below in the usual way: whole matrices of scores, a mask of what each query sees, and a softmax of rows in f64.
"""
import os
import re
import subprocess
import sys
import tempfile

import numpy as np


def e4m3():
    """The values of its 256 codes."""
    code = np.arange(256)
    exponent, mantissa = code >> 3 & 15, code & 7
    size = np.where(exponent == 0, mantissa * 2.0**-9, (8 + mantissa) * 2.0 ** (exponent - 10.0))
    size[(code & 127) == 127] = np.nan
    return np.where(code < 128, size, -size)


# ---- attention -------------------------------------------------------------------------------------------------


def softmax(s, see, v, sink=None):
    """Rows of s, where see is true, as weights of v: the output and lse. Rows that see nothing are 0 and -inf."""
    s = np.where(see, s, -np.inf)
    weight = np.exp(s)  # the tests' scores are small
    total = weight.sum(-1)
    if sink is not None:
        total = total + np.exp(sink)
    with np.errstate(divide='ignore', invalid='ignore'):
        o = np.nan_to_num(weight @ v / total[..., None])
        return {'o': o, 'lse': np.log(total)}


def heads_of(a, count):
    """Keys or values for each of the heads of the queries, of which some share one."""
    return np.repeat(a, count // a.shape[1], axis=1)


def scores(x):
    return x['q'] @ np.swapaxes(x['k'], -1, -2) * x['scale']


def last(x):
    """For each query its own place among the keys, and the keys' places."""
    m, n = x['q'].shape[-2], x['k'].shape[-2]
    return np.arange(m)[:, None] + (n - m), np.arange(n)[None, :]


def full(x):
    return softmax(scores(x), True, x['v'])


def causal(x, bias=0.0):
    i, j = last(x)
    return softmax(scores(x) + bias, j <= i, x['v'])


def grouped(x, see=True, sink=None):
    count = x['q'].shape[1]
    x = dict(x, k=heads_of(x['k'], count), v=heads_of(x['v'], count))
    return softmax(scores(x), see, x['v'], sink)


def grouped_causal(x, sink=None):
    i, j = last(x)
    return grouped(x, j <= i, sink)


def window(x):
    i, j = last(x)
    return softmax(scores(x), (j <= i) & (j > i - x['window']), x['v'])


def varlen(x):
    see = last(x)[1] < x['len'][:, None, None, None]
    return softmax(scores(x), see, x['v'])


def packed(x):
    tokens, heads, e = *x['q'].shape[:2], x['v'].shape[2]
    o, lse = np.zeros((tokens, heads, e)), np.full((heads, tokens), -np.inf)
    for z in range(len(x['cu_q']) - 1):
        rows, keys = (slice(x[c][z], x[c][z + 1]) for c in ('cu_q', 'cu_k'))
        one = {'q': x['q'][rows].swapaxes(0, 1), 'k': x['k'][keys].swapaxes(0, 1), 'v': x['v'][keys].swapaxes(0, 1)}
        got = causal(dict(one, scale=x['scale']))
        o[rows], lse[:, rows] = got['o'].swapaxes(0, 1), got['lse']
    return {'o': o, 'lse': lse}


def decode(x):
    i, j = last(x)
    see = j - i <= np.minimum(x['len'], j.size)[:, None, None, None] - j.size
    return grouped(x, see)


def paged(x):
    o = np.zeros(x['q'].shape[:2] + x['v'].shape[3:])
    for z, length in enumerate(x['len']):
        k, v = (x[c][x['page'][z]].reshape(-1, *x[c].shape[2:])[:length].swapaxes(0, 1)[None] for c in 'kv')
        o[z] = grouped({'q': x['q'][z][None, :, None, :], 'k': k, 'v': v, 'scale': x['scale']})['o'][0, :, 0]
    return {'o': o}


def alibi(x):
    i, j = last(x)
    return causal(x, -x['slope'][:, None, None] * np.abs(i - j))


def softcap(x):
    s = x['cap'] * np.tanh(scores(x) / x['cap'])
    i, j = last(x)
    return softmax(s, j <= i, x['v'])


def relative(x):
    m, n = x['q'].shape[-2], x['k'].shape[-2]
    bias = np.stack([[row[n + t - np.arange(n)] for t in range(m)] for row in x['bias']])
    return softmax(scores(x) + bias, True, x['v'])


def fp8(x):
    wide = {name: x[name] * x[name + '_scale'][..., None, None] for name in 'qkv'}
    return full(dict(wide, scale=x['scale']))


def int8(x):
    wide = {name: x[name] * x[name + '_scale'][..., None] for name in 'kv'}
    return grouped(dict(x, **wide))


def mla(x):
    k_rope = np.broadcast_to(x['k_rope'][:, None], x['k'].shape[:3] + x['k_rope'].shape[-1:])
    return causal(dict(x, q=np.concatenate([x['q'], x['q_rope']], -1), k=np.concatenate([x['k'], k_rope], -1)))


def latent(x):
    return decode(dict(x, k=x['kv'][:, None], v=x['kv'][:, None, :, :512]))


def weighted(x, weight):
    return {'o': weight @ x['v']}


def linear(x, decay=1.0):
    i, j = last(x)
    return weighted(x, np.where(j <= i, scores(x), 0) * decay)


def retention(x):
    i, j = last(x)
    return linear(x, np.exp2(-x['rate'][:, None, None]) ** np.maximum(i - j, 0))


def prefix(x):
    i, j = last(x)
    return softmax(scores(x), (j <= i) | (j < x['prefix'][:, None, None, None]), x['v'])


def documents(x):
    i, j = last(x)
    same = x['doc'][:, :, None] == x['doc'][:, None, :]
    return softmax(scores(x), (j <= i) & same[:, None], x['v'])


def cross(x):
    q, k, v = (x[c].swapaxes(1, 2) for c in 'qkv')
    o = softmax(scores({'q': q, 'k': k, 'scale': x['scale']}), x['mask'][:, None, None, :], v)['o']
    return {'o': o.swapaxes(1, 2)}


def strided(x):
    q, k, v = (x['qkv'][:, :, t].swapaxes(1, 2) for t in range(3))
    return {'o': causal({'q': q, 'k': k, 'v': v, 'scale': x['scale']})['o'].swapaxes(1, 2)}


def backward(x, see=True):
    s = np.where(see, scores(x), -np.inf)
    p = np.exp(s - x['lse'][..., None])
    delta = x['delta'] if 'delta' in x else (x['o'] * x['dout']).sum(-1)
    ds = p * (x['dout'] @ x['v'].swapaxes(-1, -2) - delta[..., None]) * x['scale']
    return {'dq': ds @ x['k'], 'dk': ds.swapaxes(-1, -2) @ x['q'], 'dv': p.swapaxes(-1, -2) @ x['dout']}


def backward_causal(x):
    i, j = last(x)
    return backward(x, j <= i)


VARIANTS = {
    'forward': full,
    'causal': causal,
    'causal_mask': grouped_causal,
    'grouped': grouped,
    'window': window,
    'varlen': varlen,
    'varlen_packed': packed,
    'decode': decode,
    'paged_decode': paged,
    'alibi': alibi,
    'softcap': softcap,
    'bias': lambda x: softmax(scores(x) + x['bias'], True, x['v']),
    'bias_relative': relative,
    'sinks': lambda x: grouped_causal(x, x['sink'][:, None]),
    'fp8': fp8,
    'int8_kv': int8,
    'mla': mla,
    'mla_wide': causal,
    'mla_latent': latent,
    'linear': linear,
    'relu': lambda x: weighted(x, np.maximum(scores(x), 0) / x['k'].shape[-2]),
    'sigmoid': lambda x: weighted(x, 1 / (1 + np.exp(-scores(x) - x['shift']))),
    'retention': retention,
    'prefix': prefix,
    'documents': documents,
    'cross': cross,
    'strided': strided,
    'delta': lambda x: {'delta': np.einsum('zhic,zhic->zhi', x['o'], x['dout'])},
    'backward_dq': backward_causal,
    'backward_dkv': backward_causal,
    'backward': backward,
}

# ---- running a spec --------------------------------------------------------------------------------------------


def read(path):
    """The kernel's parameters, as (name, direction, type, dimensions), and what its defaults and its case say."""
    text = open(path).read()
    params, values = [], {}
    for name, direction, kind, shape in re.findall(r'^  (\w+): (in|out) (\w+)\[(.*)\]$', text, re.M):
        params.append((name, direction, kind, shape.split(', ')))
    for name, value in re.findall(r'^  (\w+): \w+ = (.*)$', text, re.M):
        values[name] = value
    line = re.search(r'^  odd: \{(.*)\}$', text, re.M).group(1)
    values.update(pair.split(': ') for pair in line.split(', '))
    return params, values


def fill(rng, kind, shape, how, values, name):
    """An input: what the case says, or what suits the type."""
    how = how.strip('"') if how else None
    if how and '..' in how:
        low, high = map(int, how.split('..'))
        return rng.integers(low, high + 1, shape)
    if how and how.startswith('@offsets'):
        return np.concatenate([[0], np.sort(rng.integers(0, int(how.split(':')[1]) + 1, shape[0] - 2)), [how.split(':')[1]]])
    if how and how.startswith('@const'):
        return np.full(shape, float(how.split(':')[1]))
    if how or name.endswith('_scale'):
        return rng.random(shape)
    if name == 'page':
        return rng.integers(0, int(values['pages']), shape)
    if kind == 'bool':
        return rng.integers(0, 2, shape)
    if kind == 'i8':
        return rng.integers(-128, 128, shape)
    if kind == 'e4m3':
        return rng.choice([c for c in range(256) if abs(e4m3()[c]) <= 4], shape)
    return rng.standard_normal(shape)


NUMPY = {'T': 'f2', 'f32': 'f4', 'i32': 'i4', 'i8': 'i1', 'bool': '?', 'e4m3': 'u1'}


def differences(path, folder):
    """Runs the case. What is wrong with its outputs, a line each."""
    params, values = read(path)
    sizes = {name: int(v) for name, v in values.items() if v.isdigit()}
    rng = np.random.default_rng(1)
    words, inputs, outputs = [], {}, {}
    kind_of = {p[0]: p[2] for p in params}
    for name, direction, kind, dims in params:
        file = os.path.join(folder, f'{name}.{"bin" if kind == "e4m3" else "npy"}')
        words.append(f'{name}={file}')
        if direction == 'out':
            outputs[name] = file
            continue
        a = fill(rng, kind, [eval(d, sizes) for d in dims], values.get(name), values, name).astype(NUMPY[kind])
        if kind == 'e4m3':
            a.tofile(file)
            a = e4m3()[a]
        else:
            np.save(file, a)
        inputs[name] = a if a.dtype == bool else a.astype('i8' if a.dtype.kind == 'i' else 'f8')
    words += [f'{name}={v}' for name, v in values.items() if name not in kind_of]
    inputs.update((name, float(v)) for name, v in values.items() if name not in kind_of)
    types = [] if 'T: [' not in open(path).read() else ['-D', 'T=f16']
    ptx = subprocess.run(['kaio-emit', *types, path], check=True, capture_output=True).stdout
    subprocess.run(['kaio-run', '-d', 'cpu', '-q', '-', *words], input=ptx, check=True)
    want = VARIANTS[os.path.basename(path)[:-5]](inputs)
    rounded = 0.05 if kind_of.get('v') == 'e4m3' else 0.004  # what rounding weights and results to their types may be
    wrong = []
    for name, file in outputs.items():
        got, right = np.load(file).astype('f8'), want[name]
        size = np.abs(right[np.isfinite(right)]).max()
        most = max(1, size) * (1e-4 if kind_of[name] == 'f32' else rounded)
        if got.shape != right.shape or not np.allclose(got, right, rtol=0, atol=most):
            wrong.append(f'{name} differs by more than {most}')
        if size < 20 * most:
            wrong.append(f'{name} has no value that {most} does not hide')
    return wrong


def main():
    folder = sys.argv[1]
    names = sorted(f[:-5] for f in os.listdir(folder) if f.endswith('.yaml'))
    bad = 0
    print(f'1..{len(names)}')
    for number, name in enumerate(names, 1):
        with tempfile.TemporaryDirectory() as scratch:
            wrong = ['it is not in the table'] if name not in VARIANTS else differences(f'{folder}/{name}.yaml', scratch)
        print('not ok' if wrong else 'ok', number, '-', name)
        for line in wrong:
            print('#', line)
        bad += bool(wrong)
    sys.exit(bad > 0)


main()
