# What the tests of products by tensor cores share: load products

setup() {
    cd "$BATS_TEST_TMPDIR"
    specs=$KAIO_SRCDIR/specs/matmul
    layouts='nn nt tn tt'
    ptxas=$(command -v ptxas || ls /usr/local/cuda/bin/ptxas 2>/dev/null) || ptxas=
    fills=
    if [ -n "${KAIO_QUICK-}" ]; then
        layouts='nt tn' # each operand either way
        fills=--fill=normal
        ptxas=          # what the build without sanitizers emits is the same
    fi
}

# product MMA KIND LAYOUT SCHEDULE: k.yaml
product() {
    local a=$2 b=$2 c=f32 term='A * B' x='a[i,l]' y='b[l,j]' dx='m, k' dy='k, n'
    case $2 in
    tf32) a=f32 b=f32 term='tf32(A) * tf32(B)' ;;
    tf32_rz) a=f32 b=f32 term='tf32_rz(A) * tf32_rz(B)' ;;
    tf32_rn) a=f32 b=f32 term='tf32_rn(A) * tf32_rn(B)' ;;
    left_rz) a=f32 b=f32 term='tf32_rz(A) * tf32(B)' ;;
    right_rz) a=f32 b=f32 term='tf32(A) * tf32_rz(B)' ;;
    s8) a=i8 b=i8 c=i32 term='i32(A) * i32(B)' ;;
    u8) a=u8 b=i8 c=i32 term='i32(A) * i32(B)' ;;
    e5m2) b=e4m3 ;;
    esac
    [[ $3 == n? ]] || { x='a[l,i]' dx='k, m'; }
    [[ $3 == ?n ]] || { y='b[j,l]' dy='n, k'; }
    term=${term/A/$x}
    cat >k.yaml <<END
kernel: k
params:
  a: in ${a}[$dx]
  b: in ${b}[$dy]
  c: out ${c}[m, n]
compute: |
  c[i,j] = sum[l](${term/B/$y})
schedule: {strategy: matmul, mma: $1, $4}
END
}
