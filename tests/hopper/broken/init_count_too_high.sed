# Three arrivals are expected, two come.
# twin: bulk_ring
# find: empty_wait: mbarrier
/@init_empty/s/, %r[0-9]*;/, 3;/
