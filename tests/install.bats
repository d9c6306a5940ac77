# 'make install' into an empty folder: all that a user needs is there, and works from there.
bats_require_minimum_version 1.5.0

setup_file() {
    export DESTDIR=$BATS_FILE_TMPDIR/root
    unset MAKEFLAGS MFLAGS MAKELEVEL
    make -s -C "$KAIO_BUILDDIR" install DESTDIR="$DESTDIR" >"$BATS_FILE_TMPDIR/log" 2>&1 || {
        cat "$BATS_FILE_TMPDIR/log" >&2
        return 1
    }
    # wherever --prefix and --libdir put it
    prefix=$(dirname "$(dirname "$(find "$DESTDIR" -name kaio-emit -path '*/bin/*')")")
    libdir=$(dirname "$(find "$DESTDIR" -name 'libkaio.so')")
    export prefix libdir
    export LD_LIBRARY_PATH=$libdir
    export PKG_CONFIG_PATH=$libdir/pkgconfig PKG_CONFIG_SYSROOT_DIR=$DESTDIR
}

@test "the tools, the library, its header and the pkg-config file are there" {
    for tool in emit run verify bench; do
        [ -x "$prefix/bin/kaio-$tool" ]
        "$prefix/bin/kaio-$tool" --version | grep -q "^kaio-$tool (kaio) "
    done
    [ -e "$prefix/include/kaio.h" ]
    [ -e "$libdir/pkgconfig/kaio.pc" ]
    [ "$(find "$prefix/include" -type f | wc -l)" = 1 ]
}

@test "every manual page and every spec of the tree is there" {
    cd "$KAIO_SRCDIR"
    for page in man/*.[0-9]; do
        [ -e "$prefix/share/man/man${page##*.}/${page#man/}" ] || { echo "$page"; false; }
    done
    while read -r spec; do
        [ -e "$prefix/share/kaio/$spec" ] || { echo "$spec"; false; }
    done < <(find specs -name '*.yaml')
}

@test "completions for bash and zsh are there" {
    for tool in emit run verify bench; do
        bash -n "$prefix/share/bash-completion/completions/kaio-$tool"
        [ "$(head -n 1 "$prefix/share/zsh/site-functions/_kaio-$tool")" = "#compdef kaio-$tool" ]
    done
}

@test "a C program builds with pkg-config and runs" {
    cd "$BATS_TEST_TMPDIR"
    cat >probe.c <<'END'
#include <kaio.h>
#include <stdio.h>
int main(void) { puts(kaio_version()); return 0; }
END
    # shellcheck disable=SC2046,SC2086  # lists of words
    ${CC:-cc} $BASE_CFLAGS -Wall -Wextra -Werror probe.c -o probe $(pkg-config --cflags --libs kaio)
    run -0 ./probe
    [ "$output" = "$(pkg-config --modversion kaio)" ]
}

# The display of kaio-sim(7) that begins with $1, and what stands in it.
display() {
    awk -v first="$1" 'function plain(s) { gsub(/\\&/, "", s); gsub(/\\e/, "\\", s); gsub(/\\-/, "-", s); return s }
        /^\.Ed/ { inside = 0 }
        inside == 2 { print plain($0) }
        inside == 1 { inside = index($0, first) == 1 ? 2 : 0; if (inside) print plain($0) }
        /^\.Bd/ { inside = 1 }' "$KAIO_SRCDIR/man/kaio-sim.7"
}

@test "the program in kaio-sim(7) does what the page says" {
    cd "$BATS_TEST_TMPDIR"
    display "#include <kaio.h>" >suite.c
    display "$ cat > scale.ptx" | sed '1d; /^END$/,$d' >scale.ptx
    # shellcheck disable=SC2046,SC2086  # lists of words
    ${CC:-cc} $BASE_CFLAGS -Wall -Wextra -Werror suite.c -o suite $(pkg-config --cflags --libs kaio)
    diff <(./suite cpu check=all | sed 's/0x[0-9a-f]*/0x.../') <(display '$ cc suite.c' | sed 1,2d)
}

@test "the header is C++ too" {
    command -v c++ >/dev/null || skip "no C++ compiler"
    echo '#include <kaio.h>' | c++ -fsyntax-only -Wall -Wextra -Werror -pedantic -I"$prefix/include" -x c++ -
}

@test "the library exports its public names and no others" {
    names=$(nm -D --defined-only "$libdir/libkaio.so" | awk '$2 ~ /[A-Z]/ { print $3 }')
    grep -qx kaio_version <<<"$names"
    ! grep -vE '^(kaio_|__asan_|__odr_asan|_init$|_fini$)' <<<"$names"
}

@test "what is installed knows nothing of where it was built" {
    ! grep -rlF "$KAIO_BUILDDIR" "$prefix/share" "$libdir/pkgconfig" "$prefix/include"
}

@test "make uninstall leaves nothing" {
    make -s -C "$KAIO_BUILDDIR" uninstall DESTDIR="$DESTDIR" >/dev/null
    left=$(find "$DESTDIR" -not -type d)
    echo "$left"
    [ -z "$left" ]
}
