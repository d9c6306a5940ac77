#include <config.h>

#include "run/choose.h"

#include "base/num.h"

bool device_parse(const char *text, struct device_choice *out)
{
    static const char cuda[] = "cuda:";
    uint64_t n = 0;
    *out = (struct device_choice){0};
    if (strcmp(text, "auto") == 0)
        return true;
    if (strcmp(text, "cpu") == 0) {
        out->ops = &sim_device;
        return true;
    }
    out->ops = &cuda_device;
    if (strcmp(text, "cuda") == 0)
        return true;
    if (strncmp(text, cuda, strlen(cuda)) != 0 ||
        num_uint(text + strlen(cuda), strlen(text + strlen(cuda)), 4095, &n) != NUM_OK)
        return false;
    out->ordinal = (int)n;
    return true;
}

void device_settle(struct arena *a, struct device_choice *c, const char **why)
{
    struct diags *d = diags_new(a);
    *why = NULL;
    if (c->ops)
        return;
    if (cuda_device.count(d) > 0) {
        c->ops = &cuda_device;
        return;
    }
    c->ops = &sim_device;
    *why = d->list.n ? d->list.v[0].text : "there is no GPU";
}
