# sources of lib/lang: append to lib_libkaiocore_la_SOURCES
