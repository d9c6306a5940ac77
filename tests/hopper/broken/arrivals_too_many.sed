# .noinc beside an arrival of the thread: twice as many as the barrier counts.
# twin: cp_async_ring
# find: read copy: in flight
/@copied$/s/arrive.shared/arrive.noinc.shared/
