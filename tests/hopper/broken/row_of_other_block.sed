# A bulk copy of what the other block writes, which may not have.
# twin: write_back
# find: double load: in flight
/@load$/s/^\t\(.*\)\(%rd[0-9]*\)\(.*\)$/\t{ .reg .b32 block; .reg .b64 other; mov.u32 block, %ctaid.x; mul.wide.u32 other, block, 1024;\n\tsub.s64 other, \2, other; add.s64 other, other, 512;\n\t\1other\3\n\t}/
