# tests of the tree as a whole: layers, manuals, installation
BATS_TESTS += tests/layers.bats tests/man.bats tests/install.bats
EXTRA_DIST += tests/examples.awk
