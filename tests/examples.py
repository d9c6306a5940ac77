#!/usr/bin/env python3
"""Runs the programs of examples/ on the simulator at small sizes and compares them with numpy.

    examples.py FOLDER NAME ...     FOLDER is examples/; files are made in the current one
"""
import subprocess, sys
import numpy as np

rng = np.random.default_rng(1)


def run(name, arguments, *options):
    """Launches examples/NAME/NAME.yaml; arguments that are arrays are inputs, names are outputs."""
    words, outputs = [], []
    for parameter, value in arguments.items():
        if isinstance(value, np.ndarray):
            np.save(parameter + '.npy', value)
            words.append(f'{parameter}={parameter}.npy')
        elif isinstance(value, tuple):  # an inout
            np.save(parameter + '.npy', value[0])
            words.append(f'{parameter}={parameter}.npy:{parameter}.out.npy')
            outputs.append(parameter)
        elif value is out:
            words.append(f'{parameter}={parameter}.out.npy')
            outputs.append(parameter)
        else:
            words.append(f'{parameter}={value}')
    subprocess.run(['kaio-emit', f'{sys.argv[1]}/{name}/{name}.yaml', '-o', name + '.ptx', *options], check=True)
    said = subprocess.run(['kaio-run', '-q', '-d', 'cpu', '--check', name + '.ptx', *words], check=True,
                          stdout=subprocess.PIPE, text=True)
    return [np.load(o + '.out.npy') for o in outputs], said.stdout


out = object()


def heat():
    u = rng.random((9, 13), dtype=np.float32)
    (got,), _ = run('heat', {'u': (u,), 'rounds': 10})
    want = u.astype(float)
    for _ in range(20):
        inner = want[1:-1, 1:-1]
        around = want[:-2, 1:-1] + want[2:, 1:-1] + want[1:-1, :-2] + want[1:-1, 2:]
        want[1:-1, 1:-1] = inner + 0.1 * (around - 4 * inner)
    np.testing.assert_allclose(got, want, atol=2e-6)


def life():
    cells = (rng.random((10, 17)) < .3).astype(np.uint8)
    (got,), _ = run('life', {'cells': (cells,), 'rounds': 7})
    want = cells.astype(int)
    for _ in range(7):
        near = sum(np.roll(want, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1))
        want = ((near == 3) | ((near == 4) & (want == 1))).astype(int)
    assert want.any()
    np.testing.assert_array_equal(got, want)


def bfs():
    n, edges = 200, 2
    to = rng.integers(0, n, (n, edges)).astype(np.uint32)
    row = np.arange(0, n * edges + 1, edges).astype(np.uint32)
    (got,), _ = run('bfs', {'row': row, 'to': to.ravel(), 'first': 3, 'depth': out})
    want, queue = np.full(n, -1), [3]
    want[3] = 0
    for v in queue:
        for t in to[v]:
            if want[t] < 0:
                want[t] = want[v] + 1
                queue.append(int(t))
    assert want.max() > 3 and want.min() == -1
    np.testing.assert_array_equal(got, want)


def cg():
    a = rng.random((30, 30))
    a = (a @ a.T + 30 * np.eye(30)).astype(np.float32)
    b = rng.random(30).astype(np.float32)
    (got,), _ = run('cg', {'a': a, 'b': b, 'x': out})
    np.testing.assert_allclose(got, np.linalg.solve(a.astype(float), b), atol=1e-6)


def mlp():
    batches, b, pixels, hidden, digits, rounds = 2, 8, 12, 16, 10, 12
    x = rng.standard_normal((batches, b, pixels)).astype(np.float32)
    label = rng.integers(0, digits, (batches, b)).astype(np.int32)
    w = [(rng.standard_normal(s) * .3).astype(np.float32) for s in ((pixels, hidden), (hidden, digits))]
    got, _ = run('mlp', {'x': x, 'label': label, 'w1': (w[0],), 'w2': (w[1],), 'loss': out, 'rounds': rounds})
    w, m, s, losses = [t.astype(float) for t in w], [0, 0], [0, 0], []
    for t in range(rounds):
        r = np.maximum(x[t % batches] @ w[0], 0)
        p = np.exp(r @ w[1])
        p /= p.sum(1, keepdims=True)
        at = np.arange(b), label[t % batches]
        losses.append(-np.log(p[at]).mean())
        p[at] -= 1
        grad = [x[t % batches].T.astype(float) @ (p @ w[1].T * (r > 0)) / b, r.T @ p / b]
        for k in 0, 1:
            m[k], s[k] = .9 * m[k] + .1 * grad[k], .999 * s[k] + .001 * grad[k] ** 2
            w[k] = w[k] - .01 * m[k] / (1 - .9 ** (t + 1)) / (np.sqrt(s[k] / (1 - .999 ** (t + 1))) + 1e-8)
    for have, want in zip(got, w + [losses]):
        np.testing.assert_allclose(have, want, atol=1e-4)


def llama():
    sys.path.insert(0, sys.argv[1] + '/llama')
    import reference
    w = reference.random()
    fixed = ['-D%s' % d for d in 'vocab=100 width=64 layers=2 heads=2 kv=1 d=32 inner=96 room=16'.split()]
    for prompt, options in (([5, 7, 11], {}), ([90], {}), ([3] * 7, {'end': 79}),
                            ([5, 7, 11], {'temperature': .7, 'top_p': .8, 'seed': 7})):
        (text, length, logits), said = run('llama', {'prompt': np.array(prompt, np.uint32), **w, 'text': out,
                                                     'length': out, 'logits': out, **options}, *fixed)
        want, last = reference.generate(w, prompt, 16, **options)
        assert list(text[:length]) == want, (list(text), want)
        assert list(map(int, said.split())) == want[len(prompt):]
        assert (want[-1] == 79) == ('end' in options) and len(set(want)) > 1
        np.testing.assert_allclose(logits, last, atol=0.01)


if __name__ == '__main__':
    for name in sys.argv[2:]:
        globals()[name]()
