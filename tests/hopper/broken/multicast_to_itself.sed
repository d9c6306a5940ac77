# The mask leaves the other block out, which expects the bytes.
# twin: multicast
# find: full_wait: lacks 2048 bytes
/@load/s/^\t\(.*\), %rs[0-9]*;/\t{ .reg .b16 only; mov.b16 only, 1; \1, only; }/
