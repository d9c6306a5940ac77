# Nobody arrives for the copies.
# twin: cp_async_ring
# find: full_wait: lacks 64 of 64 arrivals
/@copied_noinc/d
