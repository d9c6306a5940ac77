# tests of lib/ptx
UNIT_TESTS += tests/unit/ptx_judge
tests_unit_ptx_judge_SOURCES = tests/unit/ptx_judge.c tests/unit/ptxas.h
tests_unit_ptx_judge_LDADD = $(TOOL_LIBS)
UNIT_TESTS += tests/unit/ptx_build
tests_unit_ptx_build_SOURCES = tests/unit/ptx_build.c tests/unit/ptx_equal.h
tests_unit_ptx_build_LDADD = $(TOOL_LIBS)
UNIT_TESTS += tests/unit/ptx_text
tests_unit_ptx_text_SOURCES = tests/unit/ptx_text.c tests/unit/ptx_equal.h tests/unit/ptxas.h
tests_unit_ptx_text_LDADD = $(TOOL_LIBS)
UNIT_TESTS += tests/unit/ptx_bad
tests_unit_ptx_bad_SOURCES = tests/unit/ptx_bad.c tests/unit/ptxas.h
tests_unit_ptx_bad_LDADD = $(TOOL_LIBS)
EXTRA_DIST += tests/ptx/good tests/ptx/nvcc

FUZZ_TARGETS += tests/fuzz/fuzz_ptx
tests_fuzz_fuzz_ptx_SOURCES = tests/fuzz/fuzz_ptx.c $(FUZZ_MAIN)
tests_fuzz_fuzz_ptx_LDADD = $(TOOL_LIBS)
tests_fuzz_fuzz_ptx_LDFLAGS = $(FUZZ_LDFLAGS)
EXTRA_DIST += tests/fuzz/corpus/fuzz_ptx
