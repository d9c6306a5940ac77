#!/bin/bash
# oracle.sh [SPEC...]: what must not change when code is only moved about. Prints a line for each spec (all of specs/, of
# tests/golden and tests/data/bodies, unless some are named) and target with the hash of
#     ptx      its PTX, with sizes left open
#     fixed    its PTX, and what --explain says, with the sizes of its last case
#     explain  what --explain says
# and one for each kernel of tests/broken and tests/clean with the hash of
#     find     the findings of the sanitizer, as JSON
# The tools are those in PATH. Take it before and after, and compare:
#     tests/oracle.sh > before; ...; tests/oracle.sh | diff before -
set -u
cd "${KAIO_SRCDIR:-$(dirname "$0")/..}" || exit 2
targets="sm_70 sm_75 sm_80 sm_86 sm_89 sm_90 sm_90a sm_100 sm_120" # whose code differs

hash_of() {
    sha256sum | cut -c 1-16
}

# The values of the last case, as options.
fixed() {
    sed -nE '/^cases:/,$s/^  [a-z0-9_]+: \{(.*)\}$/\1/p' "$1" | tail -n 1 | sed -E 's/: */=/g; s/(^|, *)/ -D /g'
}

# one TARGET SPEC, or find SPEC
one() {
    local spec=$2 sizes
    if [[ $1 == find ]]; then
        # shellcheck disable=SC2046 # words
        printf '%s find %s\n' "$(kaio-emit -g "$spec" 2>/dev/null |
            kaio-run -q --check --format=json --max-instructions=3000000 $(sed -n 's/^# args: //p' "$spec") 2>&1 |
            hash_of)" "$spec"
        return
    fi
    sizes=$(fixed "$spec")
    printf '%s ptx %s %s\n' "$(kaio-emit -t "$1" "$spec" 2>&1 | hash_of)" "$1" "$spec"
    printf '%s explain %s %s\n' "$(kaio-emit -t "$1" --explain "$spec" 2>&1 | hash_of)" "$1" "$spec"
    # shellcheck disable=SC2086 # words
    [[ -z $sizes ]] || printf '%s fixed %s %s\n' \
        "$({ kaio-emit -t "$1" $sizes "$spec" && kaio-emit -t "$1" --explain $sizes "$spec"; } 2>&1 | hash_of)" "$1" "$spec"
}

if [[ ${1-} == --one ]]; then
    one "$2" "$3"
    exit
fi
if [[ $# -gt 0 ]]; then
    for target in $targets; do printf "$target %s\n" "$@"; done
else
    for target in $targets; do printf "$target %s\n" specs/*/*.yaml tests/golden/*.yaml tests/data/bodies/*.yaml; done
    printf 'find %s\n' tests/broken/*.yaml tests/clean/*.yaml
fi | xargs -P "$(nproc)" -L 1 "$0" --one | sort -k 2
