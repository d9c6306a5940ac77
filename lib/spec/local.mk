# sources of lib/spec: append to lib_libkaiocore_la_SOURCES
