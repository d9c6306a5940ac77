# The copy swizzles by 128 bytes, the descriptor by 64.
# twin: wgmma_registers
# find: wgmma load_b: with a swizzle of 64 bytes, and the tensor copy wrote it with a swizzle of 128 bytes
s/4611686293305360384/-9223371761976803328/;s/4611686293305360386/-9223371761976803326/
