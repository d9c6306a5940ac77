# The kernel library: every specs/FAMILY/NAME.yaml is shipped and installed under $(specdir)/specs.
# append to nobase_dist_spec_DATA
nobase_dist_spec_DATA =
