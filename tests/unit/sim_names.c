/* What C++ calls functions and their variables, as reports write it: right, or as it is. */
#include <config.h>

#include "sim/report.h"

#include "tap.h"

static const struct {
    const char *name, *want; /* NULL: it stays as it is */
} cases[] = {
    {"_ZZ12block_reducePKfPfiE5s_sum", "s_sum in block_reduce"},
    {"_ZZ9block_sumfE4part", "part in block_sum"},
    {"_ZZ5blockE1s", "s in block"},
    {"_ZZN1a1S3runEPfE5s_cnt", "s_cnt in a::S::run"},
    {"_ZZ4fillILi32EEvPfE4tile", "tile in fill<32>"},
    {"_ZZ4fillIfLb1ELin3E6__halfEvPT_E4tile", "tile in fill<float, true, -3, __half>"},
    {"_ZZ4fillIPKfEvT_E4tile", "tile in fill<...>"},
    {"_ZZN3net4tileILi32EEEvPfE4part_0", "part#2 in net::tile<32>"},
    {"_ZZ1kvE1q__12_", "q#14 in k"},
    {"_ZZN12_GLOBAL__N_11kEPfE4tile", "tile in k"},
    {"_ZZN52_INTERNAL_9c5d8e10_7_list_cu_1k_12345678901234_56784net23addEvE1x", NULL},
    {"_ZZZ5foldsPKiPiiENKUliiE_clEiiE3sum", "sum in (lambda)::operator() in folds"},
    {"_ZZ5foldsPKiPiiENKUliiE_clEii", "(lambda)::operator() in folds"},
    {"_ZZN7cutlass6KernelINS_4gemm6kernel4GemmIiEEEEvNT_6ParamsEE1s", "s in cutlass::Kernel<...>"},
    {"_ZZ3addPFiiE6float4RA4_KdM1SfDnDv4_fSt4pairIiiES0_E1t", "t in add"},
    {"_Z9block_sumf", "block_sum"},
    {"_ZN3cub5sweepEv", "cub::sweep"},
    {"_ZN1aI1bEC1Ev", "a<b>::a"},
    {"_ZN1aD2Ev", "a::~a"},
    {"_ZL4tile", "tile"},
    {"_ZNSt6vectorIiSaIiEE4sizeEv", "std::vector<...>::size"},
    /* not understood, or no such name */
    {"_ZZ5foldsPKiPiiENKUliiE_clEii_param_0", NULL},
    {"_ZplRK1aS1_", NULL},
    {"_ZTV1a", NULL},
    {"_ZZ1kvEs_0", NULL},
    {"_ZN1a1bE1", NULL},
    {"_Z99999999999999999999a", NULL},
    {"_Z4abc", NULL},
    {"_ZNE", NULL},
    {"_Z", NULL},
    {"tile", NULL},
    {"_ZS_", NULL},
};

/* Every beginning of a name, and every byte of it another one: some text, in short time. */
static void mutants(const char *name)
{
    const size_t n = strlen(name);
    struct arena *a = arena_new();
    char text[256];
    bool all = n < sizeof text;
    for (size_t i = 0; i < n && all; i++) {
        memcpy(text, name, n + 1);
        text[i] = 0;
        all &= sim_plain_name(a, text) != NULL;
        for (int c = 1; c < 256; c++) {
            memcpy(text, name, n + 1);
            text[i] = (char)c;
            all &= *sim_plain_name(a, text) != 0;
        }
    }
    arena_free(a);
    ok(all, "%s with mistakes", name);
}

int main(void)
{
    struct arena *a = arena_new();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *want = cases[i].want ? cases[i].want : cases[i].name;
        eq_str(sim_plain_name(a, cases[i].name), want, "%s", cases[i].name);
        if (cases[i].want)
            mutants(cases[i].name);
    }
    /* ever deeper: neither the stack nor time runs out */
    struct buf b = buf_in(a);
    buf_puts(&b, "_Z");
    for (int i = 0; i < 100000; i++)
        buf_putc(&b, 'Z');
    eq_str(sim_plain_name(a, buf_text(&b)), buf_text(&b), "100000 functions in each other");
    b.len = 0;
    buf_puts(&b, "_Z1f");
    for (int i = 0; i < 100000; i++)
        buf_puts(&b, "1aI");
    eq_str(sim_plain_name(a, buf_text(&b)), buf_text(&b), "100000 templates in each other");
    arena_free(a);
    return tap_done();
}
