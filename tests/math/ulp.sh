#!/bin/sh
# ulp.sh [-b BINDIR] [-d DEVICE] [--sample N] [NAME]...
#
# Measures the functions of the kernel language by kernels written in it: each thread compares f(x) in f32 with the
# function of f64, whose own error is below 2^-27 ulp of f32, for its share of the arguments, and each block keeps the
# largest error and where it is. Functions of one argument get every bit pattern, or N spread over all of them; those of
# two get 2^28 pairs, or N. On a GPU all of that takes a minute or two; the simulator does some 20 million a second.
#
# BINDIR is a build directory, or one that holds kaio-emit and kaio-run. Prints a line for each NAME (exp, pow, exp_half,
# fast_exp; default: all), and exits 1 if an error is above what math.def promises. An ulp is that of the exact result's
# binade, below 2^-126 (f16: 2^-14) the smallest subnormal number. Beyond the range infinity counts as the next power of
# two. A NaN for a number, a number for a NaN and a zero of the wrong sign are errors of 1e30.
#
# What is called fast_NAME is NAME under math: fast, over normal arguments and results. Its error is told in ulp and as a
# share of the bound that math.def states. It is the device's: the simulator's approximations are better than a GPU's.

export LC_ALL=C
src=${KAIO_SRCDIR:-$(dirname "$0")/../..}
def=$src/lib/lang/math.def
device=auto
sample=
while [ $# -gt 0 ]; do
    case $1 in
    -b)
        for tool in emit run; do PATH=$2/tools/kaio-$tool:$2:$PATH; done
        shift
        ;;
    -d)
        device=$2
        shift
        ;;
    --sample)
        sample=$2
        shift
        ;;
    -*)
        sed -n 's/^# \(ulp.sh .*\)/usage: \1/p' "$0" >&2
        exit 2
        ;;
    *) break ;;
    esac
    shift
done
wanted=" $* "
blocks=4096
[ "$device" != cpu ] || blocks=16

tmp=$(mktemp -d) || exit 3
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
failed=0

# Where the arguments come from: all bit patterns, or pairs made of random numbers. As in math_f32.c, a quarter of the
# pairs is of any bits, a quarter of moderate size, a quarter with x near 1, and one of whole numbers and halves.
one='f32 x = as_f32(index);'
pair='u64 r = mixed(2 * k + 1);
    u64 s = mixed(2 * k + 2);
    u32 p = u32(r);
    u32 q = u32(r >> 32);
    f32 x = as_f32(p);
    f32 y = as_f32(q);
    if ((s & 3u) == 1u) {
      x = as_f32((p & 0x807fffffu) | ((111u + ((p >> 23) & 31u)) << 23));
      y = as_f32((q & 0x807fffffu) | ((111u + ((q >> 23) & 31u)) << 23));
    } else if ((s & 3u) == 2u) {
      x = as_f32(0x3f800000u + u32(i32(p) >> (8u + q % 22u)));
      y = as_f32((q & 0x807fffffu) | ((120u + ((q >> 23) & 31u)) << 23));
    } else if ((s & 3u) == 3u) {
      x = f32(i32(p) >> (16u + u32(s >> 60))) * 0.5f;
      y = f32(i32(q) >> (16u + (u32(s >> 32) & 15u))) * 0.5f;
    }
    f64 b = f64(y);'

