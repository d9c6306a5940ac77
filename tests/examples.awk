# Reads a page of mdoc or Markdown and writes its examples as tests, one record a command:
#     STATUS <newline> command \035 expected output, in lines <newline> \034
#
# An example is a command in a literal display (.Bd -literal) of any section, as it would be typed after a prompt:
#
#     .Bd -literal -offset indent
#     $ kaio-emit specs/elementwise/saxpy.yaml | kaio-run n=4 x=@arange \e
#           y=@ones alpha=2
#     y  f32[4]  1 3 5 7
#     .Ed
#
# The lines that follow are its standard output, up to the next "$ " or the end of the display; "..." in a line stands
# for any text, and alone on a line for any lines. A command that ends with <<'END' goes on to the line END. A command
# must exit with 0; after the comment line
#     .\" exit 2
# it must exit with that, and what follows is its standard error too. All commands of a page run one after the other
# in one folder, where specs/ is the kernel library and examples/ the programs. A display that cannot run in the test
# suite is preceded by
#     .\" not run: REASON
#
# In Markdown (*.md) a display is a block that begins with ```console. The comments stand on a line before it:
#     <!-- not run: REASON -->
#     <!-- exit 1 -->
# and the status is that of the display's last command.

function plain(s) {
    if (markdown)
        return s
    gsub(/\\e/, "\\", s)
    gsub(/\\-/, "-", s)
    gsub(/\\&/, "", s)
    gsub(/\\\(aq/, "'", s)
    gsub(/\\\(dq/, "\"", s)
    return s
}

# Whether a command has another line.
function goes_on(s) {
    return s ~ /(\\|\|)$/
}

# A new command: it may go on, up to the END of a file that it writes.
function begin() {
    here = command ~ /<<'END'$/
    more = here || goes_on(command)
}

function flush() {
    if (command != "")
        printf "%d\n%s\035%s\034\n", status, command, expected
    command = expected = ""
    status = 0
}

FNR == 1 { markdown = FILENAME ~ /\.md$/ }
markdown && /^<!-- not run: .* -->$/ { skip = 1; next }
markdown && /^<!-- exit [0-9]+ -->$/ { last = $3; next }
markdown && /^```/ && inside { status = last; flush(); inside = last = 0; next }
markdown && /^```/ && !shut { inside = /^```console$/ && !skip; shut = !inside; skip = 0; next }
markdown && /^```/ { shut = 0; next }
/^\.\\" not run:/ { skip = 1; next }
/^\.\\" exit [0-9]+$/ { flush(); status = $3; next }
/^\.Bd .*-literal/ { inside = !skip; skip = 0; next }
/^\.Ed/ { flush(); inside = 0; next }
!inside || /^\.\\"/ { next }
/^\$ / { s = status; flush(); status = s; command = plain(substr($0, 3)); begin(); next }
command == "" { next }
more { command = command "\n" plain($0); more = here ? $0 != "END" : goes_on(command); here = here && more; next }
{ expected = expected plain($0) "\n" }
