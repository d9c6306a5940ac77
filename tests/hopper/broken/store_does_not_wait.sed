# What is on its way in goes out again.
# twin: write_back
# find: store load: which a copy in flight still writes
/@full_wait/d
