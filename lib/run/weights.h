/* Inputs by the names of tensors in safetensors files: the weights of a model. */
#ifndef KAIO_RUN_WEIGHTS_H
#define KAIO_RUN_WEIGHTS_H

#include "data/safetensors.h"
#include "run/args.h"

/* For each input of the contract that no argument names, and a tensor of its name, an argument
 * behind those that there are. */
typedef VEC(struct run_arg) run_arg_list;
void weights_complete(struct arena *a, const struct contract *c, const safetensors_list *w,
                      run_arg_list *args);

#endif
