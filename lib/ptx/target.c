#include <config.h>

#include "ptx/table.h"

/* Versions: the PTX manual's release notes, and what ptxas 13.0 accepts. Limits: the CUDA
 * programming guide's table of compute capabilities. Targets before sm_70 are only read, for
 * modules that name one; nothing is emitted for them. */
#define KB(n) ((n)*1024u)
static const struct ptx_target targets[] = {
    {"sm_20", 20, 0, 20, KB(48), KB(48), 32768, 1536, 8},
    {"sm_21", 21, 0, 20, KB(48), KB(48), 32768, 1536, 8},
    {"sm_30", 30, 0, 30, KB(48), KB(48), 65536, 2048, 16},
    {"sm_32", 32, 0, 40, KB(48), KB(48), 65536, 2048, 16},
    {"sm_35", 35, 0, 31, KB(48), KB(48), 65536, 2048, 16},
    {"sm_37", 37, 0, 41, KB(48), KB(112), 131072, 2048, 16},
    {"sm_50", 50, 0, 40, KB(48), KB(64), 65536, 2048, 32},
    {"sm_52", 52, 0, 41, KB(48), KB(96), 65536, 2048, 32},
    {"sm_53", 53, 0, 42, KB(48), KB(64), 65536, 2048, 32},
    {"sm_60", 60, 0, 50, KB(48), KB(64), 65536, 2048, 32},
    {"sm_61", 61, 0, 50, KB(48), KB(96), 65536, 2048, 32},
    {"sm_62", 62, 0, 50, KB(48), KB(64), 65536, 2048, 32},
    {"sm_70", 70, 0, 60, KB(96), KB(96), 65536, 2048, 32},
    {"sm_72", 72, 0, 61, KB(96), KB(96), 65536, 2048, 32},
    {"sm_75", 75, 0, 63, KB(64), KB(64), 65536, 1024, 16},
    {"sm_80", 80, 0, 70, KB(163), KB(164), 65536, 2048, 32},
    {"sm_86", 86, 0, 71, KB(99), KB(100), 65536, 1536, 16},
    {"sm_87", 87, 0, 74, KB(163), KB(164), 65536, 1536, 16},
    {"sm_88", 88, 0, 90, KB(99), KB(100), 65536, 1536, 16},
    {"sm_89", 89, 0, 78, KB(99), KB(100), 65536, 1536, 24},
    {"sm_90", 90, 0, 78, KB(227), KB(228), 65536, 2048, 32},
    {"sm_90a", 90, 'a', 80, KB(227), KB(228), 65536, 2048, 32},
    {"sm_100", 100, 0, 86, KB(227), KB(228), 65536, 2048, 32},
    {"sm_100a", 100, 'a', 86, KB(227), KB(228), 65536, 2048, 32},
    {"sm_100f", 100, 'f', 88, KB(227), KB(228), 65536, 2048, 32},
    {"sm_101", 101, 0, 86, KB(227), KB(228), 65536, 1536, 24},
    {"sm_101a", 101, 'a', 86, KB(227), KB(228), 65536, 1536, 24},
    {"sm_101f", 101, 'f', 88, KB(227), KB(228), 65536, 1536, 24},
    {"sm_103", 103, 0, 88, KB(227), KB(228), 65536, 2048, 32},
    {"sm_103a", 103, 'a', 88, KB(227), KB(228), 65536, 2048, 32},
    {"sm_103f", 103, 'f', 88, KB(227), KB(228), 65536, 2048, 32},
    {"sm_110", 110, 0, 90, KB(227), KB(228), 65536, 1536, 24},
    {"sm_110a", 110, 'a', 90, KB(227), KB(228), 65536, 1536, 24},
    {"sm_110f", 110, 'f', 90, KB(227), KB(228), 65536, 1536, 24},
    {"sm_120", 120, 0, 87, KB(99), KB(100), 65536, 1536, 24},
    {"sm_120a", 120, 'a', 87, KB(99), KB(100), 65536, 1536, 24},
    {"sm_120f", 120, 'f', 88, KB(99), KB(100), 65536, 1536, 24},
    {"sm_121", 121, 0, 88, KB(99), KB(100), 65536, 1536, 24},
    {"sm_121a", 121, 'a', 88, KB(99), KB(100), 65536, 1536, 24},
    {"sm_121f", 121, 'f', 88, KB(99), KB(100), 65536, 1536, 24},
};
enum { NTARGET = sizeof targets / sizeof *targets, FIRST_EMITTED_SM = 70 };

const struct ptx_target *ptx_target_any(const char *name, size_t len)
{
    for (size_t i = 0; i < NTARGET; i++) {
        const char *full = targets[i].name;
        size_t n = strlen(full);
        if ((len == n && memcmp(name, full, n) == 0) ||
            (len == n - 3 && memcmp(name, full + 3, n - 3) == 0))
            return &targets[i];
    }
    return NULL;
}

const struct ptx_target *ptx_target_find(const char *name, size_t len)
{
    const struct ptx_target *t = ptx_target_any(name, len);
    return t && t->sm >= FIRST_EMITTED_SM ? t : NULL;
}

const struct ptx_target *ptx_target_of(unsigned sm)
{
    const struct ptx_target *best = NULL;
    for (size_t i = 0; i < NTARGET; i++) {
        const struct ptx_target *t = &targets[i];
        const bool runs = t->suffix ? t->suffix == 'a' && t->sm == sm : t->sm <= sm;
        if (runs && t->sm >= FIRST_EMITTED_SM && (!best || t->sm >= best->sm))
            best = t;
    }
    return best;
}

bool ptx_target_has_wgmma(const struct ptx_target *t)
{
    return t->sm == 90 && t->suffix == 'a';
}

const struct ptx_target *ptx_targets(size_t *n)
{
    size_t first = 0;
    while (targets[first].sm < FIRST_EMITTED_SM)
        first++;
    *n = NTARGET - first;
    return &targets[first];
}
