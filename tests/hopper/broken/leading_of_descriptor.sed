# The columns lie 8192 bytes apart in groups of 64, not 4096.
# twin: wgmma_mn
# find: result
s/or.b64  \(.*\)4611686293338849280/or.b64  \14611686293322072064/
