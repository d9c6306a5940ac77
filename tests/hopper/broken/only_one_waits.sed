# One thread waits, and tells nobody.
# twin: swizzle
# find: read load: in flight
/@loaded/d
