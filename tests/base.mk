# tests of lib/base
EXTRA_DIST += tests/unit/tap.h

UNIT_TESTS += tests/unit/base_arena
tests_unit_base_arena_SOURCES = tests/unit/base_arena.c
tests_unit_base_arena_LDADD = $(TOOL_LIBS)
