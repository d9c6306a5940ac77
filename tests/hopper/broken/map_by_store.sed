# A store into the map, whose layout nobody knows.
# twin: grouped
# find: load: has been written to; only tensormap.replace can change one
/@rows$/s/tensormap.*\[\(%r[0-9]*\)\], 1,/st.shared.b32 [\1+44],/
