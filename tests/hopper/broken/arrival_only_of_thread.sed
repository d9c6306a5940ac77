# The same, of the other form.
# twin: cp_async_ring
# find: read copy: in flight
/@copied$/d
