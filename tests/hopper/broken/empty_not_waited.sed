# The producer does not wait until a stage is free.
# twin: bulk_ring
# find: load read: 
/@empty_wait/d
