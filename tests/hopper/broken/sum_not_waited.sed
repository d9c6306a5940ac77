# st.async is on its way.
# twin: cluster_sum
# find: read send: which a copy in flight still writes
/@full_wait/d
