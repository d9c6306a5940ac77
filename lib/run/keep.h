/* Inputs that stay on a device from one run to the next, so that what is unchanged is neither read,
 * made nor uploaded again.
 *
 * Of each parameter of a contract the contents used last are kept, by the words that name them and,
 * where these name a file, by what tells that the file is as it was (base/io.h). An input is the
 * buffer that a launch read; of an inout, which a launch changes, it is a copy from before.
 *
 * args.c says what is wanted and finds what there is; execute.c uses it and keeps what is new.
 */
#ifndef KAIO_RUN_KEEP_H
#define KAIO_RUN_KEEP_H

#include "run/run.h"

/* Of an open device. NULL: no memory. */
struct keep *keep_new(const struct device_ops *ops, struct device *dev);
/* Gives the device's memory back. NULL is allowed. */
void keep_free(struct keep *k);
bool keep_is_empty(const struct keep *k);

/* The contents of p, called `text` by the user, are to be kept; file: that they are read from,
 * NULL: they are made of the text. The shape of the same contents, if they are there already, else
 * NULL. */
const struct buffer *keep_wish(struct run *r, struct run_param *p, const char *text,
                               const char *file);
/* All shapes are known: sets p->kept where the contents are there, and gives back what is not of
 * use. */
void keep_settle(struct run *r);
/* Its address; of an inout that of the copy. */
uint64_t keep_address(const struct kept *e);
/* The contents of an input are on the device at `address`, in memory that begins there: they are
 * kept if they are to be, and then the memory is not the caller's any more: true. */
bool keep_buffer(struct run *r, struct run_param *p, uint64_t address);
/* The same of a program's state when a launch is over: what it holds is what the next launch begins
 * with. */
bool keep_state(struct run *r, struct run_param *p, uint64_t address);
/* What the device calls a buffer of a run that it outlives is copied: the arena's text goes. */
enum device_status keep_label(struct run *r, const struct device_ops *ops, struct device *dev,
                              uint64_t address, const struct device_label *label);

#endif
