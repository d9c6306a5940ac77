# The warp that copies does not wait for the one that makes the map.
# twin: grouped
# find: load publish: race on element 0 of '$maps'
/@publish/,/bar\.sync/{
    /bar\.sync/d
}
