# tests of lang
UNIT_TESTS += tests/unit/lang_expr tests/unit/lang_text
tests_unit_lang_expr_SOURCES = tests/unit/lang_expr.c
tests_unit_lang_expr_LDADD = $(TOOL_LIBS)
tests_unit_lang_text_SOURCES = tests/unit/lang_text.c
tests_unit_lang_text_LDADD = $(TOOL_LIBS)
