#!/usr/bin/env python3
"""Makes of a Llama's GGUF file what llama.yaml reads: FOLDER/model.safetensors, and FOLDER/tokenizer.json.

    pip install numpy gguf
    weights.py MODEL.gguf FOLDER
"""
import json, os, sys
import numpy as np
from gguf import GGUFReader, dequantize
from reference import save

path, folder = sys.argv[1:]
gguf = GGUFReader(path)
field = {name: f.contents() for name, f in gguf.fields.items()}
assert field['general.architecture'] == 'llama', 'another architecture'
assert field['llama.rope.freq_base'] == 1e5 and abs(field['llama.attention.layer_norm_rms_epsilon'] - 1e-5) < 1e-9
layers, width = field['llama.block_count'], field['llama.embedding_length']
heads, kv = field['llama.attention.head_count'], field['llama.attention.head_count_kv']
d = width // heads
tensor = {t.name: t for t in gguf.tensors}


def matrix(name):
    t = tensor[name + '.weight']
    return dequantize(t.data, t.tensor_type)


def stacked(name, *shape):
    return np.stack([matrix(f'blk.{l}.{name}').astype(np.float16) for l in range(layers)]).reshape(layers, *shape)


assert 'output.weight' not in tensor, 'the output has a matrix of its own'
norms = [matrix(f'blk.{l}.{kind}_norm') for l in range(layers) for kind in ('attn', 'ffn')] + [matrix('output_norm')]
os.makedirs(folder, exist_ok=True)
save(os.path.join(folder, 'model.safetensors'), {
    'norm': np.stack(norms).astype(np.float32),
    'embedding': matrix('token_embd').astype(np.float16),
    'wqkv': np.concatenate([stacked('attn_q', heads, d, width), stacked('attn_k', kv, d, width),
                            stacked('attn_v', kv, d, width)], axis=1),
    'wo': stacked('attn_output', width, heads, d),
    'gate': stacked('ffn_gate', -1, width), 'up': stacked('ffn_up', -1, width),
    'down': stacked('ffn_down', width, -1)})

# The tokens as the tokenizers package reads them; pieces are bytes, digits stand alone.
tokens, kinds = field['tokenizer.ggml.tokens'], field['tokenizer.ggml.token_type']
assert (field['tokenizer.ggml.model'], field['tokenizer.ggml.pre']) == ('gpt2', 'smollm'), 'another tokenizer'
special = [{'id': i, 'content': t, 'single_word': False, 'lstrip': False, 'rstrip': False, 'normalized': False,
            'special': True} for i, (t, kind) in enumerate(zip(tokens, kinds)) if kind == 3]
pieces = {'type': 'ByteLevel', 'add_prefix_space': False, 'trim_offsets': True, 'use_regex': True}
with open(os.path.join(folder, 'tokenizer.json'), 'w') as f:
    json.dump({'version': '1.0', 'added_tokens': special,
               'pre_tokenizer': {'type': 'Sequence',
                                 'pretokenizers': [{'type': 'Digits', 'individual_digits': True}, pieces]},
               'decoder': pieces,
               'model': {'type': 'BPE', 'vocab': {t: i for i, t in enumerate(tokens)},
                         'merges': [m.split(' ') for m in field['tokenizer.ggml.merges']]}}, f)
