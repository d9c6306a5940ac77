# The fence is behind the barrier, and not where the copy is issued.
# twin: swizzle
# find: store write: no fence.proxy.async
/@fence_store/d
/@store$/{
    # after the copy
    a fence.proxy.async.shared::cta;
}
