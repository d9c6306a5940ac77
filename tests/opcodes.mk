# every form of every instruction, as an H100 executes it
EXTRA_DIST += tests/opcodes/h100.golden
UNIT_TESTS += tests/opcodes/sim_opcodes
tests_opcodes_sim_opcodes_SOURCES = tests/opcodes/sim_opcodes.c \
	tests/opcodes/opcodes.h tests/opcodes/forms.c tests/opcodes/text.c tests/opcodes/memory.c tests/opcodes/values.c \
	tests/opcodes/run.h tests/opcodes/run.c tests/opcodes/golden.h tests/opcodes/golden.c \
	tests/opcodes/approx.h tests/opcodes/approx.c
tests_opcodes_sim_opcodes_LDADD = $(TOOL_LIBS)
