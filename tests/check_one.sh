#!/bin/sh
# check_one.sh broken|clean FILE: emits a kernel, runs it under all checks, and says whether what is found is what the
# file's head wants. In tests/broken each line  # find: LINE[,LINE...]: TEXT  there is an error with TEXT that names
# those lines of the file, from the emitter or from the simulator; in tests/clean there is none.
# A line  # args: ...  has the arguments of kaio-run.
set -u
kind=$1
file=$2
name=$(basename "$file" .yaml)
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
args=$(sed -n 's/^# args: //p' "$file")
if kaio-emit -g "$file" >"$dir/k.ptx" 2>"$dir/log"; then
    # shellcheck disable=SC2086 # words
    (cd "$dir" && kaio-run --check --max-instructions=3000000 k.ptx $args) >>"$dir/log" 2>&1
    status=$?
    want=1
else
    status=$?
    want=2
fi
if [ "$kind" = clean ]; then
    [ "$status" = 0 ] && exit 0
    echo "$name: exit $status"
    cat "$dir/log"
    exit 1
fi
if [ "$status" != "$want" ]; then
    echo "$name: exit $status, not $want"
    cat "$dir/log"
    exit 1
fi
# the log in blocks, each an error with its notes
awk -v file="$file" -v name="$name" '
    BEGIN { n = 0 }
    FNR == NR {
        if (sub(/^# find: /, "")) {
            colon = index($0, ": ")
            where[n] = substr($0, 1, colon - 1)
            what[n++] = substr($0, colon + 2)
        }
        next
    }
    function match_block(k, j, m, line, all) {
        for (k = 0; k < n; k++) {
            all = index(block, what[k]) > 0
            m = split(where[k], line, ",")
            for (j = 1; j <= m; j++)
                all = all && index(block, file ":" line[j] ":") > 0
            if (all)
                found[k] = 1
        }
        block = ""
    }
    / error: / { match_block() }
    { block = block "\n" $0 }
    END {
        match_block()
        bad = n == 0
        for (k = 0; k < n; k++)
            if (!found[k]) {
                print name ": no error at line " where[k] " with: " what[k]
                bad = 1
            }
        exit bad
    }' "$file" "$dir/log" && exit 0
cat "$dir/log"
exit 1
