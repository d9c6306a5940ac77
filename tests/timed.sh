#!/bin/sh
# Runs a test by its driver, and adds to the test's .trs file how long it took:
#     :seconds: WALL CPU
# usage: timed.sh DRIVER... --trs-file FILE ... -- TEST
# './bootstrap check' prints the slowest tests. CPU is the time of all processes of a test: it says the same on a
# machine that does something else beside.
set -u

trs='' last=''
for argument; do
    [ "$last" != --trs-file ] || trs=$argument
    [ "$argument" != -- ] || break
    last=$argument
done

start=$(date +%s.%N)
"$@"
status=$?
end=$(date +%s.%N)
# A shell that pipes has forgotten its children's times, so they go by way of a file.
times >"$trs.times"
awk -v wall="$start $end" '
    function seconds(t) { split(t, part, "m"); return part[1] * 60 + part[2] }
    END { split(wall, at, " "); printf ":seconds: %.2f %.2f\n", at[2] - at[1], seconds($1) + seconds($2) }' \
    "$trs.times" >>"$trs"
rm -f "$trs.times"
exit $status
