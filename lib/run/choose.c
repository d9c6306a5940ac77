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

bool device_parse_check(const char *text, unsigned *bits, const char **bad, size_t *len)
{
    static const struct {
        const char *name;
        unsigned bits;
    } words[] = {{"memory", DEVICE_CHECK_MEMORY}, {"init", DEVICE_CHECK_INIT},
                 {"race", DEVICE_CHECK_RACE},     {"sync", DEVICE_CHECK_SYNC},
                 {"async", DEVICE_CHECK_ASYNC},   {"all", DEVICE_CHECK_ALL}};
    const size_t n = sizeof words / sizeof *words;
    *bits = 0;
    for (const char *p = text;; p += *len + 1) {
        size_t k = 0;
        *bad = p;
        *len = strcspn(p, ",");
        while (k < n && (strlen(words[k].name) != *len || memcmp(words[k].name, p, *len) != 0))
            k++;
        if (k == n)
            return false;
        *bits |= words[k].bits;
        if (!p[*len])
            return true;
    }
}
