# The copies need not know of the barrier yet.
# twin: bulk_ring
# find: load init_full: fence
/@fence_init/d
