bin_PROGRAMS += tools/kaio-emit/kaio-emit
tools_kaio_emit_kaio_emit_SOURCES = \
	tools/kaio-emit/main.c \
	tools/kaio-emit/print.c \
	tools/kaio-emit/print.h
tools_kaio_emit_kaio_emit_LDADD = $(TOOL_LIBS)
