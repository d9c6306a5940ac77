# wgmma reads what the threads laid out.
# twin: wgmma_types
# find: wgmma fill: no fence.proxy.async
/@fence_fill/d
