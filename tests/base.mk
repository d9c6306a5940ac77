# tests of lib/base
EXTRA_DIST += tests/unit/tap.h

UNIT_TESTS += tests/unit/base_arena
tests_unit_base_arena_SOURCES = tests/unit/base_arena.c
tests_unit_base_arena_LDADD = $(TOOL_LIBS)

UNIT_TESTS += tests/unit/base_memory
tests_unit_base_memory_SOURCES = tests/unit/base_memory.c
tests_unit_base_memory_LDADD = $(TOOL_LIBS)

UNIT_TESTS += tests/unit/base_num
tests_unit_base_num_SOURCES = tests/unit/base_num.c
tests_unit_base_num_LDADD = $(TOOL_LIBS)

UNIT_TESTS += tests/unit/base_json
tests_unit_base_json_SOURCES = tests/unit/base_json.c
tests_unit_base_json_LDADD = $(TOOL_LIBS)

UNIT_TESTS += tests/unit/base_diag
tests_unit_base_diag_SOURCES = tests/unit/base_diag.c
tests_unit_base_diag_LDADD = $(TOOL_LIBS)

UNIT_TESTS += tests/unit/base_io
tests_unit_base_io_SOURCES = tests/unit/base_io.c
tests_unit_base_io_LDADD = $(TOOL_LIBS)

check_PROGRAMS += tests/unit/cli_probe
tests_unit_cli_probe_SOURCES = tests/unit/cli_probe.c
tests_unit_cli_probe_LDADD = $(TOOL_LIBS)
BATS_TESTS += tests/cli/base.bats
