bin_PROGRAMS += tools/kaio-emit/kaio-emit
tools_kaio_emit_kaio_emit_SOURCES = tools/kaio-emit/main.c
tools_kaio_emit_kaio_emit_LDADD = $(TOOL_LIBS)
