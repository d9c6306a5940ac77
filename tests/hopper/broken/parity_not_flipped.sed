# The ring comes round, the parity does not: the phase of the lap before.
# twin: bulk_ring
# find: read load: which a copy in flight still writes
/@full_wait$/s/, %r[0-9]*;/, 0;/
