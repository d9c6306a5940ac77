# The others may come to barriers that are none yet.
# twin: bulk_ring
# find: full_wait init_full: mbarrier.init is not ordered before
/@after_init/d
