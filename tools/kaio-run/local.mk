bin_PROGRAMS += tools/kaio-run/kaio-run
tools_kaio_run_kaio_run_SOURCES = tools/kaio-run/main.c
tools_kaio_run_kaio_run_LDADD = $(TOOL_LIBS)
