#!/bin/bash
# races_one.sh FILE.cu: runs both kernels that nvcc made of it, NAME.ptx and NAME.broken.ptx, on the simulator with all checks,
# and says what is not as it should be. The first gives no finding; the second what the file says:
#     // find: KIND[|KIND...]: PLACE[ PLACE...]
# is a finding of one of these kinds that names all lines of the file with a comment "// @PLACE"; of lines with the same place
# one will do.
#     // missed: KIND: WHY
# is a mistake that is known not to be found; that it is found is as wrong. # With KAIO_CORPUS a line for each of the two is added to that file: broken or right, NAME, found, missed, silent or false, KIND.
set -u
file=$1
name=$(basename "$file" .cu)
here=$(dirname "$file")
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
bad=0

say() {
    echo "$name: $*"
    bad=1
}

tell() { [[ -z ${KAIO_CORPUS-} ]] || echo "$*" >>"$KAIO_CORPUS"; }

# the arguments are quoted as for a shell
options=()
eval "options=($(sed -n 's,^// run: ,,p' "$file"))"

# the kernel of a PTX: findings in $dir/log, the exit status in $status
simulate() {
    kaio-run --check --format=json --max-instructions=30000000 "$1" --entry kernel "${options[@]}" 2>"$dir/log" >"$dir/out"
    status=$?
}

# Does the report in $1 name a line with this place?
names() {
    local n
    while IFS=: read -r n _; do
        [[ $1 == *"\"file\": \"$name.cu\", \"line\": $n,"* || $1 == *[\ \"]"$name.cu:$n:"* ]] && return 0
    done < <(grep -n "// @$2\$" "$file")
    return 1
}

simulate "$here/$name.ptx"
if [[ $status == 0 && ! -s $dir/log ]]; then
    tell right "$name" silent -
else
    say "the correct kernel: exit $status"
    cat "$dir/log"
    tell right "$name" false "$(sed -n '1s/^{"kind": "\([^"]*\)".*/\1/p' "$dir/log")"
fi

simulate "$here/$name.broken.ptx"
want=$(sed -n 's,^// find: ,,p' "$file")
missed=$(sed -n 's,^// missed: ,,p' "$file")
if [[ $missed ]]; then
    tell broken "$name" missed "${missed%%:*}"
    [[ $status == 0 ]] || say "is found, though it says that it is not"
    exit $bad
fi
found=
while IFS= read -r report; do
    kind=${report#'{"kind": "'}
    kind=${kind%%\"*}
    [[ "|${want%%:*}|" == *"|$kind|"* ]] || continue
    all=yes
    for place in ${want#*:}; do
        names "$report" "$place" || all=
    done
    [[ $all ]] && found=${found:-$kind}
done <"$dir/log"
if [[ $status == 1 && $found ]]; then
    tell broken "$name" found "$found"
else
    say "not found: $want (exit $status)"
    cat "$dir/log"
    tell broken "$name" missed "${want%%[:|]*}"
fi
exit $bad
