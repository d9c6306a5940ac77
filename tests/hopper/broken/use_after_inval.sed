# The barrier ended before all have waited at it.
# twin: lifetime
# find: wait_copy: mbarrier.inval has ended it
/@copy_waited/d
