#!/usr/bin/env python3
"""What llama.yaml computes, in float64 by numpy alone: the tokens that follow a prompt's.

    reference.py FOLDER ROOM TOKEN ...      prints the prompt's tokens and those that follow, the likeliest each
    reference.py --random FOLDER            makes FOLDER/model.safetensors, a tiny model of random weights
"""
import json, os, sys
import numpy as np


def load(path):
    with open(path, 'rb') as f:
        head = json.loads(f.read(int.from_bytes(f.read(8), 'little')))
        data = f.read()
    types = {'F16': np.float16, 'F32': np.float32}
    return {name: np.frombuffer(data[slice(*t['data_offsets'])], types[t['dtype']]).reshape(t['shape'])
            for name, t in head.items() if name != '__metadata__'}


def save(path, tensors):
    head, at = {}, 0
    for name, t in tensors.items():
        kind = {'float16': 'F16', 'float32': 'F32'}[t.dtype.name]
        head[name] = {'dtype': kind, 'shape': t.shape, 'data_offsets': [at, at + t.nbytes]}
        at += t.nbytes
    text = json.dumps(head).encode()
    text += b' ' * (-len(text) % 8)
    with open(path, 'wb') as f:
        f.write(len(text).to_bytes(8, 'little') + text)
        for t in tensors.values():
            f.write(np.ascontiguousarray(t).tobytes())


def random(vocab=100, width=64, layers=2, heads=2, kv=1, d=32, inner=96):
    rng = np.random.default_rng(1)
    def matrix(*shape, fan=width):
        return (rng.standard_normal(shape) / np.sqrt(fan)).astype(np.float16)
    return {'norm': rng.uniform(.5, 1.5, (2 * layers + 1, width)).astype(np.float32),
            'embedding': matrix(vocab, width, fan=100),
            'wqkv': matrix(layers, heads + 2 * kv, d, width),
            'wo': matrix(layers, width, heads, d, fan=heads * d),
            'gate': matrix(layers, inner, width), 'up': matrix(layers, inner, width),
            'down': matrix(layers, width, inner, fan=inner)}


class Model:
    def __init__(self, w):
        self.w = w
        self.layers, self.width, self.heads, self.d = w['wo'].shape
        self.kv = (w['wqkv'].shape[1] - self.heads) // 2
        self.cache = [([], []) for _ in range(self.layers)]

    def norm(self, x, i):
        return x / np.sqrt((x * x).mean() + 1e-5) * self.w['norm'][i]

    def turn(self, x, place):
        angle = place * 1e5 ** (-np.arange(0, self.d, 2) / self.d)
        c, s, a, b = np.cos(angle), np.sin(angle), x[:, 0::2], x[:, 1::2]
        return np.stack([a * c - b * s, b * c + a * s], 2).reshape(x.shape)

    def step(self, token):
        """Takes in one token more and returns the logits of the next."""
        x = self.w['embedding'][token].astype(float)
        for l, (keys, values) in enumerate(self.cache):
            w = {name: t[l].astype(float) for name, t in self.w.items() if name not in ('norm', 'embedding')}
            q, k, v = np.split(w['wqkv'] @ self.norm(x, 2 * l), [self.heads, self.heads + self.kv])
            q, k = self.turn(q, len(keys)), self.turn(k, len(keys))
            keys.append(k), values.append(v)
            group = np.arange(self.heads) // (self.heads // self.kv)
            s = np.einsum('hd,jhd->hj', q, np.array(keys)[:, group]) * self.d ** -.5
            p = np.exp(s - s.max(1, keepdims=True))
            o = np.einsum('hj,jhd->hd', p / p.sum(1, keepdims=True), np.array(values)[:, group])
            x = x + np.einsum('hd,chd->c', o, w['wo'])
            h = self.norm(x, 2 * l + 1)
            g = w['gate'] @ h
            x = x + w['down'] @ (g / (1 + np.exp(-g)) * (w['up'] @ h))
        return self.w['embedding'] @ self.norm(x, -1)


def uniform(seed, counter, stream):
    """kaio's random numbers: Philox4x32-10 (Salmon, Moraes, Dror and Shaw, SC 2011)."""
    low, c = 0xffffffff, [counter & 0xffffffff, counter >> 32, stream & 0xffffffff, stream >> 32]
    for i in range(10):
        a, b = 0xd2511f53 * c[0], 0xcd9e8d57 * c[2]
        key = (seed + i * 0x9e3779b9) & low, ((seed >> 32) + i * 0xbb67ae85) & low
        c = [b >> 32 ^ c[1] ^ key[0], b & low, a >> 32 ^ c[3] ^ key[1], a & low]
    return (c[0] >> 8) / 2 ** 24


def choose(logits, at, temperature, top_p, seed):
    if temperature == 0:
        return int(logits.argmax())
    e = np.exp((logits - logits.max()) / temperature)
    order = np.argsort(-e)
    some = order[:np.searchsorted(np.cumsum(e[order]), top_p * e.sum()) + 1]
    return int(max(some, key=lambda w: e[w] / -np.log(max(uniform(seed, int(w), at), 2 ** -25))))


def generate(w, prompt, room, end=2, temperature=0, top_p=.9, seed=0):
    model, text = Model(w), list(prompt)
    for token in prompt:
        logits = model.step(token)
    while len(text) < room:
        text.append(choose(logits, len(text) - 1, temperature, top_p, seed))
        if text[-1] == end or len(text) == room:
            break
        logits = model.step(text[-1])
    return text, logits


if __name__ == '__main__':
    if sys.argv[1] == '--random':
        os.makedirs(sys.argv[2], exist_ok=True)
        save(os.path.join(sys.argv[2], 'model.safetensors'), random())
    else:
        folder, room, *prompt = sys.argv[1:]
        print(*generate(load(os.path.join(folder, 'model.safetensors')), [int(t) for t in prompt], int(room))[0])
