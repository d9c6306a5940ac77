#!/bin/bash
# atomics.sh [cluster] [bf16]: every form of an atomic operation, and of an ordered load and store, that a body can
# ask for: one kernel for each operation and type, in it all orders and scopes, on a buffer and in shared memory. Each kernel
# has the exact result as its reference. "cluster" and "bf16" add what sm_90 has.
set -eu

scopes="block gpu system"
adds="u32 i32 u64 i64 f32 f64 f16"
for more; do
    case $more in
    cluster) scopes="block cluster gpu system" ;;
    bf16) adds="$adds bf16" ;;
    *) exit 2 ;;
    esac
done

# kernel NAME TYPE: of 64 threads, each with an element of its own in every row of a and b; old is what it found in a,
# in b nobody looks. With $meet the first r + 1 threads meet in c[r].
kernel() {
    printf -- '---\nkernel: %s\nparams:\n  v: in %s[64]\n' "$1" "$2"
    printf '  a: inout %s[rows, 64]\n  b: inout %s[rows, 64]\n  old: out %s[rows, 64]\n' "$2" "$2" "$2"
    [ -z "${meet-}" ] || printf '  c: inout %s[rows]\n' "$2"
    printf 'require: [rows == %s]\ngrid: 1\nblock: 64\nbody: |\n' "$rows"
    printf '  u32 t = threadIdx.x;\n  shared %s s[64];\n' "$2"
    [ -z "${meet-}" ] || printf '  shared %s met;\n' "$2"
}

# call FUNCTION PLACE OPERANDS: where @ stands for the place
call() {
    printf '%s(&%s, %s, order = %s, scope = %s);\n' "$1" "$2" "${3//@/$2}" "$order" "$scope"
}

# forms FUNCTION OPERANDS: a row for each order and scope, first on the buffer, then in shared memory
forms() {
    local row=0
    for order in relaxed acquire release acq_rel seq_cst; do
        for scope in $scopes; do
            printf '  old[%d, t] = ' $row && call "$1" "a[$row, t]" "$2"
            printf '  ' && call "$1" "b[$row, t]" "$2"
            [ -z "${meet-}" ] || { printf '  if (t <= %d) ' $row && call "$1" "c[$row]" "$2"; }
            row=$((row + 1))
            printf '  s[t] = a[%d, t];\n  old[%d, t] = ' $row $row && call "$1" "s[t]" "$2"
            printf '  a[%d, t] = s[t];\n  s[t] = b[%d, t];\n  ' $row $row && call "$1" "s[t]" "$2"
            printf '  b[%d, t] = s[t];\n' $row
            if [ -n "${meet-}" ]; then
                printf '  if (t == 0) met = c[%d];\n  __syncthreads();\n' $row
                printf '  if (t <= %d) ' $row && call "$1" met "$2"
                printf '  __syncthreads();\n  if (t == 0) c[%d] = met;\n  __syncthreads();\n' $row
            fi
            row=$((row + 1))
        done
    done
}

# reference NEW [MET]: what a[r, t] and c[r] become
reference() {
    printf 'reference: |\n  old[r, t] = a[r, t]\n  a[r, t] = %s\n' "$1"
    printf '  b[r, t] = %s\n' "${1//a\[/b[}"
    [ $# = 1 ] || printf '  c[r] = %s\n' "$2"
    printf 'cases:\n  forms: {rows: %d}\n' "$rows"
}

rows=$((10 * $(wc -w <<<"$scopes")))

for type in $adds; do
    for op in add sub; do
        sign=$([ $op = add ] && echo + || echo -)
        meet=yes
        case $type in
        f*|bf16) meet= ;; # the order of the threads would matter
        esac
        kernel "atomic_${op}_$type" "$type"
        forms atomic_$op "v[t]"
        if [ -n "$meet" ]; then
            reference "$type(a[r, t] $sign v[t])" "$type(c[r] $sign sum[t < r + 1](v[t]))"
        else
            reference "$type(a[r, t] $sign v[t])"
        fi
    done
done

