# red.async adds to whatever there is.
# twin: cluster_sum
# find: send: 
/@zero/d
