# wgmma reads what the threads laid out.
# twin: wgmma_types
# find: wgmma fill: fence.proxy.async
/@fence_fill/d
