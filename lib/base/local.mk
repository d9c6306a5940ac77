lib_libkaiocore_la_SOURCES += \
	lib/base/arena.c lib/base/arena.h \
	lib/base/buf.c lib/base/buf.h \
	lib/base/diag.c lib/base/diag.h
