# For awk: PTX with what the names under where: stand for in their place, without brackets, so that tests can look for texts
# of the launch whether or not they occur twice.
/^\/\/@ where:/ { inside = 1; next }
inside && /^\/\/@   [a-z]/ {
    name = $2
    sub(/:$/, "", name)
    text = $0
    sub(/^[^:]*: /, "", text)
    gsub(/^'|'$/, "", text)
    names[++n] = name
    stands[n] = expand(text)
    next
}
{ inside = 0 }
/^\/\/@/ { $0 = expand($0) }
{ print }

# Later names may stand for earlier ones, which are expanded by then.
function expand(text, i, out) {
    for (i = 1; i <= n; i++) {
        out = ""
        while (match(text, "(^|[^a-z0-9_$])" names[i] "([^a-z0-9_:]|$)")) {
            skip = substr(text, RSTART, 1) == substr(names[i], 1, 1) && RSTART == 1 ? 0 : 1
            out = out substr(text, 1, RSTART - 1 + skip) stands[i]
            text = substr(text, RSTART + skip + length(names[i]))
        }
        text = out text
    }
    return text
}
