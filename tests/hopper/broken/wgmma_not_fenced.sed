# The registers were written just before.
# twin: wgmma_types
# find: wgmma: no wgmma.fence
/@wgmma_fence/d
