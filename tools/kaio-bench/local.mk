bin_PROGRAMS += tools/kaio-bench/kaio-bench
tools_kaio_bench_kaio_bench_SOURCES = \
	tools/kaio-bench/main.c \
	tools/kaio-bench/problems.c \
	tools/kaio-bench/rows.c \
	tools/kaio-bench/session.h \
	tools/kaio-bench/tune.c
tools_kaio_bench_kaio_bench_LDADD = $(TOOL_LIBS)
