/* Convolutions by the vendor's library (cuDNN), queued like everything of struct device_queue: what
 * kernels are compared with. Found at run time; a machine need not have it. */
#ifndef KAIO_RUN_CONV_H
#define KAIO_RUN_CONV_H

#include "data/dtype.h"
#include "run/device.h"

enum conv_kind {
    CONV_FORWARD, /* y from x and w */
    CONV_DATA,    /* x from y and w: the gradient, or a transposed convolution */
    CONV_FILTER,  /* w from x and y */
};
enum conv_operand { CONV_X, CONV_W, CONV_Y, CONV_OPERANDS };
enum { CONV_SPATIAL_MOST = 3, CONV_RANK_MOST = CONV_SPATIAL_MOST + 2 };

/* Elements and strides: of x and y by image, channel and place, of w by filter, channel of its
 * group and place. */
struct conv_tensor {
    enum dtype type;
    uint64_t dim[CONV_RANK_MOST], stride[CONV_RANK_MOST];
};

/* y[n,k,i] = sum over c, u of x[n, c, i * stride + u * dilation - pre] * w[k,c,u], or one of its
 * gradients. There are as many groups as x has channels for one of w's. */
struct conv_problem {
    enum conv_kind kind;
    unsigned spatial; /* 2 or 3 */
    struct conv_tensor tensor[CONV_OPERANDS];
    int64_t pre[CONV_SPATIAL_MOST], post[CONV_SPATIAL_MOST]; /* zeros on both sides of x */
    int64_t stride[CONV_SPATIAL_MOST], dilation[CONV_SPATIAL_MOST];
    bool tf32; /* of f32: factors may be rounded to tf32 */
};

enum { CONV_CHOICES_MOST = 8 };

struct conv_plan; /* a problem made ready, in several ways */

struct device_conv {
    /* DEVICE_ABSENT: no library; DEVICE_REFUSED: it does not take such a problem. */
    enum device_status (*plan)(struct device *dev, const struct conv_problem *p,
                               struct conv_plan **plan, struct diags *d);
    /* How many ways there are, the one first that the library thinks best; 1 at least. */
    unsigned (*choices)(const struct conv_plan *plan);
    /* Queues it, or records it. address: by enum conv_operand. */
    enum device_status (*execute)(struct device *dev, struct conv_plan *plan, unsigned choice,
                                  const uint64_t *address, struct diags *d);
    void (*discard)(struct device *dev, struct conv_plan *plan);
    /* "cuDNN 9.19.0"; after a plan was made. */
    const char *(*version)(struct device *dev);
};

#endif
