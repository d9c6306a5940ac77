/* The contract's launches with their values. For lib/run and lib/bench. */
#ifndef KAIO_RUN_PLAN_H
#define KAIO_RUN_PLAN_H

#include "run/run.h"

struct plan_map {
    const struct contract_map *src;
    struct device_tensor_map m;             /* address: by plan_addresses() */
    uint64_t at;                            /* bytes from the start of its buffer */
    unsigned char bytes[DEVICE_TENSOR_MAP]; /* by plan_maps() */
    unsigned char *member;                  /* where it goes in a struct; NULL: it is in none */
};
/* An argument, or a member of a struct, whose value is known by itself. */
struct plan_field {
    const struct contract_arg *arg;
    unsigned char *to;
};
struct plan_launch {
    struct device_launch l; /* args point to value, to a map's or to a struct's bytes */
    const struct contract_launch *src;
    uint64_t *value; /* one per argument; buffers' addresses are filled in by plan_addresses() */
    VEC(struct plan_field) fields;
    struct plan_map *map; /* in the order of the arguments and members that are maps */
    size_t nmap;
};
struct plan {
    struct plan_launch *v;
    size_t n; /* without those whose grid is empty */
};

/* The device's multiprocessors are what a grid goes by. */
void plan_for(struct run *r, const struct device_ops *ops, struct device *dev);
/* After run_shapes(). m may be NULL. False with errors. */
bool plan_make(struct run *r, const struct ptx_module *m, struct plan *plan);
/* address: by run_buffer(). messages: of the buffer for messages, 0 where there is none. */
void plan_addresses(const struct run *r, struct plan *plan, const uint64_t *address,
                    uint64_t messages);
/* Puts the values of the run's scalars in once more, after they have changed. */
bool plan_scalars(struct run *r, struct plan *plan);
/* Encodes the tensor maps for a device, after plan_addresses(). */
enum device_status plan_maps(struct plan *plan, const struct device_ops *ops, struct device *dev,
                             struct diags *d);
/* How many temps every run of the launches finds zero, and queues their clearing. address: by
 * run_buffer(). */
unsigned plan_clears(const struct run *r);
enum device_status plan_clear(const struct run *r, const struct device_queue *queue,
                              struct device *dev, const uint64_t *address, struct diags *d);

/* For plan.c: the values of a launch's maps but for their addresses, checked. */
bool plan_read_maps(struct run *r, const struct contract_launch *src, struct plan_launch *p);
/* The parameter's or temp's number as run_buffer() takes it; negative: it is neither. */
int plan_buffer(const struct run *r, const struct lang_symbol *sym);

/* Evaluates an integer expression over the run's dimensions and scalars. */
bool run_eval(struct run *r, const struct lang_expr *e, int64_t *value);
bool run_dim_value(struct run *r, const struct lang_symbol *dim, int64_t *value);
bool run_eval_real(struct run *r, const struct lang_expr *e, double *value);
/* "n is 1001 and k is 7": the names in an expression with their values; "" if it has none. */
const char *run_values_text(struct run *r, const struct lang_expr *e);

#endif
