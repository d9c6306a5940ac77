# red.async adds to whatever there is.
# twin: cluster_sum
# find: read: where nothing was written
# find: send: where nothing was written
/@zero/d
