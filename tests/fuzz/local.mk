# A fuzz target NAME is tests/fuzz/NAME.c with LLVMFuzzerTestOneInput(). 'make check' links it with replay.c,
# which runs it over tests/fuzz/corpus/NAME/*; './configure --enable-fuzz --enable-sanitize CC=clang'
# makes it a libFuzzer program. To add one:
#   FUZZ_TARGETS += tests/fuzz/NAME
#   tests_fuzz_NAME_SOURCES = tests/fuzz/NAME.c $(FUZZ_MAIN)
#   tests_fuzz_NAME_LDADD = $(TOOL_LIBS)
#   tests_fuzz_NAME_LDFLAGS = $(FUZZ_LDFLAGS)
#   EXTRA_DIST += tests/fuzz/corpus/NAME/...
EXTRA_DIST += tests/fuzz/replay.c
if FUZZ
FUZZ_MAIN =
else
FUZZ_MAIN = tests/fuzz/replay.c
endif
