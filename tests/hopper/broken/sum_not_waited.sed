# st.async is on its way.
# twin: cluster_sum
# find: read send: 
/@full_wait/d
