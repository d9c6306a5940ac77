# Three arrivals are expected, two come.
# twin: bulk_ring
# find: empty_wait: lacks 1 of 3 arrivals
/@init_empty/s/, %r[0-9]*;/, 3;/
