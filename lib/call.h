/* What the files of the public API share: a struct kaio, and a call in it. */
#ifndef KAIO_CALL_H
#define KAIO_CALL_H

#include "kaio.h"

#include "run/device.h"
#include "spec/spec.h"

struct kaio {
    struct arena
        *told; /* what messages and message[] are in; NULL: there were none, or no memory */
    const char *messages; /* "": none */
    struct kaio_message *message;
    size_t nmessage;
    char *printed;        /* malloc'd; NULL: nothing; by the kernel */
    struct arena *memory; /* what outlives a call: definitions */
    VEC(struct spec_define) defines;
    struct kaio_device *devices; /* kaio_device.c; those that are open */
};

struct run;
struct ref;

/* One call: its arguments, and what it works with. */
struct call {
    struct kaio *k;
    struct arena *arena;
    struct diags *d;
    struct buf report;       /* shown after the diagnostics */
    const char *name, *text; /* the spec or the PTX */
    size_t len;
    const char *target, *device;
    const struct kaio_arg *arg;
    size_t narg;
    char **ptx; /* results of kaio_emit() */
    size_t *ptx_len;
    void *more; /* of kaio_device.c */
    /* what is to be given back when memory runs out; NULL: nothing of the kind */
    const struct device_ops *ops;
    struct device *dev;
    struct run *run;
    struct ref *ref;
};

/* Does the work in an arena of its own, with "out of memory" caught, and keeps the messages. */
typedef enum kaio_status call_work(struct call *c);
enum kaio_status call_do(struct call *c, call_work *f);

/* Says that there is no memory, outside of a call. */
enum kaio_status call_no_memory(struct kaio *k);
enum kaio_status call_status(enum device_status s);
/* device_options.print with a struct buf as its context, and what it has become. */
void call_print(void *ctx, const char *text, size_t n);
void call_printed(struct kaio *k, const struct buf *text);

/* kaio_device.c */
void kaio_close_all(struct kaio *k);

#endif
