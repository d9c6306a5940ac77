# The registers were written just before.
# twin: wgmma_types
# find: wgmma: wgmma.fence
/@wgmma_fence/d
