#!/bin/bash
# launch_one.sh FILE: runs a kernel on the simulator with all checks, and says what is not as it should be. FILE is one of
#     NAME.launch         a correct kernel's launch contract. Each PTX text of the kernel, NAME.ptx, NAME.*.ptx or
#                         NAME.*.ptx.gz, has the results that these lines say, and no finding:
#                             # args: ARGUMENT...         of kaio-run
#                             # sum: OUTPUT DIGITS ...    the first 16 digits of the SHA-256 of the output's bytes
#                             # near: OUTPUT RTOL ATOL    the output is NAME.OUTPUT.npy up to ATOL + RTOL |value|; of NAME counts
#                                                         what is in front of a point
#                         A line  # suppress: RULE  is one of --suppressions, for a finding that is none of the kernel's.
#                         What it prints is NAME.says, if there is one, in whatever order; else nothing.
#     harmless/NAME.sed   a change to a correct kernel,  # twin: NAME,  after which it is as correct.
#     broken/NAME.sed     a change that must be found:
#                             # find: PLACE[ PLACE...]: TEXT
#                         is an error with TEXT, and lines of the changed PTX with a comment "// @PLACE" each; a PLACE of
#                         -  is any line;  # find: result  is another result. Several  # find:  are alternatives.
# KAIO_ARGS are the options of kaio-run in place of  --check --max-instructions=30000000.  With  -d cuda  the correct kernels
# must be as correct on a GPU. With KAIO_KEEP=FOLDER the outputs are left there, as TEXT.OUTPUT.
# A line  # launch: SCRIPT  of a change is for sed, too, and changes the launch contract.
# With KAIO_QUICK one of a kernel's texts is run, which its name draws: all have run without sanitizers.
set -u
file=$1
name=$(basename "$file")
here=$(cd "$(dirname "$file")" && pwd)
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

say() {
    echo "$name: $*"
    head -c 20000 "$dir/log"
    failed=1
}

# the value of a line  # KEY: VALUE  of a file
value() { sed -n "s/^# $1: //p" "$2"; }

# runs $dir/k.ptx by $dir/k.launch; sets status, and wrong to the outputs that are not what they should be
try() {
    local sums near options args output source i j sum
    read -ra sums <<<"$(value sum "$dir/k.launch")"
    read -ra options <<<"${KAIO_ARGS:---check --max-instructions=30000000}"
    read -ra args <<<"$(value args "$dir/k.launch")"
    mapfile -t near < <(value near "$dir/k.launch")
    value suppress "$dir/k.launch" >"$dir/known"
    [[ -s $dir/known && ${options[0]} == --check* ]] && options+=(--suppressions=known)
    # a destination for each output; an inout has a source, too
    for output in $(for ((i = 0; i < ${#sums[@]}; i += 2)); do echo "${sums[i]}.raw"; done) "${near[@]/ */.npy}"; do
        source=
        for ((j = 0; j < ${#args[@]}; j++)); do
            [[ ${args[j]} == "${output%.*}="* ]] && source=$j
        done
        if [[ $source ]]; then
            args[source]+=:$output
        else
            args+=("${output%.*}=$output")
        fi
    done
    (cd "$dir" && rm -f ./*.raw ./*.npy && kaio-run -q "${options[@]}" --launch k.launch k.ptx "${args[@]}") >"$dir/log" 2>&1
    status=$?
    [[ ! -s $dir/known ]] || sed -i '/note: 0 findings in kernel .* suppressed$/d' "$dir/log"
    wrong=
    for ((i = 0; i < ${#sums[@]}; i += 2)); do
        sum=$(sha256sum "$dir/${sums[i]}.raw" 2>/dev/null)
        [[ ${sum:0:16} == "${sums[i + 1]}" ]] || wrong+=" ${sums[i]}"
    done
    local rtol atol
    for i in "${near[@]}"; do
        read -r output rtol atol <<<"$i"
        kaio-verify --golden --rtol="$rtol" --atol="$atol" "$here/${twin%%.*}.$output.npy" "$dir/$output.npy" >"$dir/compared" 2>&1 ||
            { wrong+=" $output" && cat "$dir/compared" >>"$dir/log"; }
    done
}

# The text in $dir gives what it must.
correct() {
    try
    if [[ ${KAIO_KEEP-} ]]; then
        for output in "$dir"/*.raw "$dir"/*.npy; do
            [[ -e $output ]] && cp "$output" "$KAIO_KEEP/$name.$(basename "$output")"
        done
    fi
    if [[ -e $here/$twin.says ]]; then
        cmp -s <(sort "$dir/log") <(sort "$here/$twin.says") && : >"$dir/log"
    fi
    if [[ $status != 0 ]]; then
        say "exit $status"
    elif [[ $wrong ]]; then
        say "wrong:$wrong"
    elif [[ -s $dir/log ]]; then
        say "has something to say"
    fi
}

failed=0
if [[ $file == *.launch ]]; then
    twin=${name%.launch}
    cp "$file" "$dir/k.launch"
    all=()
    for text in "$here/$twin.ptx" "$here/$twin".*.ptx{,.gz}; do
        [[ ! -e $text ]] || all+=("$text")
    done
    if [[ ${KAIO_QUICK-} && ${#all[@]} -gt 1 ]]; then
        all=("${all[$(cksum <<<"$twin" | cut -d' ' -f1) % ${#all[@]}]}")
    fi
    for text in "${all[@]}"; do
        if [[ $text == *.gz ]]; then
            gzip -dc "$text" >"$dir/k.ptx"
        else
            cp "$text" "$dir/k.ptx"
        fi
        name=$(basename "${text%.gz}" .ptx)
        correct
    done
    : >"$dir/log"
    [[ ${#all[@]} -gt 0 ]] || say "has no PTX"
    exit $failed
fi

twin=$(value twin "$file")
here=$(dirname "$here")
sed -f "$file" "$here/$twin.ptx" >"$dir/k.ptx"
sed "$(value launch "$file")" "$here/$twin.launch" >"$dir/k.launch"
if cat "$dir/k.ptx" "$dir/k.launch" | cmp -s - <(cat "$here/$twin.ptx" "$here/$twin.launch"); then
    echo "$name: changes nothing"
    exit 1
fi
if [[ $file == *harmless/* ]]; then
    correct
    exit $failed
fi
try
value find "$file" | grep -qx result && [[ $status == 1 || $wrong ]] && exit 0
[[ $status == 1 ]] || { say "exit $status" && exit 1; }
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
exit 1
