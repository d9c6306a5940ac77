# The copy does not swizzle, the descriptor does.
# twin: wgmma_types
# find: wgmma load_a: swizzle
# find: wgmma load_b: swizzle
# launch: s/swizzle: 64/swizzle: 0/g
