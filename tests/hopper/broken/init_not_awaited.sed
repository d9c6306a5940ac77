# The others may come to barriers that are none yet.
# twin: bulk_ring
# find: - : mbarrier
/@after_init/d
