#!/usr/bin/env python3
"""Random kernels of families: generate.py FAMILY SEED COUNT [FIRST] prints COUNT specs with their cases, from FIRST on.

FAMILY is convolution, prefix, norm, window, loss, product or activations; without arguments they are listed. What is drawn of
each: its form, the axes, whether an extent is a number or a dimension, the order of every tensor's dimensions, types, and what is
done elementwise before and after. Sizes are small and odd. Kernel NUMBER of a seed is the same whatever COUNT is.
"""
import random
import sys

sys.dont_write_bytecode = True  # the sources stay as they are

from convolution import convolution
from prefix import prefix
from product import activations, product
from rows import loss, norm
from window import window

FAMILIES = {f.__name__: f for f in [convolution, prefix, norm, window, loss, product, activations]}


def main():
    if len(sys.argv) == 1:
        print('\n'.join(FAMILIES))
        return
    if len(sys.argv) not in (4, 5) or sys.argv[1] not in FAMILIES:
        sys.exit(f'usage: generate.py {"|".join(FAMILIES)} SEED COUNT [FIRST]')
    family, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    first = int(sys.argv[4]) if len(sys.argv) > 4 else 0
    for number in range(first, first + count):
        print('---')
        print(FAMILIES[family](random.Random(f'{family} {seed} {number}'), f'{family}{seed}_{number}').text())


if __name__ == '__main__':
    main()
