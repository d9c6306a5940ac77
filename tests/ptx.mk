# tests of ptx: append programs to UNIT_TESTS, scripts to BATS_TESTS, data to EXTRA_DIST
