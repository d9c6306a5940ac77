# Data over a barrier that has not been ended.
# twin: lifetime
# find: reuse init_copy: store to the mbarrier
/@inval_copy/d
