/* The driver's management library, for clocks, power and temperature. Private to lib/cuda.
 *
 * Found at run time like the driver; without it everything else works. The declarations are our
 * own, of the functions below (NVML API reference).
 */
#ifndef KAIO_CUDA_NVML_H
#define KAIO_CUDA_NVML_H

#include "run/device.h"

struct nvml_device_;

/* NVML's functions: NVML(name, "exported symbol", parameters); each may be missing. */
#define NVML_FUNCTIONS                                                                        \
    NVML(Init, "nvmlInit_v2", (void))                                                         \
    NVML(Shutdown, "nvmlShutdown", (void))                                                    \
    NVML(SystemGetDriverVersion, "nvmlSystemGetDriverVersion", (char *out, unsigned len))     \
    NVML(DeviceByPci, "nvmlDeviceGetHandleByPciBusId_v2",                                     \
         (const char *id, struct nvml_device_ **out))                                         \
    NVML(ClockInfo, "nvmlDeviceGetClockInfo",                                                 \
         (struct nvml_device_ * device, int which, unsigned *mhz))                            \
    NVML(MaxClockInfo, "nvmlDeviceGetMaxClockInfo",                                           \
         (struct nvml_device_ * device, int which, unsigned *mhz))                            \
    NVML(PowerUsage, "nvmlDeviceGetPowerUsage", (struct nvml_device_ * device, unsigned *mw)) \
    NVML(PowerLimit, "nvmlDeviceGetEnforcedPowerLimit",                                       \
         (struct nvml_device_ * device, unsigned *mw))                                        \
    NVML(Temperature, "nvmlDeviceGetTemperature",                                             \
         (struct nvml_device_ * device, int sensor, unsigned *celsius))                       \
    NVML(ThrottleReasons, "nvmlDeviceGetCurrentClocksThrottleReasons",                        \
         (struct nvml_device_ * device, unsigned long long *bits))

struct nvml {
    void *library;
    struct nvml_device_ *device;
    const char *why; /* what is missing; NULL while all is well, or before nvml_open() */
#define NVML(name, symbol, params) int(*name) params;
    NVML_FUNCTIONS
#undef NVML
};

/* Opens libnvidia-ml.so.1, or what the environment variable KAIO_NVML_LIB names, and finds the GPU
 * with this PCI bus id. False with n->why set. */
bool nvml_open(struct nvml *n, const char *bus_id);
void nvml_close(struct nvml *n);
void nvml_read(struct nvml *n, struct device_sensors *s);

#endif
