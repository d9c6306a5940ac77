# The ring comes round, the parity does not: the phase of the lap before.
# twin: bulk_ring
# find: read load: in flight
/@full_wait$/s/, %r[0-9]*;/, 0;/
