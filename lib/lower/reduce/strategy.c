/* What the strategy is called, what a schedule may say to it, and which schedules are worth
 * trying. */
#include <config.h>

#include "lower/reduce/reduce.h"

#define AT(member) offsetof(struct reduce_options, member)
static const struct strategy_option options[] = {
    {"block", OPTION_MULTIPLE, 32, 1024, AT(block), "threads of a block"},
    {"vector", OPTION_POWER, 1, 32, AT(vector), "elements of each access"},
    {"unroll", OPTION_POWER, 1, 8, AT(unroll), "accesses in flight for each buffer"},
    {"split", OPTION_NUMBER, 1, 65535, AT(split), "blocks that share a result or a tile"},
    {"tile", OPTION_POWER, 1, 256, AT(tile),
     "threads across a tile of results, which divide the block"},
};

static void candidates(struct arena *a, const struct spec *s, const struct ptx_target *target,
                       struct lower_candidates *out)
{
    static const struct candidates_axis axes[] = {{"block", {0, 128, 256, 512}, 4},
                                                  {"unroll", {0, 2, 4, 8}, 4},
                                                  {"split", {0, 132, 264, 1056}, 4}};
    static const struct candidates_axis tiles[] = {{"tile", {8, 16, 32, 64}, 4},
                                                   {"split", {0, 132}, 2}};
    (void)s;
    (void)target;
    candidates_multiply(a, "reduce", axes, COUNT(axes), out);
    candidates_multiply(a, "reduce", tiles, COUNT(tiles), out);
}

const struct strategy reduce_strategy = {
    .name = "reduce",
    .takes = "reductions over the same indices, to few results or many, along memory or across it",
    .options = options,
    .noption = COUNT(options),
    .options_size = sizeof(struct reduce_options),
    .analyse = reduce_fit,
    .lower = reduce_lower,
    .candidates = candidates,
    .minds_inouts = true,
    .takes_whole = true,
};
