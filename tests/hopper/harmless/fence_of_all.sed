# A fence of every space.
# twin: bulk_ring
/@fence_store/s/.shared::cta//
