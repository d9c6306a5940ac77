# A bulk copy of a size that is no multiple of 16.
# twin: bulk_ring
# find: load: 16
# launch: s/n=3852/n=3854/
