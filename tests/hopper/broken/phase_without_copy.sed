# A barrier completes twice for one copy.
# twin: write_back
# find: expect: more arrivals
# find: load: 
# find: expect: 
/@expect/p
