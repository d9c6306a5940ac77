# tests of the sanitizer: kernels with a mistake each, and correct ones
BATS_TESTS += tests/check.bats
EXTRA_DIST += tests/check_one.sh tests/broken tests/clean tests/races_one.sh tests/races tests/corpus.sh

# the same of Hopper's instructions, in kernels that nvcc made
BATS_TESTS += tests/hopper.bats
EXTRA_DIST += tests/launch_one.sh tests/hopper
EXTRA_DIST += tests/expect.py

# ordinary CUDA C and Triton
BATS_TESTS += tests/cuda.bats
EXTRA_DIST += tests/cuda tests/triton

BATS_TESTS += tests/cli/report.bats
EXTRA_DIST += tests/data/report
BATS_TESTS += tests/cli/stops.bats
EXTRA_DIST += tests/data/stops
