# The copies need not know of the barrier yet.
# twin: bulk_ring
# find: load init_full: no fence.mbarrier_init
/@fence_init/d
