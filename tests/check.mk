# tests of the sanitizer: kernels with a mistake each, and correct ones
BATS_TESTS += tests/check.bats
EXTRA_DIST += tests/check_one.sh tests/broken tests/clean
