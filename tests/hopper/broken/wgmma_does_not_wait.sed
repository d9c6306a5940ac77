# The operands of wgmma are on their way.
# twin: wgmma_types
# find: load_a wgmma: in flight
/@full_wait/d
