/* The contract's launches with their values. For lib/run and lib/bench. */
#ifndef KAIO_RUN_PLAN_H
#define KAIO_RUN_PLAN_H

#include "run/run.h"

struct plan_launch {
    struct device_launch l; /* args point to value */
    const struct contract_launch *src;
    uint64_t *value; /* one per argument; buffers' addresses are filled in by plan_addresses() */
};
struct plan {
    struct plan_launch *v;
    size_t n; /* without those whose grid is empty */
};

/* After run_shapes(). m may be NULL. False with errors. */
bool plan_make(struct run *r, const struct ptx_module *m, struct plan *plan);
/* address: by run_buffer(). messages: of the buffer for messages, 0 where there is none. */
void plan_addresses(const struct run *r, struct plan *plan, const uint64_t *address,
                    uint64_t messages);

/* Evaluates an integer expression over the run's dimensions and scalars. */
bool run_eval(struct run *r, const struct lang_expr *e, int64_t *value);
/* "n is 1001 and k is 7": the names in an expression with their values; "" if it has none. */
const char *run_values_text(struct run *r, const struct lang_expr *e);

#endif
