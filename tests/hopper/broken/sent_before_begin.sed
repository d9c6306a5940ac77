# The receiver may not have begun.
# twin: cluster_sum
# find: send init: mbarrier.init is not ordered before
/@begin_/d
