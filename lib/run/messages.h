/* The buffer in which a kernel's print() and assert() leave their records (data/message.h). For
 * lib/run and lib/bench; what was read is in run.h's struct run_messages. */
#ifndef KAIO_RUN_MESSAGES_H
#define KAIO_RUN_MESSAGES_H

#include "run/plan.h"

/* The buffer on a device; address 0: the contract has no messages. */
struct message_buffer {
    const struct device_ops *ops;
    struct device *dev;
    uint64_t address, bytes; /* the header included */
};

/* Has one of the launches a buffer for messages among its arguments? */
bool messages_wanted(const struct run *r);
/* record_bytes: room for records. */
enum device_status messages_allocate(struct run *r, const struct device_ops *ops,
                                     struct device *dev, uint64_t record_bytes,
                                     struct message_buffer *b);
void messages_release(struct message_buffer *b);
/* Empties the buffer for the next launch. */
enum device_status messages_reset(struct run *r, const struct message_buffer *b);
/* Appends what the launch left to r->messages. DEVICE_FAULT, with errors, when an assertion did not
 * hold; a warning when messages were lost. after_fault: the launch ended early, so errors here say
 * nothing new. */
enum device_status messages_drain(struct run *r, const struct message_buffer *b,
                                  const struct device_launch *l, bool by_time, bool after_fault);

#endif
