/* The memory that an evaluation's results take: asked for only where it is there. */
#ifndef KAIO_REF_STORAGE_H
#define KAIO_REF_STORAGE_H

#include "ref/program.h"

struct ref_storage {
    struct program *p;
    struct diags *d;
    VEC(void *) v;
};

/* n zeros of some size; NULL: no memory. */
void *ref_storage_take(struct ref_storage *s, uint64_t n, size_t size);
void ref_storage_free(struct ref_storage *s);
/* Memory for the elements of t, all or those that are evaluated at a time; false with an error
 * where there is none. */
bool ref_storage_tensor(struct ref_storage *s, struct tensor *t);
void ref_storage_drop(struct ref_storage *s, struct tensor *t);
/* An error: what n values of t would take. False, always. */
bool ref_storage_refuse(const struct ref_storage *s, const struct tensor *t, uint64_t n);
/* What every element of every intermediate and output takes together. */
uint64_t ref_storage_dense(const struct program *p);
/* Takes that for all of them; false with an error where it is not there. */
bool ref_storage_take_dense(struct ref_storage *s);

#endif
