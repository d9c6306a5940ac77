bin_PROGRAMS += tools/kaio-verify/kaio-verify
tools_kaio_verify_kaio_verify_SOURCES = \
	tools/kaio-verify/code.c \
	tools/kaio-verify/cost.c \
	tools/kaio-verify/main.c \
	tools/kaio-verify/files.c \
	tools/kaio-verify/formats.c \
	tools/kaio-verify/golden.c \
	tools/kaio-verify/program.c \
	tools/kaio-verify/repeat.c \
	tools/kaio-verify/rows.c \
	tools/kaio-verify/run.c \
	tools/kaio-verify/shapes.c \
	tools/kaio-verify/steps.c \
	tools/kaio-verify/trial.c \
	tools/kaio-verify/trial.h \
	tools/kaio-verify/verify.h \
	tools/kaio-verify/watch.c \
	tools/kaio-verify/words.c
tools_kaio_verify_kaio_verify_LDADD = $(TOOL_LIBS)
