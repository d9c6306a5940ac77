# The blocks arrive at each other, and one may have ended.
# twin: multicast
# find: release: which may have exited
/@end_/d