# The kernel that compares $call, of x and y in f32, with $want, of a and b, the same in f64, where $in holds. A result has
# $bits bits after the point and an exponent from $low to $high; $error makes an error e of them, w and g being within these. A float that is
# not negative has the order of its bits, so an error and where it is are one u64.
kernel() {
    cat <<END
kernel: ulp
math: $math
params:
  worst: out u64[blocks]
  count: u64
  step: u32
functions: |
  u64 mixed(u64 z)
  {
    z = z * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
grid: blocks
block: 256
body: |
  const f64 smallest = as_f64(u64(1023 + $low - $bits) << 52);
  const f64 top = as_f64(u64(1024 + $high) << 52);
  u64 threads = u64(blocks) * 256;
  u64 best = 0;
  for (u64 k = u64(blockIdx.x) * 256 + threadIdx.x; k < count; k += threads) {
    u32 index = u32(k) * step;
    $arguments
    f64 a = f64(x);
    f64 want = $want;
    f64 got = f64($call);
    f64 e = 1e30;
    if (isnan(want) || isnan(got)) {
      e = isnan(want) && isnan(got) ? 0.0 : e;
    } else if (abs(want) >= smallest || (as_u64(want) ^ as_u64(got)) >> 63 == 0u) {
      f64 w = clamp(want, -top, top);
      f64 g = clamp(got, -top, top);
      $error
    }
    u64 found = (u64(as_u32(f32(e))) << 32) | index;
    if ($in && found > best) best = found;
  }
  best = block_max(best);
  if (threadIdx.x == 0) worst[blockIdx.x] = best;
END
}

# in ulp
error_ulp() {
    echo "u64 exponent = clamp((as_u64(w) >> 52) & 0x7ffu, u64(1023 + $low), u64(1023 + $high));
      e = abs(g - w) * as_f64((u64(2046 + $bits) - exponent) << 52);"
}

# measure: "ERROR PLACE", the argument or the pair's number, of the kernel that the variables above describe
measure() {
    all=4294967296
    [ "$arguments" = "$one" ] || all=268435456
    count=${sample:-$all}
    # an odd step, so that the low bits vary too
    step=1
    [ "$arguments" != "$one" ] || [ "$count" = $all ] || step=$(((all / count) | 1))
    kernel >"$tmp/ulp.yaml"
    kaio-emit "$tmp/ulp.yaml" >"$tmp/ulp.ptx" &&
        kaio-run -q -d "$device" "$tmp/ulp.ptx" count="$count" step=$step blocks=$blocks worst="$tmp/worst.bin" ||
        exit 2
    od -An -v -t u4 -w8 "$tmp/worst.bin" | awk -v pair="$([ "$arguments" = "$one" ] || echo pair)" '
        function number(b,    e, m, s) {
            s = b >= 2147483648 ? -1 : 1
            b %= 2147483648
            e = int(b / 8388608)
            m = b % 8388608
            return e == 255 ? (m ? "NaN" : s < 0 ? "-inf" : "inf") : s * (e ? m + 8388608 : m) * 2 ^ ((e ? e : 1) - 150)
        }
        NR == 1 || $2 > e { e = $2; at = $1 }
        END { printf "%.4g %s\n", number(e), pair ? pair "_" at : sprintf("%.9g", number(at)) }'
}

# check NAME UNIT BOUND: measures, prints, compares
check() {
    # shellcheck disable=SC2046 # two words
    set -- "$@" $(measure)
    [ $# = 5 ] || exit 2
    verdict=
    awk "BEGIN { exit !($4 <= $3) }" || { verdict='  ABOVE THAT' && failed=1; }
    # no function that rounds is always right
    [ "$4" != 0 ] || [ "$3" = 0 ] || { verdict='  NOTHING WAS MEASURED' && failed=1; }
    printf '%-15s %9s %-10s documented %-8s at %s%s\n' "$1" "$4" "$2" "$3" "$5" "$verdict"
}

asked() {
    case $wanted in "  " | *" $1 "*) ;; *) return 1 ;; esac
}

# rows MACRO FIELDS: "NAME BOUND" of the lines of math.def
rows() {
    sed -nE "s/^$1\\(([a-z0-9_]+), $2([0-9.]+)[,)].*/\\1 \\2/p" "$def" >"$tmp/rows"
}

in=true math=default arguments=$one bits=23 low=-126 high=127
error=$(error_ulp)
rows MATH '1, '
while read -r name bound; do
    call="$name(x)" want="$name(a)"
    ! asked "$name" || check "$name" ulp "$bound"
done <"$tmp/rows"

arguments=$pair
rows MATH '2, '
while read -r name bound; do
    call="$name(x, y)" want="$name(a, b)"
    ! asked "$name" || check "$name" ulp "$bound"
done <"$tmp/rows"

arguments=$one bits=10 low=-14 high=15
error=$(error_ulp)
rows HALF ''
while read -r name bound; do
    call="f16($name(x))" want="$name(a)"
    ! asked "${name}_half" || check "${name}_half" 'ulp of f16' "$(awk "BEGIN { print 0.5 + $bound / 8192 }")"
done <"$tmp/rows"

# slope NAME: what the argument's error is multiplied by
slope() {
    case $1 in
    exp | sigmoid) echo 'abs(w)' ;;
    *) echo 1.13 ;;
    esac
}

bits=23 low=-126 high=127 math=fast
sed -nE 's/^FAST\(([a-z0-9_]+), ([^,]*), ([^,]*), ([^,]*), ([^)]*)\)/\1 \2 \3 \4 \5/p' "$def" >"$tmp/rows"
while read -r name rel abs absx arg; do
    asked "fast_$name" || continue
    case $name in
    sin | cos) limit=0x1.921fb6p2 ;;
    *) limit=0x1p127 ;;
    esac
    in="abs(x) <= ${limit}f && abs(x) >= 0x1p-126f && abs(want) >= 0x1p-126 && abs(want) < 0x1p127"
    call="$name(x)" want="$name(a)"
    error=$(error_ulp)
    ulp=$(measure) || exit 2
    error="e = abs(g - w) / ($rel * abs(w) + $abs + $absx * abs(a) + $arg * abs(a) * $(slope "$name") + 0x1p-126);"
    share=$(measure) || exit 2
    verdict=
    awk "BEGIN { exit !(${share% *} <= 1) }" || { verdict='  ABOVE THAT' && failed=1; }
    printf '%-15s %9s %-10s %s of the documented bound at %s%s\n' "fast_$name" "${ulp% *}" ulp "${share% *}" "${share#* }" \
        "$verdict"
done <"$tmp/rows"

exit $failed
