#!/bin/bash
# corpus.sh: what the sanitizer makes of all wrong and right kernels of the tests, counted. By kind of finding, how many of the
# wrong ones are found at the places where they are wrong, and how many are not; by folder, how many of the right ones are left
# alone. The kind is that of the first finding; with kaio-emit the emitter has refused it before that, and with result only
# what it computed shows it. Needs the tools in PATH; exit status 1 when anything is not as the tests want it.
set -u
export KAIO_SRCDIR=${KAIO_SRCDIR:-$(cd "$(dirname "$0")/.." && pwd)}
export CORPUS_DIR CORPUS_RUN
CORPUS_DIR=$(mktemp -d) || exit 1
CORPUS_RUN=$(command -v kaio-run) || exit 1
trap 'rm -rf "$CORPUS_DIR"' EXIT

# in place of kaio-run: does the same, and leaves the kind of the first finding in $CORPUS_KIND
mkdir "$CORPUS_DIR/bin"
cat >"$CORPUS_DIR/bin/kaio-run" <<'END'
#!/bin/sh
"$CORPUS_RUN" "$@"
status=$?
"$CORPUS_RUN" --format=json "$@" 2>&1 >/dev/null </dev/null | sed -n '1s/^{"kind": "\([^"]*\)".*/\1/p' >"$CORPUS_KIND"
exit $status
END
chmod +x "$CORPUS_DIR/bin/kaio-run"
PATH=$CORPUS_DIR/bin:$PATH

# one WHAT FOLDER FILE: a line "wrong KIND found NAME", "right FOLDER silent NAME" or the like
one() {
    local what=$1 folder=$2 file=$3 verdict name kind
    name=$(basename "${file%.*}")
    export CORPUS_KIND=$CORPUS_DIR/${folder//\//.}.$name
    case $folder in
    broken | clean) "$KAIO_SRCDIR/tests/check_one.sh" "$folder" "$file" ;;
    races) KAIO_CORPUS=$CORPUS_KIND.rows "$KAIO_SRCDIR/tests/races_one.sh" "$file" ;;
    *) "$KAIO_SRCDIR/tests/launch_one.sh" "$file" ;;
    esac >"$CORPUS_KIND.log" 2>&1
    verdict=$?
    if [[ $folder == races ]]; then
        awk '$1 == "right" { print "right", "races", $3, $2; next } { print "wrong", $4, $3, $2 }' "$CORPUS_KIND.rows"
    elif [[ $what == right ]]; then
        echo "right $folder $([[ $verdict == 0 ]] && echo silent || echo false) $name"
    else
        kind=kaio-emit
        [[ -e $CORPUS_KIND ]] && kind=$(cat "$CORPUS_KIND")
        echo "wrong ${kind:-result} $([[ $verdict == 0 ]] && echo found || echo missed) $name"
    fi
}
export -f one

# all WHAT FOLDER SUFFIX
all() {
    find "$KAIO_SRCDIR/tests/$2" -maxdepth 1 -name "*.$3" -print0 | sort -z |
        xargs -0 -r -P "$(nproc)" -n 1 bash -c 'one "$@"' one "$1" "$2"
}

{
    all wrong broken yaml
    all wrong hopper/broken sed
    all both races cu
    all right clean yaml
    all right hopper launch
    all right hopper/harmless sed
    all right cuda launch
    all right triton launch
} 2>/dev/null | sort | awk '
    {
        key = $1 " " $2
        if (!(key in good) && !(key in bad))
            order[$1] = order[$1] " " $2
        if ($3 == "found" || $3 == "silent") {
            good[key]++
            right[$1]++
        } else {
            bad[key]++
            wrong[$1]++
            names[$1] = names[$1] " " $4
        }
    }
    function table(what, title, yes, no, n, k, i) {
        printf "%-28s %6s %6s\n", title, yes, no
        n = split(order[what], k, " ")
        for (i = 1; i <= n; i++)
            printf "%-28s %6d %6d\n", k[i], good[what " " k[i]], bad[what " " k[i]]
        printf "%-28s %6d %6d\n", "in all", right[what], wrong[what]
        if (names[what] != "")
            print no ":" names[what]
    }
    END {
        table("wrong", "wrong kernels", "found", "missed")
        print ""
        table("right", "right kernels", "silent", "false")
    }'
