# A block sends copies to one that has not begun.
# twin: multicast
# find: load: 
/@begin_/d
