# The receiver may not have begun.
# twin: cluster_sum
# find: send: 
/@begin_/d
