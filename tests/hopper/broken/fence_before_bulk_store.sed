# The same of a bulk copy.
# twin: bulk_ring
# find: store write: no fence.proxy.async
/@fence_store/d
