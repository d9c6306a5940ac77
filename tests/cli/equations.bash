# What the tests of strategies share: load equations

setup() {
    mkdir "$BATS_TEST_TMPDIR/work" # beside what bats keeps
    cd "$BATS_TEST_TMPDIR/work" || return
    ln -s "$KAIO_SRCDIR/tests/data" data
    ptxas=$(command -v ptxas || ls /usr/local/cuda/bin/ptxas 2>/dev/null) || ptxas=
    export ptxas
}

# A kernel of the parameters $1 (NAME: DECLARATION, separated by ;) and the equations $2.
kernel() {
    printf 'kernel: k\nparams:\n'
    tr ';' '\n' <<<"$1" | sed 's/^ */  /'
    printf 'compute: |\n'
    sed 's/^/  /' <<<"$2"
}
