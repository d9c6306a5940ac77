# Of the warpgroup only one warp gives registers back.
# twin: wgmma_ring
# find: less: the warps of a warpgroup must execute the same
/@less/s/^\t\(.*\)$/\t{ .reg .pred rest; .reg .b32 tid; mov.u32 tid, %tid.x; setp.ge.u32 rest, tid, 32;\n\t@rest bra behind;\n\t\1\nbehind:\n\t}/
