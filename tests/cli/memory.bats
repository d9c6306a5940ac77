# What the tools say where there is no memory: one message, which names what it was for and how much, and status 2.
bats_require_minimum_version 1.5.0

setup() {
    [ -z "${KAIO_QUICK-}" ] || skip "the sanitizers take more address space than that"
    cd "$BATS_TEST_TMPDIR"
    ulimit -c 0
    saxpy=$KAIO_SRCDIR/specs/elementwise/saxpy.yaml
}

# refused LIMIT TEXT COMMAND...: under the limit of address space in kB the command says TEXT, a pattern, on standard error
refused() {
    local limit=$1 text=$2
    shift 2
    run -2 --separate-stderr bash -c 'ulimit -v "$1" && shift && exec "$@"' - "$limit" "$@"
    [[ "$stderr" =~ ^$text$ ]] || { printf 'said:   %s\nwanted: %s\n' "$stderr" "$text"; return 1; }
    [ -z "$output" ]
    [ -z "$(find . -name '.kaio-*')" ]
}

left="the limit of address space has [0-9.]+ (bytes|kB|MB) left"

@test "kaio-verify --golden names the file" {
    truncate -s 400M want.bin
    truncate -s 400M got.bin
    refused 300000 "kaio-verify: error: out of memory: want.bin takes 419 MB; $left" kaio-verify --golden want.bin got.bin
    refused 700000 "kaio-verify: error: out of memory: got.bin takes 419 MB; $left" kaio-verify --golden want.bin got.bin
}

@test "kaio-verify --run names the case, and its buffer" {
    local verify=(kaio-verify --run -d cpu --all --code=generic "$saxpy")
    refused 200000 "kaio-verify: error: out of memory for saxpy/large: x takes 268 MB; $left" "${verify[@]}" large
    refused 400000 "kaio-verify: error: out of memory for saxpy/large: y takes 268 MB; $left" "${verify[@]}" large
    # as a case that failed: others may do with less
    run -2 --separate-stderr bash -c 'ulimit -v 900000 && exec "$@"' - "${verify[@]}" large n1000
    [[ "$output" == *"ERROR    saxpy/large exact  the 67108864 values of 'y' and their errors take 1.07 GB, but the limit of address space has "*" MB left"* ]]
    [[ "$output" == *"PASS     saxpy/n1000"* ]]
}

@test "kaio-bench ends with a message, whatever it has no memory for" {
    local limit status=127 starts=0 problems=0
    # from where the loader has what it wants to where the suite has
    for ((limit = 7000; limit < 60000; limit += limit / 10)); do
        status=0
        (ulimit -v $limit && exec kaio-bench --suite matmul --types f16 m=512 n=512 k=512 --dry-run) >out 2>said || status=$?
        case $status in
        0) break ;;
        127) continue ;; # the loader's own message
        139) [ $starts = 0 ] || return 1; continue ;; # loaded, but no room for the stack to grow: the kernel ends it
        2) ;;
        *) cat said; return 1 ;;
        esac
        cat said
        starts=1
        [[ "$(<said)" =~ ^"kaio-bench: error: out of memory"(" for matmul"[^:]*)?": "[0-9.]+" "(bytes|kB|MB)" more are needed; "$left$ ]] ||
            [ "$(<said)" = "kaio-bench: error: out of memory: not even a few bytes are left" ] || # at the very start
            [ "$(<said)" = "kaio-bench: error: out of memory" ]                                  # libyaml does not say how much
        ! grep -q "^kaio-bench: error: out of memory for matmul" said || problems=1
    done
    [ "$status" = 0 ]
    [ $starts = 1 ]
    [ $problems = 1 ]
}
