#!/usr/bin/env python3
"""stuck.py [SEED [COUNT]]: random kernels whose barriers and exchanges stand anywhere.

What kaio-emit accepts must run on the simulator without a thread that waits for ever: the analysis of what differs
between threads (lib/lang/uniform.c) lets nothing through. Prints the kernels that get stuck, and how many of each
kind there were; exit status 1 if any did, or if the emitter crashed.
"""
import random
import subprocess
import sys

UNIFORM = ["a1", "a2", "a5"]
NAMES = ["a0", "a1", "a2", "a3", "a4", "a5"]
CHANGED = ["a3", "a4", "a5"]
BLOCKS = ["64", "96", "[16, 6]", "[32, 3]", "[8, 4, 2]"]
THREADS = [
    "threadIdx.x",
    "threadIdx.y * blockDim.x + threadIdx.x",
    "(threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x",
    "blockIdx.x * blockDim.x + threadIdx.x",
]


class Maker:
    def __init__(self, rng):
        self.rng = rng
        self.loops = 0
        self.meetings = rng.randint(1, 2)

    def expr(self, depth=0):
        pick, r = self.rng.choice, self.rng.random()
        if r < 0.4 or depth > 2:
            return pick(UNIFORM if self.rng.random() < 0.6 else NAMES)
        if r < 0.5:
            return pick(["0u", "1u", "2u", "31u", "32u", "64u"])
        x = self.expr(depth + 1)
        if r < 0.58:
            return f"({x} / 32u)"
        if r < 0.64:
            return f"({x} % {pick([2, 3, 32, 64])}u)"
        if r < 0.70:
            return f"({x} >> {pick([1, 5, 6])})"
        if r < 0.74:
            return f"({x} & {pick(['31u', '~31u', '1u', '96u'])})"
        if r < 0.80:
            return f"x[{x} % 128u]"
        y = self.expr(depth + 1)
        if r < 0.87:
            return f"({self.cond(depth + 1)} ? {x} : {y})"
        return f"f({x}, {y})" if r < 0.9 else f"({x} {pick('+-*')} {y})"

    def cond(self, depth=0):
        if self.rng.random() < 0.15 and depth < 2:
            return f"{self.cond(depth + 1)} && {self.cond(depth + 1)}"
        op = self.rng.choice(["<", ">=", "<=", ">", "==", "!="])
        return f"{self.expr(depth + 1)} {op} {self.expr(depth + 1)}"

    def block(self, depth, loop):
        return "{ " + " ".join(self.stmt(depth + 1, loop) for _ in range(self.rng.randint(1, 3))) + " }"

    def together(self):
        x = self.expr(1)
        self.meetings -= 1
        return self.rng.choice([
            "__syncthreads();", "__syncwarp();", f"a3 = block_sum({x});", f"a4 = warp_max({x});",
            f"a5 = u32(__syncthreads_count({x} > 1u));", f"a3 = __shfl_sync(-1, a3, {x} % 32u);",
            f"if (threadIdx.x == 0 && threadIdx.y == 0) sh = {x}; __syncthreads(); a4 = sh; __syncthreads();",
        ])

    def stmt(self, depth, loop):
        pick, r = self.rng.choice, self.rng.random()
        if depth > 3:
            r *= 0.45
        if r < 0.20 or (r < 0.34 and not self.meetings):
            return f"{pick(CHANGED)} {pick(['=', '=', '+='])} {self.expr()};"
        if r < 0.34:
            return self.together()
        if r < 0.45:
            leave = pick(["break", "continue", "return"]) if loop else "return"
            rare = leave == "return" and self.rng.random() < 0.7
            return "a3 += 1u;" if rare else f"if ({self.cond()}) {leave};"
        if r < 0.66:
            other = " else " + self.block(depth, loop) if pick([0, 1]) else ""
            return f"if ({self.cond()}) {self.block(depth, loop)}{other}"
        self.loops += 1
        i = f"turn_{self.loops}"
        if r < 0.85:
            start, end = pick(["0u", f"{self.expr(1)} % 3u"]), pick(["3u", f"{self.expr(1)} % 4u"])
            return f"for (u32 {i} = {start}; {i} < {end}; {i}++) {self.block(depth, True)}"
        if r < 0.92:
            return f"{{ u32 {i} = 0; do {{ {i}++; {self.block(depth, True)} }} while ({i} < 3u && {self.cond()}); }}"
        leave = pick(["break;", "break;", "", f"if ({self.cond()}) break;"])
        return (f"switch ({self.expr()} % 3u) {{ case 0: {self.block(depth, loop)} {leave} "
                f"case 1: {self.block(depth, loop)} break; default: {self.block(depth, loop)} }}")

    def kernel(self):
        pick = self.rng.choice
        text = ["kernel: k", "params:", "  x: in u32[128]", "  y: out u32[n]", "grid: 2", f"block: {pick(BLOCKS)}",
                "functions: |",
                f"  u32 f(u32 p, u32 q) {{ if ({pick(['p > 3u', 'q == 2u', 'p < q'])}) return p;",
                f"    for (u32 i = 0; i < q % 3u; i++) {{ if ({pick(['p > 40u', 'q > i'])}) break; p += q; }}",
                "    return p / 32u + q; }", "body: |", "  shared u32 sh;",
                f"  u32 a0 = {pick(THREADS)}, a1 = blockIdx.x, a2 = n, a3 = 0, a4 = threadIdx.x, a5 = n;"]
        text += ["  " + self.stmt(0, False) for _ in range(self.rng.randint(1, 4))]
        return "\n".join(text + ["  y[0] = a3 + a4 + a5;", ""])


def main():
    seed, count = (int(a) for a in (sys.argv[1:] + ["1", "300"][len(sys.argv) - 1:]))
    rng = random.Random(seed)
    refused = ran = failed = 0
    for _ in range(count):
        text = Maker(rng).kernel()
        emitted = subprocess.run(["kaio-emit", "-"], input=text.encode(), capture_output=True, check=False)
        if emitted.returncode == 2 or b"comes after a return" in emitted.stderr:
            refused += 1 # or a warning says what is undefined
            continue
        run = emitted
        if emitted.returncode == 0:
            ran += 1
            run = subprocess.run(["kaio-run", "-d", "cpu", "--check=sync", "-", "n=4", "x=@arange"],
                                 input=emitted.stdout, capture_output=True, check=False)
        if run.returncode:
            failed += 1
            print(text, run.stderr.decode(), sep="\n")
    print(f"{refused} refused, {ran} ran, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
