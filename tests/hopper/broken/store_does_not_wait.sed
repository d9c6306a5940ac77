# What is on its way in goes out again.
# twin: write_back
# find: store load: in flight
/@full_wait/d
