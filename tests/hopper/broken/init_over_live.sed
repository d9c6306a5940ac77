# The memory of a barrier becomes another without an end of the first.
# twin: lifetime
# find: init_copy init_all: there is already an mbarrier
/@inval_all/d
