bin_PROGRAMS += tools/kaio-run/kaio-run
tools_kaio_run_kaio_run_SOURCES = tools/kaio-run/main.c tools/kaio-run/job.h tools/kaio-run/work.c \
	tools/kaio-run/print.c tools/kaio-run/lines.c tools/kaio-run/answer.c
tools_kaio_run_kaio_run_LDADD = $(TOOL_LIBS)
