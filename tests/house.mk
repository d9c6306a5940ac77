# tests of the tree as a whole: layers, manuals, installation
BATS_TESTS += tests/layers.bats tests/man.bats
EXTRA_DIST += tests/examples.awk
