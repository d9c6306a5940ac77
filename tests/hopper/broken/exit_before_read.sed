# The block ends, its memory is another's, and the copy still reads it.
# twin: bulk_ring
# find: store: 
/@last_wait/d
