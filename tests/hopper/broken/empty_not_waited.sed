# The producer does not wait until a stage is free.
# twin: bulk_ring
# find: expect: more arrival
/@empty_wait/d
