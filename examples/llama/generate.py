#!/usr/bin/env python3
"""Prints what a language model answers to a question, by llama.yaml.

    pip install tokenizers
    generate.py FOLDER QUESTION
"""
import argparse, json, os, subprocess, sys, tempfile
from tokenizers import Tokenizer

CHAT = ('<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n'
        '<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n')

args = argparse.ArgumentParser(description='Prints what a language model answers, by llama.yaml.')
args.add_argument('folder', help='what weights.py made')
args.add_argument('question')
args.add_argument('--raw', action='store_true', help='the question is a text to write on, without the frame of a chat')
args.add_argument('--room', type=int, default=256, help='tokens in all, those of the prompt too (%(default)s)')
args.add_argument('--temperature', type=float, default=0, help='0, the default, takes the likeliest token each time')
args.add_argument('--top-p', type=float, default=.9, help='of how likely tokens one is drawn (%(default)s)')
args.add_argument('--seed', type=int, default=0)
args.add_argument('--target', default='native', help='as of kaio-emit; sm_80 where there is no GPU')
args.add_argument('--device', default='auto', help='as of kaio-run; cpu is the simulator')
args = args.parse_args()

model = os.path.join(args.folder, 'model.safetensors')
tokenizer = Tokenizer.from_file(os.path.join(args.folder, 'tokenizer.json'))
with open(model, 'rb') as f:
    head = json.loads(f.read(int.from_bytes(f.read(8), 'little')))
shape = {name: t['shape'] for name, t in head.items() if name != '__metadata__'}
layers, width, heads, d = shape['wo']
dims = {'vocab': shape['embedding'][0], 'width': width, 'layers': layers, 'heads': heads, 'd': d,
        'kv': (shape['wqkv'][1] - heads) // 2, 'inner': shape['gate'][1], 'room': args.room}
prompt = tokenizer.encode(args.question if args.raw else CHAT.format(args.question)).ids

with tempfile.TemporaryDirectory() as tmp:
    with open(os.path.join(tmp, 'prompt.bin'), 'wb') as f:
        f.write(b''.join(t.to_bytes(4, 'little') for t in prompt))
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'llama.yaml')
    subprocess.run(['kaio-emit', '--target', args.target, program, '-o', os.path.join(tmp, 'llama.ptx'),
                    *(f'-D{name}={n}' for name, n in dims.items())], check=True)
    run = ['kaio-run', '-q', '-d', args.device, os.path.join(tmp, 'llama.ptx'),
           f'--weights={model}', f'prompt={tmp}/prompt.bin', f'p={len(prompt)}',
           f'temperature={args.temperature}', f'top_p={args.top_p}', f'seed={args.seed}', f'text={tmp}/text.bin',
           f'length={tmp}/length.bin', f'logits={tmp}/logits.bin']
    tokens, shown = [], ''
    with subprocess.Popen(run, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:  # a token each, as it comes
            tokens.append(int(line))
            text = tokenizer.decode(tokens)
            if not text.endswith('\ufffd'):  # the rest of a character is still to come
                print(text[len(shown):], end='', flush=True)
                shown = text
    print()
    sys.exit(process.returncode)
