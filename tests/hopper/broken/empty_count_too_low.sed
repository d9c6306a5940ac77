# One arrival frees a stage that two warps read.
# twin: bulk_ring
# find: load read: 
/@init_empty/s/, %r[0-9]*;/, 1;/
