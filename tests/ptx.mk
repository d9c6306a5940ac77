# tests of lib/ptx
UNIT_TESTS += tests/unit/ptx_judge
tests_unit_ptx_judge_SOURCES = tests/unit/ptx_judge.c
tests_unit_ptx_judge_LDADD = $(TOOL_LIBS)
