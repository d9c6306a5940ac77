# What the tests themselves are made with.
bats_require_minimum_version 1.5.0

@test "timed.sh says what a test took, and keeps its status" {
    cd "$BATS_TEST_TMPDIR"
    printf ':test-result: PASS\n' >one.trs
    # the time of a process that the test starts counts, too
    busy='i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done'
    run -3 sh "$KAIO_SRCDIR/tests/timed.sh" sh -c "sh -c '$busy' && sleep 0.3; exit 3" --test-name one --trs-file one.trs -- x
    cat one.trs
    [ "$(wc -l <one.trs)" = 2 ]
    awk '/^:test-result: PASS$/ { next }
         /^:seconds: [0-9]+\.[0-9][0-9] [0-9]+\.[0-9][0-9]$/ && $2 >= 0.3 && $2 < 100 && $3 > 0.02 && $3 < $2 { next }
         { exit 1 }' one.trs
    [ "$(echo *)" = one.trs ]
}

@test "ops.txt is what make_ops.py writes" {
    cd "$BATS_TEST_TMPDIR"
    cp "$KAIO_SRCDIR"/tests/ptx-run/*.py .
    PYTHONDONTWRITEBYTECODE=1 python3 make_ops.py
    cmp ops.txt "$KAIO_SRCDIR/tests/ptx-run/ops.txt"
}

@test "oracle.sh notices what changes in the code that is emitted, and nothing else" {
    cd "$BATS_TEST_TMPDIR"
    export KAIO_SRCDIR
    "$KAIO_SRCDIR/tests/oracle.sh" specs/elementwise/saxpy.yaml specs/elementwise/relu.yaml >before
    cat before
    [ "$(wc -l <before)" = 54 ]
    [ "$(grep -c ' ptx ' before)" = 18 ]
    "$KAIO_SRCDIR/tests/oracle.sh" specs/elementwise/saxpy.yaml specs/elementwise/relu.yaml | cmp - before
    # an emitter that says something else for one target
    real=$(command -v kaio-emit)
    printf '#!/bin/sh\n"%s" "$@"\n[ "$2" != sm_75 ] || echo "// more"\n' "$real" >kaio-emit
    chmod +x kaio-emit
    PATH=$PWD:$PATH "$KAIO_SRCDIR/tests/oracle.sh" specs/elementwise/saxpy.yaml specs/elementwise/relu.yaml >after
    [ "$(diff before after | grep -c '^> .* sm_75 ')" = 6 ]
    [ "$(diff before after | grep -c '^>')" = 6 ]
}

# clang-format fills comments up to the column too, but leaves macros of one long line
@test "no line of the sources is wider than 100 columns" {
    wide() {
        grep -rnE --include='*.[ch]' --exclude='*.k.h' '^.{101}' "$@" | grep -vE '^[^:]+:[0-9]+:#define '
    }
    cd "$KAIO_SRCDIR"
    run -1 wide lib tools
    # and the search itself finds one
    printf '%101s\n' x >"$BATS_TEST_TMPDIR/wide.c"
    run -0 wide "$BATS_TEST_TMPDIR"
}

@test "where lib/lower emits code, no compiler chooses the order" {
    cd "$KAIO_SRCDIR"
    run -0 python3 tests/order.py
    # and the search itself finds what there is
    cd "$BATS_TEST_TMPDIR"
    mkdir -p lib/lower lib/ptx
    printf '#define PTX(b, mnemonic, ...) ptx_emit((b), (mnemonic), ARGS(__VA_ARGS__))\n' >lib/ptx/ptx.h
    cat >lib/lower/one.c <<'END'
static int own(struct cg *g, /* a ( */ int x)
{
    PTX(&g->b, "mov.u32 (", x);
    return x;
}
int one(struct cg *g, int x)
{
    int a = both(own(g, 1), 2), b = both(own(g, 2), plain(g, 1));
    if (own(g, a) && own(g, b))
        a = own(g, x);
    PTX(&g->b, "add.u32", reg(own(g, a)), reg(own(g, b)));
    return x ? own(g, a) : own(g, both(x, 1));
}
int two(struct cg *g, int x)
{
    x = both(x, both(one(g, 2), 3) + 4, /* here */
             one(g, 5));
    PTX_IF(&g->b, g->answer(g, x), "mov.u32", reg(one(g, x)));
    return x - one(g, x) * (x + one(g, 3));
}
END
    run -1 python3 "$KAIO_SRCDIR/tests/order.py" lib
    [ "${lines[*]}" = "lib/lower/one.c:17: both lib/lower/one.c:18: PTX_IF lib/lower/one.c:19: operands" ]
}
