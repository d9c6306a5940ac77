# tests of spec: diagnostics and the launch contract
UNIT_TESTS += tests/unit/spec_contract
tests_unit_spec_contract_SOURCES = tests/unit/spec_contract.c
tests_unit_spec_contract_LDADD = $(TOOL_LIBS)
