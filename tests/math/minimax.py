"""Minimax polynomials with coefficients on the grid of a floating-point format.

fit(f, a, b, powers, weight, formats, fixed) finds c so that max |w(x) (sum c_i x^p_i - f(x))| over
[a, b] is least.  Coefficients are rounded one by one, lowest power first, and after each rounding the
others are fitted again, which recovers most of what plain rounding would lose.
"""
import numpy as np
from mpmath import mp, mpf, cos, pi, frexp, ldexp, nint
from scipy.optimize import linprog

mp.dps = 60


def round_to(x, bits):
    """x rounded to `bits` significant bits."""
    if x == 0:
        return mpf(0)
    m, e = frexp(x)
    return ldexp(nint(ldexp(m, bits)), e - bits)


def chebyshev(a, b, powers):
    """x^p0 T_j(y), y = x^step mapped to -1..1, spans the same as `powers` (p0, p0 + step, ...) but is
    far better conditioned.  Returns the basis at x, and the map of coefficients to powers."""
    n = len(powers)
    p0 = powers[0]
    step = powers[1] - p0 if n > 1 else 1
    assert powers == [p0 + step * j for j in range(n)]
    ends = [a**step, b**step]
    lo, hi = min(ends), max(ends)
    if step % 2 == 0 and a < 0 < b:
        lo = mpf(0)
    m, k = 2 / (hi - lo), -(hi + lo) / (hi - lo)  # y = m x^step + k

    def basis(x):
        y = m * x**step + k
        t = [mpf(1), y]
        while len(t) < n:
            t.append(2 * y * t[-1] - t[-2])
        return [x**p0 * v for v in t[:n]]

    def times_y(c):
        out = [k * v for v in c] + [mpf(0)]
        for i, v in enumerate(c):
            out[i + 1] += m * v
        return out

    def to_powers(c):
        t = [[mpf(1)], [k, m]]
        while len(t) < n:
            nxt = [2 * v for v in times_y(t[-1])]
            for i, v in enumerate(t[-2]):
                nxt[i] -= v
            t.append(nxt)
        out = [mpf(0)] * n
        for cj, tj in zip(c, t):
            for i, v in enumerate(tj):
                out[i] += cj * v
        return out

    return basis, to_powers


def minimax(f, a, b, powers, weight):
    """The weighted minimax problem on Chebyshev points as a linear program, refined.

    A double-precision LP is good to about 1e-6 of its level only, so each round fits what the last left
    over, scaled up.  Unlike Remez' exchange this does not mind a basis that vanishes inside [a, b].
    """
    n = len(powers)
    a, b = mpf(a), mpf(b)
    count = max(30 * n, 200)
    pts = [(a + b) / 2 - (b - a) / 2 * cos(pi * (i + mpf(1) / 3) / count) for i in range(count)]
    w = [weight(x) for x in pts]
    basis, to_powers = chebyshev(a, b, powers)
    values = [basis(x) for x in pts]
    unit = max(abs(wi * v) for wi, vs in zip(w, values) for v in vs)
    rows = np.array([[float(wi * v / unit) for v in vs] for wi, vs in zip(w, values)])
    one = np.ones((count, 1))
    left = [f(x) for x in pts]
    c = [mpf(0)] * n
    level = None
    for _ in range(12):
        scale = max(abs(wi * l) for wi, l in zip(w, left))
        if level is not None and scale > level * mpf('0.9999'):
            break
        level = scale
        rhs = np.array([float(wi * l / scale) for wi, l in zip(w, left)])
        res = linprog(np.r_[np.zeros(n), 1.0],
                      A_ub=np.vstack([np.hstack([rows, -one]), np.hstack([-rows, -one])]),
                      b_ub=np.r_[rhs, -rhs], bounds=[(None, None)] * n + [(0, None)], method='highs')
        if res.status != 0:
            break
        d = [mpf(float(v)) * scale / unit for v in res.x[:n]]
        c = [u + v for u, v in zip(c, d)]
        left = [l - sum(dj * bj for dj, bj in zip(d, values[i])) for i, l in enumerate(left)]
    err = max(abs(wi * l) for wi, l in zip(w, left))
    return to_powers(c), err


