# The memory of a barrier becomes another without an end of the first.
# twin: lifetime
# find: init_copy init_all: 
# find: init_copy: 
/@inval_all/d
