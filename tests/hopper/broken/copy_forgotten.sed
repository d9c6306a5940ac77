# Of two operands one is never loaded.
# twin: wgmma_ring
# find: full_wait: mbarrier
/@load_b/d