def fit(f, a, b, powers, weight=None, bits=24, fixed=None, first_bits=None):
    """Coefficients for `powers` (a dict power -> value), and the final weighted error.

    fixed: {power: value} given in advance; first_bits: {power: bits} for coefficients that are to be
    shorter or longer than `bits`.
    """
    weight = weight or (lambda x: 1 / abs(f(x)))
    known = {p: mpf(v) for p, v in (fixed or {}).items()}
    todo = [p for p in powers if p not in known]
    cache = {}

    def rest(x):
        if x not in cache:
            cache[x] = f(x)
        return cache[x] - sum(v * x**p for p, v in known.items())

    wc = {}

    def wt(x):
        if x not in wc:
            wc[x] = weight(x)
        return wc[x]

    err = None
    first = None
    while todo:
        c, err = minimax(rest, a, b, todo, wt)
        if first is None:
            first = err
        p = todo.pop(0)
        known[p] = round_to(c[0], (first_bits or {}).get(p, bits))
    n = 1000
    final = max(abs(wt(x) * rest(x)) for x in
                (mpf(a) + (mpf(b) - mpf(a)) * (i + mpf(1) / 7) / n for i in range(n)))
    return known, first, final


def fit_quotient(f, a, b, m, n):
    """P of degree m and Q of degree n with Q(0) = 1 such that P/Q is near f on [a, b] relatively: linear programs
    in the error's numerator, each weighted by the last one's Q. In double precision: good to 2^-30 or so."""
    a, b = mpf(a), mpf(b)
    count = 600
    pts = [(a + b) / 2 - (b - a) / 2 * cos(pi * (i + mpf(1) / 3) / count) for i in range(count)]
    want = np.array([float(f(x)) for x in pts])
    u = np.array([float(x / b) for x in pts])
    w = np.ones(count)
    one = np.ones((count, 1))
    best = None
    for _ in range(12):
        rows = np.column_stack([u**j / (want * w) for j in range(m + 1)] +
                               [-u**j / w for j in range(1, n + 1)])
        res = linprog(np.r_[np.zeros(m + 1 + n), 1.0],
                      A_ub=np.vstack([np.hstack([rows, -one]), np.hstack([-rows, -one])]),
                      b_ub=np.r_[1 / w, -1 / w], bounds=[(None, None)] * (m + 1 + n) + [(0, None)],
                      method='highs')
        p = res.x[:m + 1]
        q = np.r_[1.0, res.x[m + 1:-1]]
        bottom = sum(c * u**j for j, c in enumerate(q))
        err = np.max(np.abs(sum(c * u**j for j, c in enumerate(p)) / (bottom * want) - 1))
        if best is None or err < best[2]:
            best = [mpf(c) / b**j for j, c in enumerate(p)], [mpf(c) / b**j for j, c in enumerate(q)], err
        w = np.abs(bottom)
    return best


def hexf(v, suffix=''):
    """A C hexadecimal literal for v, exactly."""
    if v == 0:
        return '0.0' + suffix
    s = '-' if v < 0 else ''
    m, e = frexp(abs(v))
    m, e = m * 2, e - 1
    digits = ''
    frac = m - 1
    while frac != 0:
        frac *= 16
        d = int(frac)
        digits += '%x' % d
        frac -= d
    return '%s0x1%sp%d%s' % (s, '.' + digits if digits else '', e, suffix)


def show(name, res, suffix='f'):
    known, first, final = res
    l2 = lambda v: '2^%.2f' % float(mp.log(v, 2)) if v else '0'
    print('%s: minimax %s, rounded %s' % (name, l2(first) if first else '-', l2(final)))
    for p in sorted(known):
        print('    x^%-2d %s' % (p, hexf(known[p], suffix)))
