# tests of lib/ref
EXTRA_DIST += tests/unit/ref_case.h

UNIT_TESTS += tests/unit/ref_eval tests/unit/ref_literals tests/unit/ref_bounds tests/unit/ref_sums tests/unit/ref_products tests/unit/ref_rescaled tests/unit/ref_rows tests/unit/ref_masks
tests_unit_ref_products_SOURCES = tests/unit/ref_products.c
tests_unit_ref_products_LDADD = $(TOOL_LIBS)
tests_unit_ref_rescaled_SOURCES = tests/unit/ref_rescaled.c
tests_unit_ref_rescaled_LDADD = $(TOOL_LIBS)
tests_unit_ref_rows_SOURCES = tests/unit/ref_rows.c
tests_unit_ref_rows_LDADD = $(TOOL_LIBS)
tests_unit_ref_masks_SOURCES = tests/unit/ref_masks.c
tests_unit_ref_masks_LDADD = $(TOOL_LIBS)
tests_unit_ref_sums_SOURCES = tests/unit/ref_sums.c
tests_unit_ref_sums_LDADD = $(TOOL_LIBS)
tests_unit_ref_eval_SOURCES = tests/unit/ref_eval.c
tests_unit_ref_literals_SOURCES = tests/unit/ref_literals.c
tests_unit_ref_literals_LDADD = $(TOOL_LIBS)
tests_unit_ref_eval_LDADD = $(TOOL_LIBS)
tests_unit_ref_bounds_SOURCES = tests/unit/ref_bounds.c
tests_unit_ref_bounds_LDADD = $(TOOL_LIBS)
