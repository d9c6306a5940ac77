# What a reviewer reads of PTX that is too long to read: its launch contract, its entries, and in order what moves memory,
# multiplies, waits and branches. What comes several times in a row is counted, and the rest is counted in all.
function flush() {
    if (times)
        printf "    %s%s\n", (times > 1 ? times " x " : ""), last
    times = 0
}
/^\/\/@/ { print; next }
/\.entry/ { flush(); sub(/\(.*/, ""); print; next }
/^}/ { flush(); printf "    %d instructions\n", all; all = 0; next }
/^\$/ { flush(); print "  " $1; next }
/^\t/ && !/^\t\./ {
    all++
    what = $1 ~ /^@/ ? $1 " " $2 : $1
    gsub(/%[a-z]+[0-9]+/, "p", what)
    sub(/;$/, "", what)
    if (what ~ /bra/)
        what = what " " $NF
    if (what !~ /^(@!?p )?(bra|ret|ld\.|st\.|cp\.|red\.|atom\.|ldmatrix|stmatrix|mma|wgmma|bar|barrier|mbarrier|fence|shfl)/ || what ~ /^ld\.param/)
        next
    if (what != last)
        flush()
    last = what
    times++
}
