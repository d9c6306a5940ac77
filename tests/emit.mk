# tests of emit: append programs to UNIT_TESTS, scripts to BATS_TESTS, data to EXTRA_DIST
BATS_TESTS += tests/cli/hostile.bats tests/cli/chain.bats tests/cli/chain_wgmma.bats tests/cli/emit.bats tests/cli/store.bats tests/golden.bats
EXTRA_DIST += tests/golden
