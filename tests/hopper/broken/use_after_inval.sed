# The barrier ended before all have waited at it.
# twin: lifetime
# find: inval_copy wait_copy: which another thread may still use
/@copy_waited/d
