# A block sends copies to one that has not begun.
# twin: multicast
# find: load: not ordered before
# find: expect init_full: not ordered before
/@begin_/d
