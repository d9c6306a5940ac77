# To wait for a phase that is complete costs nothing.
# twin: bulk_ring
/@full_wait$/p
