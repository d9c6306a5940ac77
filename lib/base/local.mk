lib_libkaiocore_la_SOURCES += \
	lib/base/arena.c lib/base/arena.h \
	lib/base/buf.c lib/base/buf.h \
	lib/base/diag.c lib/base/diag.h lib/base/finding.c lib/base/finding.h \
	lib/base/suppress.c lib/base/suppress.h \
	lib/base/internal.c lib/base/internal.h \
	lib/base/num.c lib/base/num.h \
	lib/base/parallel.c lib/base/parallel.h \
	lib/base/json.c lib/base/json.h \
	lib/base/io.c lib/base/io.h lib/base/memory.c lib/base/memory.h lib/base/cache.c lib/base/cache.h \
	lib/base/cli.c lib/base/cli.h \
	lib/base/cli_print.c lib/base/cli_print.h \
	lib/base/progress.c lib/base/progress.h
