bin_PROGRAMS += tools/kaio-verify/kaio-verify
tools_kaio_verify_kaio_verify_SOURCES = tools/kaio-verify/main.c
tools_kaio_verify_kaio_verify_LDADD = $(TOOL_LIBS)