# pairs: thread t has the elements 2 t and 2 t + 1
for type in f16 bf16; do
    case " $adds " in
    *" $type "*) ;;
    *) continue ;;
    esac
    for op in add sub exch; do
        case $op in
        add) new="$type(a[r, t, k] + v[t, k])" ;;
        sub) new="$type(a[r, t, k] - v[t, k])" ;;
        exch) new="v[t, k]" ;;
        esac
        printf -- '---\nkernel: atomic_%s_%sx2\nparams:\n' $op $type
        for name in 'v: in' 'a: inout' 'b: inout' 'old: out'; do
            printf '  %s %s[%s64, 2]\n' "$name" $type "$([ "$name" = 'v: in' ] || echo 'rows, ')"
        done
        printf 'require: [rows == %s]\ngrid: 1\nblock: 64\nbody: |\n' $rows
        printf '  u32 t = threadIdx.x;\n  shared %s s[64, 2];\n  %sx2 x = load2(&v[t, 0]), was;\n' $type $type
        row=0
        for order in relaxed acquire release acq_rel seq_cst; do
            for scope in $scopes; do
                printf '  was = ' && call atomic_$op "a[$row, t, 0]" x
                printf '  store2(&old[%d, t, 0], was);\n  ' $row && call atomic_$op "b[$row, t, 0]" x
                row=$((row + 1))
                printf '  store2(&s[t, 0], load2(&a[%d, t, 0]));\n  was = ' $row && call atomic_$op "s[t, 0]" x
                printf '  store2(&old[%d, t, 0], was);\n  store2(&a[%d, t, 0], load2(&s[t, 0]));\n' $row $row
                printf '  store2(&s[t, 0], load2(&b[%d, t, 0]));\n  ' $row && call atomic_$op "s[t, 0]" x
                printf '  store2(&b[%d, t, 0], load2(&s[t, 0]));\n' $row
                row=$((row + 1))
            done
        done
        printf 'reference: |\n  old[r, t, k] = a[r, t, k]\n  a[r, t, k] = %s\n  b[r, t, k] = %s\n' \
            "$new" "${new//a\[/b[}"
        printf 'cases:\n  forms: {rows: %d}\n' $rows
    done
done

meet=yes
for type in u32 i32 u64 i64 f32 f64; do
    for op in min max; do
        kernel atomic_${op}_$type $type
        forms atomic_$op "v[t]"
        reference "$op(a[r, t], v[t])" "$op(c[r], ${op}[t < r + 1](v[t]))"
    done
done
for type in u32 i32 u64 i64; do
    for op in '&and' '|or' '^xor'; do
        meet=
        kernel "atomic_${op#?}_$type" $type
        forms "atomic_${op#?}" "v[t]"
        reference "a[r, t] ${op%"${op#?}"} v[t]"
    done
done

meet=
for type in u32 i32 u64 i64 f32 f64; do
    kernel atomic_exch_$type $type
    forms atomic_exch "v[t]"
    reference "v[t]"
done
for type in u32 i32 u64 i64 f32 f64 u16 i16 f16 bf16; do
    kernel atomic_cas_$type $type # every other thread expects what is not there
    forms atomic_cas "$type(t % 2 == 0 ? @ : @ == 0 ? 1 : 0), v[t]"
    reference "t % 2 == 0 ? v[t] : a[r, t]"
done
kernel atomic_inc_u32 u32
forms atomic_inc "v[t]"
reference "a[r, t] >= v[t] ? 0u : a[r, t] + 1u"
kernel atomic_dec_u32 u32
forms atomic_dec "v[t]"
reference "a[r, t] == 0u || a[r, t] > v[t] ? v[t] : a[r, t] - 1u"

# load() and store(): y is what was loaded, z what was stored, by row
for type in u8 i8 u16 i16 u32 i32 u64 i64 f16 bf16 f32 f64 bool; do
    printf -- '---\nkernel: ordered_%s\nparams:\n  x: in %s[64]\n  y: out %s[loads, 64]\n  z: out %s[loads, 64]\n' $type $type $type $type
    rows=$((6 * $(wc -w <<<"$scopes")))
    printf 'require: [loads == %d]\ngrid: 1\nblock: 64\nbody: |\n  u32 t = threadIdx.x;\n  shared %s s[64];\n' $rows $type
    row=0
    for order in relaxed acquire seq_cst; do
        for scope in $scopes; do
            last=${order/acquire/release}
            printf '  store(&s[t], x[t], order = %s, scope = %s);\n' "$last" "$scope"
            printf '  y[%d, t] = load(&s[t], order = %s, scope = %s);\n' $row $order "$scope"
            printf '  store(&z[%d, t], x[t], order = %s, scope = %s);\n  z[%d, t] = s[t];\n' $row "$last" "$scope" $((row + 1))
            row=$((row + 1))
            printf '  y[%d, t] = load(&z[%d, t], order = %s, scope = %s);\n' $row $((row - 1)) $order "$scope"
            row=$((row + 1))
        done
    done
    printf 'reference: |\n  y[r, t] = x[t]\n  z[r, t] = x[t]\ncases:\n  forms: {loads: %d}\n' $rows
done
