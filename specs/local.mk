# The kernel library: every specs/FAMILY/NAME.yaml is shipped and installed under $(specdir)/specs.
# append to nobase_dist_spec_DATA
nobase_dist_spec_DATA = \
	specs/elementwise/clamp_scale_bf16.yaml \
	specs/elementwise/clamp_scale_f16.yaml \
	specs/elementwise/clamp_scale_f32.yaml \
	specs/elementwise/gelu.yaml \
	specs/elementwise/gelu_tanh.yaml \
	specs/elementwise/relu.yaml \
	specs/elementwise/saxpy.yaml \
	specs/elementwise/saxpy_body.yaml \
	specs/elementwise/silu_gate.yaml \
	specs/elementwise/vector_add.yaml \
	specs/gather/embedding.yaml \
	specs/graph/bfs_step.yaml \
	specs/graph/spmv.yaml \
	specs/graphics/mandelbrot_f32.yaml \
	specs/graphics/mandelbrot_f64.yaml \
	specs/integer/collatz.yaml \
	specs/layout/transpose.yaml \
	specs/layout/transpose_tiled.yaml \
	specs/matmul/naive.yaml \
	specs/matmul/tiled16.yaml \
	specs/matmul/tiled64.yaml \
	specs/norm/layer_norm.yaml \
	specs/norm/rms_norm.yaml \
	specs/norm/softmax.yaml \
	specs/physics/nbody.yaml \
	specs/quant/int8_dequant.yaml \
	specs/random/black_scholes.yaml \
	specs/random/monte_carlo_pi.yaml \
	specs/random/option_paths.yaml \
	specs/reduce/argmax.yaml \
	specs/reduce/block_max.yaml \
	specs/reduce/block_sum.yaml \
	specs/reduce/histogram.yaml \
	specs/scan/block_scan.yaml \
	specs/scan/compact.yaml \
	specs/sort/bitonic.yaml \
	specs/sort/radix_pass.yaml \
	specs/stencil/blur.yaml \
	specs/sync/spin_lock.yaml
