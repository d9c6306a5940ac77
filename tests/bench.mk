# tests of kaio-bench and of the comparison with PyTorch
BATS_TESTS += tests/cli/bench.bats
EXTRA_DIST += tests/pytorch.py tests/data/bench
