#!/bin/bash
# hopper_one.sh FILE: runs a kernel of tests/hopper on the simulator with all checks, and says what is not as it should be.
# FILE is one of
#     NAME.launch         a correct kernel's launch contract. The kernel, NAME.ptx, gives what  # sum:  says, and no finding.
#     harmless/NAME.sed   a change to a correct kernel,  # twin: NAME,  after which it is as correct.
#     broken/NAME.sed     a change that must be found:
#                             # find: PLACE[ PLACE...]: TEXT
#                         is an error with TEXT, and lines of the changed PTX with a comment "// @PLACE" each; a PLACE of
#                         -  is any line;  # find: result  is another result. Several  # find:  are alternatives.
# KAIO_ARGS are the options of kaio-run in place of  --check --max-instructions=30000000.  With  -d cuda  the correct kernels
# must be as correct on a GPU.
# A line  # launch: SCRIPT  of a change is for sed, too, and changes the launch contract.
set -u
file=$1
name=$(basename "$file")
here=$(cd "$(dirname "$0")/hopper" && pwd)
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

say() {
    echo "$name: $*"
    cat "$dir/log"
    exit 1
}

# the value of a line  # KEY: VALUE  of a file
value() { sed -n "s/^# $1: //p" "$2"; }

twin=${name%.launch}
case $file in
*.sed)
    twin=$(value twin "$file")
    sed -f "$file" "$here/$twin.ptx" >"$dir/k.ptx"
    sed "$(value launch "$file")" "$here/$twin.launch" >"$dir/k.launch"
    cat "$dir/k.ptx" "$dir/k.launch" | cmp -s - <(cat "$here/$twin.ptx" "$here/$twin.launch") && say "changes nothing"
    ;;
*)
    cp "$here/$twin.ptx" "$dir/k.ptx"
    cp "$file" "$dir/k.launch"
    ;;
esac

# arguments, with a destination for each output; an inout has a source, too
read -ra sums <<<"$(value sum "$dir/k.launch")"
read -ra options <<<"${KAIO_ARGS:---check --max-instructions=30000000}"
read -ra args <<<"$(value args "$dir/k.launch")"
for ((i = 0; i < ${#sums[@]}; i += 2)); do
    output=${sums[i]} source=
    for ((j = 0; j < ${#args[@]}; j++)); do
        [[ ${args[j]} == "$output="* ]] && source=$j
    done
    if [[ $source ]]; then
        args[source]+=:$output.raw
    else
        args+=("$output=$output.raw")
    fi
done
(cd "$dir" && kaio-run -q "${options[@]}" --launch k.launch k.ptx "${args[@]}") >"$dir/log" 2>&1
status=$?

# the outputs that are not what they should be
wrong=
for ((i = 0; i < ${#sums[@]}; i += 2)); do
    sum=$(sha256sum "$dir/${sums[i]}.raw" 2>/dev/null)
    [[ ${sum:0:16} == "${sums[i + 1]}" ]] || wrong+=" ${sums[i]}"
done

if [[ $file != *broken/* ]]; then
    [[ $status == 0 ]] || say "exit $status"
    [[ -z $wrong ]] || say "wrong:$wrong"
    [[ ! -s $dir/log ]] || say "has something to say"
    exit 0
fi
value find "$file" | grep -qx result && [[ $status == 1 || $wrong ]] && exit 0
[[ $status == 1 ]] || say "exit $status"
awk -v file="$file" '
    BEGIN { n = found = 0 }
    FILENAME == file {
        if (sub(/^# find: /, "")) {
            colon = index($0, ": ")
            where[n] = substr($0, 1, colon - 1)
            what[n++] = substr($0, colon + 2)
        }
        next
    }
    FILENAME ~ /\.ptx$/ {
        if (match($0, /\/\/ @[a-z0-9_]+/))
            place[FNR] = substr($0, RSTART + 4, RLENGTH - 4)
        next
    }
    # an error and its notes, and the places that they name
    function match_block(k, j, m, want, all) {
        for (k = 0; k < n; k++) {
            all = index(block, what[k]) > 0
            m = split(where[k], want, " ")
            for (j = 1; j <= m; j++)
                all = all && (want[j] == "-" || want[j] in named)
            found = found || all
        }
        block = ""
        split("", named)
    }
    / error: / { match_block() }
    {
        block = block "\n" $0
        rest = $0
        while (match(rest, /k\.ptx:[0-9]+/)) {
            named[place[substr(rest, RSTART + 6, RLENGTH - 6)]] = 1
            rest = substr(rest, RSTART + RLENGTH)
        }
    }
    END {
        match_block()
        exit !found
    }' "$file" "$dir/k.ptx" "$dir/log" && exit 0
say "not found: $(value find "$file" | paste -sd '|')"
