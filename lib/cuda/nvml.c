#include <config.h>

#include "cuda/nvml.h"

#include <dlfcn.h>
#include <stdlib.h>

enum { NVML_SUCCESS = 0, NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2, NVML_TEMPERATURE_GPU = 0 };

static const struct {
    const char *symbol;
    size_t offset;
} functions[] = {
#define NVML(name, symbol, params) {symbol, offsetof(struct nvml, name)},
    NVML_FUNCTIONS
#undef NVML
};

static bool missing(struct nvml *n, const char *why)
{
    nvml_close(n);
    n->why = why;
    return false;
}

bool nvml_open(struct nvml *n, const char *bus_id)
{
    const char *path = getenv("KAIO_NVML_LIB");
    *n = (struct nvml){0};
    if (!path || !*path)
        path = "libnvidia-ml.so.1";
    n->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!n->library)
        return missing(n, "there is no libnvidia-ml.so.1");
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *f = dlsym(n->library, functions[i].symbol);
        memcpy((char *)n + functions[i].offset, &f, sizeof f);
    }
    if (!n->Init || !n->DeviceByPci)
        return missing(n, "libnvidia-ml.so.1 lacks functions");
    if (n->Init() != NVML_SUCCESS) {
        n->Shutdown = NULL; /* nothing was started */
        return missing(n, "libnvidia-ml.so.1 does not start");
    }
    if (n->DeviceByPci(bus_id, &n->device) != NVML_SUCCESS)
        return missing(n, "libnvidia-ml.so.1 does not know this GPU");
    return true;
}

void nvml_close(struct nvml *n)
{
    if (n->library && n->Shutdown)
        n->Shutdown();
    if (n->library)
        dlclose(n->library);
    *n = (struct nvml){.why = n->why};
}

static unsigned clock_of(int (*f)(struct nvml_device_ *, int, unsigned *), struct nvml *n,
                         int which)
{
    unsigned mhz = 0;
    return f && f(n->device, which, &mhz) == NVML_SUCCESS ? mhz : 0;
}

static double power_of(int (*f)(struct nvml_device_ *, unsigned *), struct nvml *n)
{
    unsigned mw = 0;
    return f && f(n->device, &mw) == NVML_SUCCESS ? (double)mw * 1e-3 : 0;
}

void nvml_read(struct nvml *n, struct device_sensors *s)
{
    unsigned long long bits = 0;
    *s = (struct device_sensors){
        .sm_mhz = clock_of(n->ClockInfo, n, NVML_CLOCK_SM),
        .memory_mhz = clock_of(n->ClockInfo, n, NVML_CLOCK_MEM),
        .max_sm_mhz = clock_of(n->MaxClockInfo, n, NVML_CLOCK_SM),
        .max_memory_mhz = clock_of(n->MaxClockInfo, n, NVML_CLOCK_MEM),
        .watts = power_of(n->PowerUsage, n),
        .limit_watts = power_of(n->PowerLimit, n),
    };
    if (n->Temperature &&
        n->Temperature(n->device, NVML_TEMPERATURE_GPU, &s->celsius) != NVML_SUCCESS)
        s->celsius = 0;
    if (n->ThrottleReasons && n->ThrottleReasons(n->device, &bits) == NVML_SUCCESS)
        s->throttle = bits;
    if (!n->SystemGetDriverVersion ||
        n->SystemGetDriverVersion(s->driver, sizeof s->driver) != NVML_SUCCESS)
        s->driver[0] = 0;
}
