# tests of lang
UNIT_TESTS += tests/unit/lang_expr tests/unit/lang_launch tests/unit/lang_text
tests_unit_lang_expr_SOURCES = tests/unit/lang_expr.c
tests_unit_lang_expr_LDADD = $(TOOL_LIBS)
tests_unit_lang_launch_SOURCES = tests/unit/lang_launch.c
tests_unit_lang_launch_LDADD = $(TOOL_LIBS)
tests_unit_lang_text_SOURCES = tests/unit/lang_text.c
tests_unit_lang_text_LDADD = $(TOOL_LIBS)

FUZZ_TARGETS += tests/fuzz/fuzz_expr
tests_fuzz_fuzz_expr_SOURCES = tests/fuzz/fuzz_expr.c $(FUZZ_MAIN)
tests_fuzz_fuzz_expr_LDADD = $(TOOL_LIBS)
tests_fuzz_fuzz_expr_LDFLAGS = $(FUZZ_LDFLAGS)
EXTRA_DIST += tests/fuzz/corpus/fuzz_expr
