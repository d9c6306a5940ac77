# One thread waits, and tells nobody.
# twin: swizzle
# find: read load: in flight
# find: read load: 
/@loaded/d
