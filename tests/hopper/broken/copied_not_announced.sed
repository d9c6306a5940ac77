# Nobody arrives for the copies.
# twin: cp_async_ring
# find: full_wait: mbarrier
/@copied_noinc/d
