#!/bin/sh
# Writes the picture of README.md to standard output: a terminal in which the commands below have just run. The tools are
# those in PATH. Where they print something else, 'KAIO_BLESS=1 make check TESTS=tests/man.bats' writes terminal.svg anew.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export KAIO_DEVICE=cpu LC_ALL=C

cat >softmax.yaml <<'END'
kernel: softmax
params:
  x: in f32[rows, cols]
  y: out f32[rows, cols]
compute: |
  top[r]   = max[c](x[r,c])
  total[r] = sum[c](exp(x[r,c] - top[r]))
  y[r,c]   = exp(x[r,c] - top[r]) / total[r]
END

show() {
    printf '$ %s\n' "$1"
    sh -c "$1" 2>&1
}

{
    show 'cat softmax.yaml'
    show 'kaio-emit softmax.yaml |
    kaio-run rows=4 cols=512 x=@normal:1 y=- |
    kaio-verify softmax.yaml rows=4 cols=512 x=@normal:1 y=-'
    show 'kaio-verify --run --check softmax.yaml rows=4 cols=50257'
} | fold -s -w 80 | sed "s/ *$//" | awk '
    BEGIN { size = 14; wide = 8.43; high = 19; edge = 16; columns = 80 }
    { line[NR] = $0 }

    function escaped(s) {
        gsub(/&/, "\\&amp;", s)
        gsub(/</, "\\&lt;", s)
        gsub(/>/, "\\&gt;", s)
        return s
    }
    function in_colour(s, colour) {
        return "<tspan fill=\"" colour "\">" escaped(s) "</tspan>"
    }
    # One line, with its prompt and its verdict in colour. A command goes on after a pipe.
    function painted(s,    first) {
        first = s ~ /^\$ / && !goes_on
        if (first || goes_on) {
            goes_on = s ~ /\|$/
            return first ? in_colour("$", "#7ee787") in_colour(substr(s, 2), "#ffffff") : in_colour(s, "#ffffff")
        }
        if (s ~ /^PASS /)
            return in_colour("PASS", "#7ee787") escaped(substr(s, 5))
        return escaped(s)
    }

    END {
        w = int(columns * wide + 2 * edge)
        h = NR * high + 2 * edge + 20
        printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n", w, h, w, h
        print "<title>softmax: its equations, one pipe, and the verdict</title>"
        printf "<rect width=\"%d\" height=\"%d\" rx=\"8\" fill=\"#0d1117\"/>\n", w, h
        split("#ff5f56 #ffbd2e #27c93f", lamp, " ")
        for (i = 1; i <= 3; i++)
            printf "<circle cx=\"%d\" cy=\"18\" r=\"5\" fill=\"%s\"/>\n", edge + 4 + (i - 1) * 18, lamp[i]
        print "<g fill=\"#c9d1d9\" font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,monospace\" font-size=\"" size "\">"
        for (i = 1; i <= NR; i++)
            printf "<text x=\"%d\" y=\"%d\" xml:space=\"preserve\">%s</text>\n", edge, edge + 15 + i * high, painted(line[i])
        print "</g>\n</svg>"
    }'
