# The tile is stored by a tensor copy that need not see what the threads wrote.
# twin: swizzle
# find: store write: no fence.proxy.async
/@fence_store/d
