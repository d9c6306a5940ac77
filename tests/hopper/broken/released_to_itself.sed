# Both arrivals are at the own block: the other fills what is being read.
# twin: multicast
# find: load: which a copy in flight still writes
/@release_mapa/s/mapa.shared::cluster.u32 there, \(%r[0-9]*\), %r[0-9]*/mov.u32 there, \1/
