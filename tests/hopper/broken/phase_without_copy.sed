# A barrier completes twice for one copy.
# twin: write_back
# find: expect: more arrival
/@expect/p
