# Nothing waits for the store whose result is read.
# twin: write_back
# find: read store: which a copy in flight still writes
/@wait$/d
