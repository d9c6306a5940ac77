# Nothing waits for the store whose result is read.
# twin: write_back
# find: read store: 
/@wait$/d
