# The block ends, its memory is another's, and the copy still reads it.
# twin: bulk_ring
# find: store: the block is over
/@last_wait/d
