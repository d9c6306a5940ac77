/* What the strategy is called, what a schedule may say to it, and which schedules are worth
 * trying. */
#include <config.h>

#include "lower/map/map.h"

#define AT(member) offsetof(struct map_options, member)
static const struct strategy_option options[] = {
    {"block", OPTION_MULTIPLE, 32, 1024, AT(block), "threads of a block"},
    {"vector", OPTION_POWER, 1, 32, AT(vector), "elements of each access"},
    {"unroll", OPTION_POWER, 1, 8, AT(unroll), "accesses in flight for each buffer"},
    {"tile", OPTION_POWER, 16, 128, AT(tile), "the side of a transpose's tiles, elements"},
    {"rows", OPTION_NUMBER, 1, 16, AT(rows),
     "rows of the outputs that a thread computes where these have windows"},
};

static void candidates(struct arena *a, const struct spec *s, const struct ptx_target *target,
                       struct lower_candidates *out)
{
    static const struct candidates_axis axes[] = {{"block", {0, 128, 256, 512, 1024}, 5},
                                                  {"vector", {0, 1, 2, 4, 8}, 5},
                                                  {"unroll", {0, 1, 2, 4}, 4}};
    static const struct candidates_axis tiles[] = {{"tile", {32, 64, 128}, 3},
                                                   {"block", {128, 256, 512}, 3}};
    static const struct candidates_axis windows[] = {{"rows", {2, 4, 7, 8}, 4},
                                                     {"vector", {0, 1, 2, 4}, 4}};
    (void)s;
    (void)target;
    candidates_multiply(a, "map", axes, COUNT(axes), out);
    candidates_multiply(a, "map", tiles, COUNT(tiles), out);
    candidates_multiply(a, "map", windows, COUNT(windows), out);
}

const struct strategy map_strategy = {
    .name = "map",
    .takes = "outputs of one shape, without long reductions but those over windows",
    .options = options,
    .noption = COUNT(options),
    .options_size = sizeof(struct map_options),
    .analyse = map_fit,
    .lower = map_lower,
    .candidates = candidates,
};
