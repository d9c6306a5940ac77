# Of two operands one is never loaded.
# twin: wgmma_ring
# find: full_wait: lacks 8192 bytes
/@load_b/d
