# Programs to read and to run; tests/cli/examples.bats runs them.
EXTRA_DIST += \
	examples/README.md \
	examples/bfs/README.md \
	examples/bfs/bfs.yaml \
	examples/cg/README.md \
	examples/cg/cg.yaml \
	examples/heat/README.md \
	examples/heat/heat.yaml \
	examples/life/README.md \
	examples/life/life.yaml \
	examples/llama/README.md \
	examples/llama/generate.py \
	examples/llama/llama.yaml \
	examples/llama/reference.py \
	examples/llama/weights.py \
	examples/mlp/README.md \
	examples/mlp/mlp.yaml
