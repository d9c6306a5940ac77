# The producer does not wait until a stage is free.
# twin: bulk_ring
# find: expect: more arrivals
/@empty_wait/d
