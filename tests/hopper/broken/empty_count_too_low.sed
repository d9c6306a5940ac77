# One arrival frees a stage that two warps read.
# twin: bulk_ring
# find: empty_wait full_wait: stuck
/@init_empty/s/, %r[0-9]*;/, 1;/
