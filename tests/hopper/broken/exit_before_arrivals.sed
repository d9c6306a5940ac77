# The blocks arrive at each other, and one may have ended.
# twin: multicast
# find: release: 
/@end_/d
