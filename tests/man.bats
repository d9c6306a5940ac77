# The manual pages say what the tools do: their options are those of --help, and their examples run. So do those of README.md.

setup() {
    man=$KAIO_SRCDIR/man
}

# The options of --help, one a line: -o and --output.
options_of_help() {
    "$1" --help | grep -E '^  (-.,|   ) --' | sed -E 's/^ +//; s/ {2,}.*//' | tr -d ',' | tr ' ' '\n' |
        sed -E 's/\[?=.*//' | sort -u
}

# The tags of the option lists of a page, in the same form.
options_of_page() {
    mandoc -T ascii -O width=400 "$1" | sed 's/.\x08//g' | sed -nE 's/^ {5}(-.*)/\1/p' | sed -E 's/ {3,}.*//' |
        grep -oE '(^|[ ,])--?[A-Za-z][a-z-]*' | tr -d ' ,' | sort -u
}

compare_options() {
    command -v mandoc >/dev/null || skip "mandoc is missing"
    [ "$(options_of_help "$1" | wc -l)" -ge 5 ]
    diff <(options_of_help "$1") <(options_of_page "$man/$1.1")
}

# Whether text $2 is what pattern $1 describes: "..." is any text, alone on a line any lines.
matches() {
    local pattern text=$2
    pattern=$(printf '%s\n' "$1" | sed -E 's/[][\\.*^$+?(){}|]/\\&/g; s/(\\\.){3}/.*/g')
    pattern=${pattern//$'\n.*\n'/$'\n(.*\n)?'}
    [[ $text =~ ^$pattern$ ]]
}

# Runs the examples of a page (tests/examples.awk has the rules).
run_examples() {
    local count=0 status want command expected record got
    cd "$BATS_TEST_TMPDIR"
    ln -s "$KAIO_SRCDIR/specs" specs
    ln -s "$KAIO_SRCDIR/examples" examples
    while IFS= read -r -d $'\034' record; do
        record=${record#$'\n'}
        want=${record%%$'\n'*} record=${record#*$'\n'}
        command=${record%%$'\035'*} expected=${record#*$'\035'}
        expected=${expected%$'\n'}
        status=0
        if [ "$want" = 0 ]; then
            got=$(bash -c "$command" 2>stderr </dev/null) || status=$?
        else
            got=$(bash -c "$command" 2>&1 </dev/null) || status=$?
        fi
        count=$((count + 1))
        if [ "$status" != "$want" ] || ! matches "$expected" "$got"; then
            printf '%s\n' "$ $command" "exit status $status, documented is $want" "printed:" "$got" "documented:" "$expected"
            [ "$want" != 0 ] || cat stderr
            return 1
        fi
    done < <(awk -f "$KAIO_SRCDIR/tests/examples.awk" "$man/$1")
    [ $count -gt 0 ]
}

@test "the examples' matcher tells right from wrong" {
    matches 'a (x) 1.5 [b]' 'a (x) 1.5 [b]'
    matches 'time: ... us' 'time: 12.5 us'
    matches $'a\n...\nd' $'a\nb\nc\nd'
    matches $'a\n...\nd' $'a\nd'
    matches '...' $'a\nb'
    ! matches 'a.c' 'abc' || false
    ! matches 'a' 'ab' || false
    ! matches $'a\n...\nd' $'a\nb' || false
    ! matches '' 'x' || false
}

@test "examples of kaio-bench(1)" { run_examples kaio-bench.1; }
@test "options of kaio-bench(1)" { compare_options kaio-bench; }

@test "examples of kaio-emit(1)" { run_examples kaio-emit.1; }
@test "options of kaio-emit(1)" { compare_options kaio-emit; }
# Prints  NAME<tab>TEXT  for each strategy, and  NAME KEY<tab>HELP; VALUES  for each of its options.
strategies_of_tool() {
    kaio-emit --list-strategies --format=json | python3 -c '
import json, sys
strategies = json.load(sys.stdin)["strategies"]
for s in strategies:
    print(s["name"], s["takes"], sep="\t")
for s in strategies:
    for o in s["options"]:
        print(s["name"] + " " + o["key"], o["help"] + "; " + o["values"], sep="\t")'
}

# The same of the tables of the page's section STRATEGIES.
strategies_of_page() {
    sed -n '/^\.Sh STRATEGIES/,/^\.Sh ARITHMETIC/p' "$man/kaio-emit.1" | awk '
        /^\.It Cm [a-z]+$/ { name = $3 }
        /^\.It (Cm|Ql) [a-z]+ Ta / {
            row = $2 == "Cm" ? $3 : name " " $3
            sub(/^\.It [A-Z][a-z] [a-z]+ Ta /, "")
            print row "\t" $0
        }'
}

@test "the tables of strategies in kaio-emit(1) are those that the tool has" {
    [ "$(strategies_of_tool | wc -l)" -ge 20 ]
    diff <(strategies_of_tool) <(strategies_of_page)
}

@test "examples of kaio-run(1)" { run_examples kaio-run.1; }
@test "options of kaio-run(1)" { compare_options kaio-run; }
@test "examples of kaio-verify(1)" { run_examples kaio-verify.1; }
@test "options of kaio-verify(1)" { compare_options kaio-verify; }
@test "examples of kaio-program(5)" { run_examples kaio-program.5; }
@test "examples of kaio-ptx(5)" { run_examples kaio-ptx.5; }

@test "examples of kaio-spec(5)" { run_examples kaio-spec.5; }

@test "the kernels in kaio-spec(5) compile" {
    local count=0 kernel
    cd "$BATS_TEST_TMPDIR"
    while IFS= read -r -d $'\034' kernel; do
        echo "$kernel"
        kaio-emit - <<<"$kernel" >out.ptx 2>err
        [ ! -s err ] || { cat err; false; }
        count=$((count + 1))
    done < <(awk '/^\.Ed/ { if (k) printf "%s\034", k; k = ""; next }
                  /^kernel:/ || k { gsub(/\\&/, ""); k = k $0 "\n" }' "$man/kaio-spec.5")
    [ $count -ge 3 ]
}

# "exp 0.9 0.8": function, error in f32, error in f64.
@test "the accuracy in kaio-spec(5) is what was measured" {
    cd "$BATS_TEST_TMPDIR"
    sed -nE 's/^\.It ([a-z0-9_]+)\(.*\) Ta ([0-9.]+) Ta ([0-9.]+) Ta .*/\1 \2 \3/p' "$man/kaio-spec.5" |
        grep -vE '^(sqrt|rcp|copysign|fma) ' >page
    [ "$(wc -l <page)" -ge 20 ]
    while read -r name f32 f64; do
        grep -E "^MATH\\($name, [12], $f32, $f64, " "$KAIO_SRCDIR/lib/lang/math.def" ||
            { echo "$name is documented with $f32 and $f64"; false; }
    done <page
    while read -r name; do
        grep "^$name " page || ! grep -q "\"$name\"" "$KAIO_SRCDIR/lib/lang/builtin.def" ||
            { echo "$name is not documented"; false; }
    done < <(sed -nE 's/^MATH\(([a-z0-9_]+),.*/\1/p' "$KAIO_SRCDIR/lib/lang/math.def")
    sed -nE 's/^\.It ([a-z0-9_]+) Ta ([0-9.]+)$/HALF(\1, \2)/p' "$man/kaio-spec.5" >page
    grep '^HALF' "$KAIO_SRCDIR/lib/lang/math.def" >table
    [ -s table ]
    diff page table
    sed -nE 's/^\.It ([a-z0-9_]+) Ta ([^T]*) Ta ([^T]*) Ta ([^T]*) Ta ([^T]*)$/FAST(\1, \2, \3, \4, \5)/p' "$man/kaio-spec.5" |
        sed 's/1\.44 2^/0x1.7p/g; s/1\.07 2^/0x1.1p/g; s/1\.5 2^/0x1.8p/g; s/2^/0x1p/g' >page
    grep '^FAST' "$KAIO_SRCDIR/lib/lang/math.def" >table
    [ -s table ]
    diff page table
}

@test "examples of kaio(7)" { run_examples kaio.7; }
@test "examples of kaio-sim(7)" { run_examples kaio-sim.7; }

@test "examples of README.md" { run_examples ../README.md; }

@test "README.md is short, narrow, and runs each of its commands or says why not" {
    cd "$KAIO_SRCDIR"
    [ "$(wc -l <README.md)" -le 180 ]
    # blocks fit a narrow window, but for what the tools print
    awk '/^```/ { inside = !inside } inside && length > 80 && !/: error: |: note: /' README.md >"$BATS_TEST_TMPDIR/wide"
    cat "$BATS_TEST_TMPDIR/wide"
    [ ! -s "$BATS_TEST_TMPDIR/wide" ]
    awk '/^```/ { inside = !inside }
         inside && /^```/ && !/^```(console)?$/ && before !~ /^<!-- not run: / { print FILENAME ":" FNR ": " $0 }
         { before = $0 }' README.md >"$BATS_TEST_TMPDIR/unsaid"
    cat "$BATS_TEST_TMPDIR/unsaid"
    [ ! -s "$BATS_TEST_TMPDIR/unsaid" ]
}

# KAIO_BLESS=1 draws it anew.
@test "the picture of README.md shows what the tools print" {
    cd "$BATS_TEST_TMPDIR"
    "$man/terminal.sh" >terminal.svg
    [ -z "${KAIO_BLESS-}" ] || cp terminal.svg "$man/terminal.svg"
    diff "$man/terminal.svg" terminal.svg
    grep -q '>PASS<' terminal.svg
    ! grep -qE 'not found|No such|error: ' terminal.svg || false
}

@test "'make html' renders every page, and the links between them lead somewhere" {
    command -v mandoc >/dev/null || skip "mandoc is missing"
    unset MAKEFLAGS MFLAGS MAKELEVEL
    make -s -C "$KAIO_BUILDDIR" html
    cd "$KAIO_BUILDDIR/html"
    for page in "$man"/*.[0-9]; do
        grep -q '</html>' "${page##*/}.html" || { echo "$page"; false; }
    done
    cmp kaio.7.html index.html
    [ "$(cat ./*.html | grep -o 'href="kaio[a-z-]*\.[157]\.html' | wc -l)" -ge 50 ]
    while read -r target; do
        [ -e "$target" ] || { echo "$target"; false; }
    done < <(cat ./*.html | grep -oE '(href|src)="[^"#]+' | sed 's/^[a-z]*="//' | sort -u)
}

@test "links between the pages at the top lead somewhere" {
    cd "$KAIO_SRCDIR"
    count=0
    for page in *.md tests/README.md; do
        while read -r link; do
            count=$((count + 1))
            file=${link%%#*} heading=
            [ "$link" = "$file" ] || heading=${link#*#}
            file=$(dirname "$page")/${file:-$(basename "$page")}
            [ -e "$file" ] || { echo "$page: $link"; false; }
            [ -z "$heading" ] || sed -n 's/^##* //p' "$file" | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9\n-' | grep -qx "$heading" ||
                { echo "$page: $link"; false; }
        done < <(awk '/^```/ { inside = !inside } !inside && !/^    /' "$page" | grep -oE '\]\([^)]+\)' | sed 's/^](//; s/)$//' | grep -v '^https\?:')
    done
    [ $count -ge 20 ]
}

@test "files that the pages at the top name are there" {
    cd "$KAIO_SRCDIR"
    count=0
    while read -r file; do
        count=$((count + 1))
        [ -e "$file" ] || { echo "$file"; false; }
    done < <(cat ./*.md tests/README.md | grep -oE '`(lib|tools|tests|man|specs)/[A-Za-z0-9_./-]+`' | tr -d '`' |
        grep -vE '(NAME|FAMILY|MODULE)' | sort -u)
    [ $count -ge 30 ]
}

@test "every page is in this file" {
    for page in "$man"/*.[0-9]; do
        page=${page##*/}
        grep -qF "run_examples $page;" "$BATS_TEST_FILENAME" || { echo "$page"; false; }
        [ "${page##*.}" != 1 ] || grep -qF "compare_options ${page%.1};" "$BATS_TEST_FILENAME" || { echo "$page"; false; }
    done
}

# For awk: prints sentences of more than so many words. They begin on a line of their own, as mdoc wants it, so one ends where
# a line ends with a full stop. The schedules of kaio-emit(1) are tables in prose.
long_sentences='
    function end() { if (words > most && !tables) print FILENAME ":" first ": " words " words"; words = 0 }
    FNR == 1 { words = display = tables = 0 }
    /^\.Bd/ { end(); display = 1 }
    /^\.Ed/ { display = 0; next }
    display || /^\.\\"/ { next }
    /^\.(Pp|Sh|Ss|It|Bl|El|D1|Dl|Rs|Re|Dd|Dt|Os)/ { end() }
    /^\.Sh/ { tables = FILENAME ~ /kaio-emit/ && /STRATEGIES/ }
    /^\.(Pp|Sh|Ss|It|Bl|El|D1|Dl|Rs|Re|Dd|Dt|Os)/ { next }
    { if (!words) first = FNR
      for (i = 1; i <= NF; i++)
          if ($i !~ /^(\.[A-Z][a-z0-9]|Ns|No|Fl|Ar|Cm|Em|Li|Ql|Pq|[,;:.()])$/) words++
      if (/[.!?]\)?$/ && !/\.\.\.$/) end() }'

@test "no sentence of a page has more than 50 words" {
    awk 'BEGIN { print ".Sh ONE"; for (i = 0; i < 51; i++) print "word"; print "end." }' >"$BATS_TEST_TMPDIR/long.1"
    [ "$(awk -v most=50 "$long_sentences" "$BATS_TEST_TMPDIR/long.1" | grep -c ':2: 52 words$')" = 1 ]
    run awk -v most=50 "$long_sentences" "$man"/*.[0-9]
    echo "$output"
    [ "$status" = 0 ]
    [ -z "$output" ]
}

@test "the pages are clean mdoc" {
    command -v mandoc >/dev/null || skip "mandoc is missing"
    mandoc -T lint -W warning "$man"/*.[0-9]
}

@test "pages are of kaio, whatever system they are read on" {
    command -v mandoc >/dev/null || skip "mandoc is missing"
    local page
    for page in "$man"/*.[1-9]; do
        [[ "$(mandoc -T ascii "$page" | tail -n 1)" == "kaio "* ]]
    done
}
