#include <config.h>

#include "cuda/api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static const struct {
    const char *symbol;
    size_t offset;
    bool optional;
} functions[] = {
#define CU(name, symbol, params)          {symbol, offsetof(struct cu_api, name), false},
#define CU_OPTIONAL(name, symbol, params) {symbol, offsetof(struct cu_api, name), true},
#include "cuda/api.def"
#undef CU
#undef CU_OPTIONAL
};

/* A name and a description, either of which an old driver may not know. */
static void error_parts(const struct cu_api *api, cu_result r, const char **name, const char **text)
{
    *name = *text = NULL;
    if (api->GetErrorName(r, name) != CU_SUCCESS || !*name)
        *name = "unknown error";
    if (api->GetErrorString(r, text) != CU_SUCCESS || !*text)
        *text = "no description";
}

const char *cu_error_text(const struct cu_api *api, struct arena *a, cu_result r)
{
    const char *name, *text;
    error_parts(api, r, &name, &text);
    return arena_printf(a, "%s (%d): %s", name, r, text);
}

bool cu_open(struct cu_api *api, char why[256])
{
    const char *path = getenv("KAIO_CUDA_LIB");
    *api = (struct cu_api){0};
    if (!path || !*path)
        path = "libcuda.so.1";
    api->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!api->library) {
        snprintf(why, 256, "no NVIDIA driver: %s", dlerror());
        return false;
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *f = dlsym(api->library, functions[i].symbol);
        if (!f && !functions[i].optional) {
            snprintf(why, 256, "'%s' has no %s; is it the NVIDIA driver's, of CUDA 11 or newer?",
                     path, functions[i].symbol);
            return false;
        }
        memcpy((char *)api + functions[i].offset, &f, sizeof f);
    }
    cu_result r = api->Init(0);
    if (r == CU_SUCCESS)
        return true;
    const char *name, *text;
    error_parts(api, r, &name, &text);
    snprintf(why, 256, "the NVIDIA driver does not start: %s (%d): %s", name, r, text);
    return false;
}
