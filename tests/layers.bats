# The architecture as a test: which module may include which.

# module: what it may include (itself aside)
layers="
base:
data:  base
ptx:   base
lang:  base data
spec:  base data lang
program: base data lang spec
lower: base data lang spec ptx
ref:   base data lang spec
run:   base data spec ptx
sim:   base data ptx run
cuda:  base data ptx run
bench: base data lang spec ptx lower ref run
"
# what a module may include of another beyond its layer, as FILE:HEADER
headers_only="
run:spec/contract.h
sim:run/device.h
sim:run/tensor_map.h
cuda:run/device.h
cuda:run/blas.h
cuda:run/sdpa.h
cuda:run/conv.h
cuda:run/tensor_map.h
"

# The folders of lib/lower, in the same form. strategy stands for what all strategies share and lies in lib/lower itself;
# the rest that lies there (lower, stage, schedule and so on) stands above all folders.
lower_layers="
pass:
mathlib:
cg:       pass mathlib
strategy: cg
map:      cg strategy
row:      cg strategy
reduce:   cg strategy
scan:     cg strategy
matmul:   cg strategy map
simt:     cg strategy map matmul
mma:      cg strategy map matmul
wgmma:    cg strategy map matmul pass
chain:    cg strategy map matmul mma wgmma
"
strategy_headers="strategy.h option.h extent.h variant.h access.h schedule.h candidates.h"

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

# Prints  FOLDER HEADER'S-FOLDER FILE  for each include of a header of lib/lower in one of its folders.
lower_includes() {
    grep -rHoE '^#include "lower/[^"]+"' lib/lower --include='*.[ch]' |
        sed -nE 's|^lib/lower/([a-z_]+)/([^:]*):#include "lower/(.*)"|\1 \3 lib/lower/\1/\2|p'
}

lower_allowed() { # FOLDER HEADER
    local other=${2%%/*}
    [ "$other" != lower.h ] || return 0 # what the tools see is seen by all
    [ "$other" = "${2}" ] && { [[ " $strategy_headers " == *" $2 "* ]] || return 1; other=strategy; }
    [ "$1" = "$other" ] || grep -qE "^$1: .*\b$other\b" <<<"$lower_layers"
}

@test "a folder of lib/lower includes only from the folders before it" {
    wrong=0
    while read -r folder header file; do
        lower_allowed "$folder" "$header" || { echo "$file includes $header"; wrong=1; }
    done < <(lower_includes)
    [ "$(lower_includes | wc -l)" -gt 60 ]
    [ $wrong = 0 ]
}

@test "every folder of lib/lower has its place in the table, which catches a wrong include" {
    for dir in lib/lower/*/; do
        folder=$(basename "$dir")
        grep -q "^$folder:" <<<"$lower_layers" || { echo "$folder"; false; }
    done
    ! lower_allowed cg strategy.h || false
    ! lower_allowed pass cg/cg.h || false
    ! lower_allowed reduce row/row.h || false
    ! lower_allowed row stage.h || false
    lower_allowed wgmma matmul/matmul.h
    lower_allowed row strategy.h
}

# What kernels that are no products of matrices use too: these files see the code generator and each other alone.
alone="mma/fragment mma/products wgmma/box wgmma/products wgmma/ring wgmma/tma"

@test "what stands alone in lib/lower knows no matmul" {
    wrong=0
    for name in $alone; do
        for file in lib/lower/"$name".[ch]; do
            while read -r header; do
                case " $alone cg/cg " in
                *" ${header%.h} "*) ;;
                *) echo "$file includes $header"; wrong=1 ;;
                esac
            done < <(sed -nE 's|^#include "lower/(.*)"|\1|p' "$file")
        done
    done
    [ $wrong = 0 ]
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

# Where the library prints, exits or aborts, but for base/cli (the tools' part) and what it says of its own mistakes. stdin: lines of
# grep.
prints() {
    grep -E '\b(printf|puts|putchar|perror|exit|_exit|abort)\(|\b(stdout|stderr)\b' |
        grep -vE '^lib/base/(cli|cli_print|progress|internal)\.c:|: *fflush\(stdout\);' |
        grep -vE '^[^:]*:[0-9]+: *(/?\*)|/\*.*\b(printf|print|stdout|stderr|abort)\b.*\*/|"[^"]*\b(stdout|stderr|printf\(\))[^"]*"' || true
}

