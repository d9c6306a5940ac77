# A plain arrival does not wait for cp.async.
# twin: cp_async_ring
# find: read copy: in flight
/@copied_noinc/s/cp.async.mbarrier.arrive.noinc.shared::cta.b64 /mbarrier.arrive.shared::cta.b64 _, /
