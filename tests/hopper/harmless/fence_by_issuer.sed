# The thread that issues the copy fences, behind the barrier.
# twin: swizzle
/@fence_store/d
/@written/a fence.proxy.async.shared::cta;
