# A fence for more than has to see it.
# twin: grouped
/@acquire/s/gpu/sys/
