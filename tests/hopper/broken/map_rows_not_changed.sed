# The map still has all of x.
# twin: grouped
# find: result
/@rows$/d
