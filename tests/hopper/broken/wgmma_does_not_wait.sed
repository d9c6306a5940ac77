# The operands of wgmma are on their way.
# twin: wgmma_types
# find: wgmma load_a: in flight
# find: wgmma load_b: in flight
/@full_wait/d