@test "the library neither prints nor exits, but for internal_error()" {
    found=$(grep -rnE '.' lib --include='*.c' | prints)
    echo "$found"
    [ -z "$found" ]
    for line in 'abort();' 'fputs(text, stderr);' 'printf("%d", n);' 'exit(1);'; do
        [ -n "$(prints <<<"lib/ptx/build.c:1:    $line")" ]
        [ -z "$(prints <<<"lib/base/internal.c:1:    $line")" ]
    done
}

@test "an internal error says where it is and what should have been true" {
    : "${CC:=cc}"
    command -v "$CC" >/dev/null || skip "no C compiler"
    cd "$BATS_TEST_TMPDIR"
    printf '#include "base/internal.h"\nint main(void)\n{\n    INTERNAL_ERROR("%%d is %%s", 3, "odd");\n}\n' >lib_main.c
    : >config.h
    $CC -std=c11 -D_GNU_SOURCE -I. -I"$KAIO_SRCDIR/lib" -o main lib_main.c "$KAIO_SRCDIR/lib/base/internal.c"
    run bash -c './main 2>&1; echo status $?'
    [[ $output == *"kaio: internal error: lib_main.c:4: 3 is odd"*"status 134" ]]
}

# Prints FILE:LINE of each place where a decoder looks at text: an instruction is decoded from op, mod, type and shape, so that
# a word renamed in isa.def is an error of the compiler.
reads_text() { # FILE ...
    grep -nE '\b(strstr|strchr|strcmp|strncmp|strtoul|sscanf|ptx_op_name|ptx_mod_text|ptx_print_inst)\(|= *dec_mnemonic\(' "$@" |
        grep -vE '^[^:]*:[0-9]+: *(/\*|\*)'
}

@test "the simulator decodes instructions, not their text" {
    # (dec_mnemonic(), for messages, is in decode.c)
    found=$(reads_text lib/sim/decode*.c lib/sim/forms.c | grep -v 'ptx_print_inst(dc->in->func, dc->inst, &b);' || true)
    echo "$found"
    [ -z "$found" ]
}

@test "... and a look at their text is seen" {
    printf '    if (strstr(name, ".relu"))\n' >"$BATS_TEST_TMPDIR/decode_x.c"
    printf '    const char *name = dec_mnemonic(dc);\n' >"$BATS_TEST_TMPDIR/decode_y.c"
    [ "$(reads_text "$BATS_TEST_TMPDIR"/decode_?.c | wc -l)" = 2 ]
}

# For awk: prints  FILE:LINE  of each default among cases of element types. The sources are formatted: the cases and the end of
# a switch stand at its own column.
default_over_types='
    { match($0, /^ */); at = RLENGTH }
    /^ *switch \(/ { types[at] = line[at] = 0 }
    /^ *case DT_/ { types[at] = 1 }
    /^ *default:/ { line[at] = FNR }
    /^ *}/ { if (types[at] && line[at]) print FILENAME ":" line[at]; types[at] = line[at] = 0 }'

@test "a switch over element types has no default, so that the compiler names what a new type misses" {
    cat >"$BATS_TEST_TMPDIR/wrong.c" <<'END'
    switch (t) {
    case DT_F64:
        switch (n) {
        case 1: return 2;
        default: break;
        }
        return 1;
    default: return 0;
    }
    switch (n) {
    case 1: return 2;
    default: break;
    }
END
    [ "$(awk "$default_over_types" "$BATS_TEST_TMPDIR/wrong.c")" = "$BATS_TEST_TMPDIR/wrong.c:8" ]
    found=$(find lib tools -name '*.[ch]' | sort | xargs awk "$default_over_types")
    echo "$found"
    [ -z "$found" ]
}

@test "what a launch computes is built as trees, not glued of texts" {
    ! grep -rnE '\blang_parse_expr\(' lib/lower || false
    # and nothing is printed only to be part of another text
    ! grep -rnE 'printf\([^;]*"[^"]*(ceil_div|clamp|max|min)\(%' lib/lower --include='*.c' || false
    grep -rqE '\blx_ceil_div_int\(' lib/lower
}
