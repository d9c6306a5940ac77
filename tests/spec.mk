# tests of spec: diagnostics and the launch contract
UNIT_TESTS += tests/unit/spec_contract tests/unit/spec_diag
tests_unit_spec_contract_SOURCES = tests/unit/spec_contract.c
tests_unit_spec_contract_LDADD = $(TOOL_LIBS)
tests_unit_spec_diag_SOURCES = tests/unit/spec_diag.c
tests_unit_spec_diag_LDADD = $(TOOL_LIBS)
EXTRA_DIST += tests/diag
