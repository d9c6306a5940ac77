# The architecture as a test: which module may include which.

# module: what it may include (itself aside)
layers="
base:
data:  base
ptx:   base
lang:  base data
spec:  base data lang
lower: base data lang spec ptx
ref:   base data lang spec lower
run:   base data spec ptx
sim:   base data ptx run
cuda:  base data ptx run
bench: base data lang spec ptx lower ref run
"
# what a module may include of another beyond its layer, as FILE:HEADER
headers_only="
ref:lower/math.def
run:spec/contract.h
sim:run/device.h
sim:run/tensor_map.h
cuda:run/device.h
cuda:run/blas.h
cuda:run/tensor_map.h
"

setup() {
    cd "$KAIO_SRCDIR"
}

# Prints  MODULE HEADER FILE  for each include of a project header in lib/MODULE. What lies in lib/ itself stands above
# all modules.
includes() {
    grep -rHoE '^#include "[a-z_]+/[^"]+"' lib --include='*.[ch]' --include='*.def' |
        sed -E 's|^lib/([a-z_]+)/([^:]*):#include "(.*)"|\1 \3 lib/\1/\2|' |
        grep -v '^lib/'
}

allowed() { # MODULE HEADER
    local other=${2%%/*}
    [ "$1" = "$other" ] && return 0
    grep -qE "^$1: .*\b$other\b" <<<"$layers" || return 1
    # a layer that is open for one header only
    ! grep -q "^$1:$other/" <<<"$headers_only" || grep -qx "$1:$2" <<<"$headers_only"
}

@test "a module includes only from the modules before it" {
    wrong=0
    while read -r module header file; do
        allowed "$module" "$header" || { echo "$file includes $header"; wrong=1; }
    done < <(includes)
    [ "$(includes | wc -l)" -gt 20 ]
    [ $wrong = 0 ]
}

@test "every module of lib/ has its place in the table" {
    for dir in lib/*/; do
        module=$(basename "$dir")
        grep -q "^$module:" <<<"$layers" || { echo "$module"; false; }
    done
}

@test "the table itself catches a wrong include" {
    ! allowed base data/dtype.h || false
    ! allowed ptx spec/spec.h || false
    ! allowed sim run/bind.h || false
    allowed sim run/device.h
    allowed lower ptx/ptx.h
}

@test "what prints or exits is included by the tools only" {
    found=$(includes | grep -E ' base/(cli|cli_print|progress)\.h ' | grep -v '^base ' || true)
    echo "$found"
    [ -z "$found" ]
}

@test "only lib/spec knows libyaml, only lib/cuda the driver" {
    found=$(grep -rlE '#include *<yaml\.h>' lib tools --include='*.[ch]' | grep -v '^lib/spec/' || true)
    echo "$found"
    [ -z "$found" ]
    found=$(grep -rlE '#include *<dlfcn\.h>' lib tools --include='*.[ch]' | grep -v '^lib/cuda/' || true)
    echo "$found"
    [ -z "$found" ]
}

@test "config.h comes first in every source" {
    wrong=0
    while read -r file; do
        [ "$(grep -m1 '^#include' "$file")" = '#include <config.h>' ] || { echo "$file"; wrong=1; }
    done < <(find lib tools -name '*.c')
    [ $wrong = 0 ]
}

@test "every header compiles alone" {
    : "${CC:=cc}"
    command -v "$CC" >/dev/null || skip "no C compiler"
    wrong=0
    while read -r header; do
        echo "#include \"${header#lib/}\"" |
            $CC -std=c11 -D_GNU_SOURCE -fsyntax-only -Ilib -I"$KAIO_BUILDDIR" -x c - || wrong=1
    done < <(find lib -name '*.h' -not -name '*.k.h')
    [ $wrong = 0 ]
}

@test "the library neither prints nor exits" {
    found=$(grep -nE '\b(printf|puts|putchar|perror|exit|_exit)\(' -r lib --include='*.c' |
        grep -vE '^lib/base/(cli|cli_print|progress)\.c:' | grep -vE '^[^:]*:[0-9]+: *(/\*|\*)' || true)
    echo "$found"
    [ -z "$found" ]
}
