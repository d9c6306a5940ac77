# Extents that are expressions: whatever a strategy makes of them for the launch keeps their meaning.
bats_require_minimum_version 1.5.0

load equations

@test "every strategy multiplies, divides and compares extents that are expressions" {
    for target in sm_70 sm_80 sm_90a; do
        run -0 kaio-verify --run -d cpu --check -t $target data/extents.yaml
        [[ $output == *"passed, 0 failed, 0 skipped" ]]
    done
}

@test "and does so where -D fixes what they are made of, all of it or a part" {
    kernel=
    while read -r line; do
        [[ $line != kernel:* ]] || kernel=${line#kernel: }
        [[ $line == a:* ]] || continue
        mapfile -t sizes < <(grep -o '[a-z]: [0-9][0-9]*' <<<"$line" | tr -d ' ' | tr : =)
        run -0 kaio-verify --run -d cpu --kernel="$kernel" "${sizes[@]/#/-D}" data/extents.yaml
        [[ $output == *"passed, 0 failed, 0 skipped" ]]
        for size in "${sizes[@]}"; do
            run -0 kaio-verify --run -d cpu --kernel="$kernel" "-D$size" data/extents.yaml
            [[ $output == *"passed, 0 failed, 0 skipped" ]]
        done
    done < <(grep "^kernel:\|^ *a:" data/extents.yaml)
}

@test "shifts in extents are exact, as everything at launch is" {
    local e want
    while read -r want e; do
        kernel "z: in f32[n]; y: out f32[max(1, min(100, $e))]" 'y[i] = z[0]' >k.yaml
        kaio-emit k.yaml >k.ptx
        kaio-run -d cpu k.ptx n=4 z=@ones y=y.npy
        head -c 128 y.npy | tr -d '\0' | grep -q "'shape': ($want,)"
    done <<'END'
100 n << 40
100 n << 62
1 n >> 40
4 (1 << 40) >> 38
3 (3u << 31) >> 31
2 (1 << n << 36) >> 39
1 (n - 9) >> 1
END
    kernel "z: in f32[n]; y: out f32[n >> 64]" 'y[i] = z[0]' >k.yaml
    run -2 kaio-emit k.yaml
    [[ $output == *"a shift of i64 is by 0 to 63, not 64"* ]]
    kernel "z: in f32[n]; y: out f32[m << n]; x: in f32[m]" 'y[i] = z[0] + x[0]' >k.yaml
    kaio-emit k.yaml >k.ptx
    run -2 kaio-run -d cpu k.ptx n=70 z=@ones x=@ones m=2 y=y.npy
    [[ $output == *"the shift is out of range"* ]]
}

@test "a product of two extents with -D has as many blocks as it needs" {
    kernel 'x: in f32[batch, channels, h - k + 1, w - k + 1]; y: out f32[batch, h - k + 1, w - k + 1]' \
        'y[n, r, c] = max[o](x[n, o, r, c])' >k.yaml
    run -0 kaio-verify --run -d cpu k.yaml -D batch=2 -D channels=5 -D h=11 -D w=13 -D k=3
    [[ $output == *"198 compared, all equal"*"passed, 0 failed, 0 skipped" ]]
}

# Emits a spec of params and equations with the range and without, and compares.
same_as_written() { # EQUATIONS WITH-RANGES
    printf 'kernel: k\nparams:\n  x: in f32[n, h]\n  w: in f32[3]\n  y: out f32[n, h]\n  s: u32 = 2\ncompute: |\n' |
        tee written.yaml >said.yaml
    sed 's/^/  /' <<<"$1" >>said.yaml
    sed 's/^/  /' <<<"$2" >>written.yaml
    kaio-emit -t sm_90 written.yaml | grep -v '^//@ source' >written.ptx
    kaio-emit -t sm_90 said.yaml | grep -v '^//@ source' | diff written.ptx -
}

@test "a range that is not written is that of the indices by which the intermediate is read" {
    # by a result's index, by a sum's, by several that agree, and by an intermediate that others read
    same_as_written $'t[r,i] = sum[u < 3](pad(x[r, i + u - 1], 0) * w[u])\ny[r,i] = exp(t[r,i])' \
        $'t[r, i < h] = sum[u < 3](pad(x[r, i + u - 1], 0) * w[u])\ny[r,i] = exp(t[r,i])'
    same_as_written $'t[r,i] = pad(x[r, i + 1], 0)\ny[r,j] = x[r,j] * sum[i < h](t[r,i])' \
        $'t[r, i < h] = pad(x[r, i + 1], 0)\ny[r,j] = x[r,j] * sum[i < h](t[r,i])'
    same_as_written $'t[q] = w[q + 0] * 2\ny[r,j] = x[r,j] * sum[u](t[u] * w[u])' \
        $'t[q < 3] = w[q + 0] * 2\ny[r,j] = x[r,j] * sum[u](t[u] * w[u])'
    same_as_written $'t[r,i] = pad(x[r, i + 1], 0)\nm[r] = max[i < h](t[r,i])\ny[r,j] = t[r,j] - m[r] + t[r,0] + pad(t[r, j - 1], 0)' \
        $'t[r, i < h] = pad(x[r, i + 1], 0)\nm[r] = max[i < h](t[r,i])\ny[r,j] = t[r,j] - m[r] + t[r,0] + pad(t[r, j - 1], 0)'
    same_as_written $'t[r,i] = pad(x[r, i + 1], 0)\nv[r,i] = t[r,i] * 2\ny[r,j] = v[r,j] + 1' \
        $'t[r, i < h] = pad(x[r, i + 1], 0)\nv[r,i] = t[r,i] * 2\ny[r,j] = v[r,j] + 1'
    # softmax's index is one around it
    same_as_written $'t[r,i] = x[r, 0] * f32(i)\ny[r,j] = softmax[j](t[r,j])' $'t[r, i < h] = x[r, 0] * f32(i)\ny[r,j] = softmax[j](t[r,j])'
    # where none reads by an index alone, sums of indices say it: two rows of y for each window of t
    same_as_written $'t[r,i] = pad(x[r, i + 1], 0)\ny[r,j] = max[p in 0..3](t[r, 2 * j + p]) + t[r, 1]' \
        $'t[r, i < 2 * h + 1] = pad(x[r, i + 1], 0)\ny[r,j] = max[p in 0..3](t[r, 2 * j + p]) + t[r, 1]'
    # neither a range that depends on an index nor one that begins elsewhere says anything
    for range in 'q < j + 1' 'q in 1..h'; do
        printf 'kernel: k\nparams:\n  x: in f32[n, h]\n  y: out f32[n, h]\ncompute: |\n  t[r,i] = pad(x[r, i + 1], 0)\n  y[r,j] = sum[%s](t[r,q])\n' \
            "$range" >k.yaml
        run -2 kaio-emit k.yaml
        [[ $output == *"nothing says how far 'i' runs"* ]]
    done
}

@test "a pooling behind a sum over a window needs no range written" {
    cat >k.yaml <<'END'
kernel: pool
params: {x: 'in f32[n, w]', k: 'in f32[3]', y: 'out f32[n, m]'}
dims: {m: (w - 2) / 2}
compute: |
  t[b,i] = relu(sum[u](x[b, i + u] * k[u]))
  y[b,i] = max[p in 0..2](t[b, 2 * i + p])
cases: {even: {n: 3, w: 12}, odd: {n: 2, w: 15}}
END
    run -0 kaio-verify --run -d cpu --check k.yaml
    [[ $output == *"passed, 0 failed, 0 skipped" ]]
    sed 's/2 \* i + p/2 * i - p/' k.yaml >minus.yaml # which begins before the first element
    run -2 kaio-emit minus.yaml
    [[ $output == *"nothing says how far 'i' runs"* ]]
}
