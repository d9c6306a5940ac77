/* A libcuda.so.1 of a machine without a GPU, under which a real cuDNN makes plans for a device that
 * is described to it (tests/unit/cuda_cudnn.c): it looks for these functions before it compiles a
 * kernel, and loads what it has compiled.
 */
#include <config.h>

enum { NO_DEVICE = 100 };

#define API(name, ...)     \
    int name(__VA_ARGS__); \
    int name(__VA_ARGS__)
#define NO_GPU(name)      \
    API(name, void)       \
    {                     \
        return NO_DEVICE; \
    }

NO_GPU(cuCtxGetCurrent)
NO_GPU(cuCtxGetLimit)
NO_GPU(cuCtxPopCurrent)
NO_GPU(cuCtxPushCurrent)
NO_GPU(cuDeviceGet)
NO_GPU(cuDeviceGetCount)
NO_GPU(cuGetErrorName)
NO_GPU(cuGetErrorString)
NO_GPU(cuInit)
NO_GPU(cuKernelGetAttribute)
NO_GPU(cuKernelGetFunction)
NO_GPU(cuLaunchCooperativeKernel)
NO_GPU(cuLaunchKernel)
NO_GPU(cuLaunchKernelEx)
NO_GPU(cuLibraryLoadFromFile)
NO_GPU(cuLinkAddData)
NO_GPU(cuLinkComplete)
NO_GPU(cuLinkCreate)
NO_GPU(cuLinkDestroy)
NO_GPU(cuModuleGetFunction)
NO_GPU(cuModuleLoadData)
NO_GPU(cuModuleUnload)
NO_GPU(cuOccupancyMaxPotentialClusterSize)
NO_GPU(cuStreamGetCtx)
NO_GPU(cuTensorMapEncodeIm2col)
NO_GPU(cuTensorMapEncodeTiled)

API(cuDriverGetVersion, int *version)
{
    *version = 13000;
    return 0;
}

static char loaded;

API(cuLibraryLoadData, void **library)
{
    *library = &loaded;
    return 0;
}

API(cuLibraryGetKernel, void **kernel)
{
    *kernel = &loaded;
    return 0;
}

API(cuKernelSetAttribute, void)
{
    return 0;
}

API(cuLibraryUnload, void)
{
    return 0;
}
