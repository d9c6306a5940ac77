# Data over a barrier that has not been ended.
# twin: lifetime
# find: reuse: mbarrier
/@inval_copy/d
