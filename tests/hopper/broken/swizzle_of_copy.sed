# The copy does not swizzle, the descriptor does.
# twin: wgmma_types
# find: wgmma load_b: with a swizzle of 64 bytes, and the tensor copy wrote it with no swizzle
# launch: s/swizzle: 64/swizzle: 0/g
