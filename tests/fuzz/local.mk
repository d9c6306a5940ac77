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

# make fuzz FUZZ_SECONDS=600: every target for that long, in a --enable-fuzz build. What it finds worth keeping goes
# to fuzz-corpus/NAME, a crash to ./crash-*.
FUZZ_SECONDS = 60

fuzz: $(FUZZ_TARGETS)
	@for target in $(FUZZ_TARGETS:tests/fuzz/%=%); do \
	  echo "== $$target"; \
	  $(MKDIR_P) fuzz-corpus/$$target; \
	  tests/fuzz/$$target -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
	    fuzz-corpus/$$target $(srcdir)/tests/fuzz/corpus/$$target || exit 1; \
	done
.PHONY: fuzz

FUZZ_TARGETS += tests/fuzz/num
tests_fuzz_num_SOURCES = tests/fuzz/num.c $(FUZZ_MAIN)
tests_fuzz_num_LDADD = $(TOOL_LIBS)
tests_fuzz_num_LDFLAGS = $(FUZZ_LDFLAGS)
EXTRA_DIST += tests/fuzz/corpus/num
