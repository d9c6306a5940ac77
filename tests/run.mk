# tests of lib/run and kaio-run
UNIT_TESTS += tests/unit/run_execute
tests_unit_run_execute_SOURCES = tests/unit/run_execute.c
tests_unit_run_execute_LDADD = $(TOOL_LIBS)

BATS_TESTS += tests/cli/run.bats
EXTRA_DIST += tests/data/run
