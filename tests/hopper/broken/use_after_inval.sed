# The barrier ended before all have waited at it.
# twin: lifetime
# find: wait_copy: 
# find: inval_copy: 
/@copy_waited/d
