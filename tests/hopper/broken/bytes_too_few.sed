# Fewer bytes are expected than come.
# twin: bulk_ring
# find: full_wait: lacks mbarrier.expect_tx of 16 bytes
/@expect/s/^\t\(.*\), \(%r[0-9]*\);/\t{ .reg .b32 less; sub.s32 less, \2, 16; \1, less; }/
