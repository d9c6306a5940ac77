bin_PROGRAMS += tools/kaio-bench/kaio-bench
tools_kaio_bench_kaio_bench_SOURCES = tools/kaio-bench/main.c
tools_kaio_bench_kaio_bench_LDADD = $(TOOL_LIBS)
