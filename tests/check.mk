# tests of the sanitizer: kernels with a mistake each, and correct ones
BATS_TESTS += tests/check.bats
EXTRA_DIST += tests/check_one.sh tests/broken tests/clean

# the same of Hopper's instructions, in kernels that nvcc made
BATS_TESTS += tests/hopper.bats
EXTRA_DIST += tests/hopper_one.sh tests/hopper
