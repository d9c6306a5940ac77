/* Attention by the vendor's library (cuDNN), queued like everything of struct device_queue: what
 * kernels are compared with. Found at run time; a machine need not have it. */
#ifndef KAIO_RUN_SDPA_H
#define KAIO_RUN_SDPA_H

#include "data/dtype.h"
#include "run/device.h"

/* What a problem has buffers of, each once. */
enum sdpa_buffer {
    SDPA_Q,
    SDPA_K,
    SDPA_V,
    SDPA_O,
    SDPA_LSE,
    SDPA_DO,
    SDPA_DQ,
    SDPA_DK,
    SDPA_DV,
    SDPA_BIAS,
    SDPA_SLOPE,
    SDPA_ROWS,    /* i32: how many queries each sequence has */
    SDPA_LENGTHS, /* i32: how many keys */
    SDPA_PAGES,   /* i32: where k and v lie in pages, the pages of each sequence */
    SDPA_BUFFERS,
};

/* Elements and strides by batch, head, row and column. Of k and v in pages: by page, head, place in
 * the page, column. */
struct sdpa_tensor {
    bool is_there; /* false: the problem has none */
    enum dtype type;
    uint64_t dim[4], stride[4];
};

/* o = softmax(mask(cap(scale q k^T) + bias - slope (i + shift - j))) v, or the gradients of that.
 */
struct sdpa_problem {
    struct sdpa_tensor tensor[SDPA_BUFFERS];
    bool backward;
    uint64_t batch, heads, kv_heads, m, n, d, e;
    double scale, cap; /* cap 0: none */
    bool causal;       /* j <= i + shift; where there are lengths, shift is length - m */
    int64_t shift;
    uint64_t window; /* j + window > i + shift; 0: none */
};

struct sdpa_plan; /* a problem made ready */

struct device_sdpa {
    /* DEVICE_ABSENT: no library; DEVICE_REFUSED: it does not take such a problem. */
    enum device_status (*plan)(struct device *dev, const struct sdpa_problem *p,
                               struct sdpa_plan **plan, struct diags *d);
    /* Queues it, or records it. address: by enum sdpa_buffer. */
    enum device_status (*execute)(struct device *dev, struct sdpa_plan *plan,
                                  const uint64_t *address, struct diags *d);
    void (*discard)(struct device *dev, struct sdpa_plan *plan);
    /* "cuDNN 9.19.0"; after a plan was made. */
    const char *(*version)(struct device *dev);
};

#endif
