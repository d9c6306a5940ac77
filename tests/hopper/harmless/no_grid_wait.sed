# The simulator runs one launch after the other.
# twin: programmatic
/@grid_wait/d
