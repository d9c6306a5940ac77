# Parity 1 of a new barrier has always been complete.
# twin: bulk_ring
# find: read load: in flight
/@full_wait$/s/, %r[0-9]*;/, 1;/
