/* What the strategy is called, what a schedule may say to it, and which schedules are worth
 * trying. */
#include <config.h>

#include "lower/row/row.h"

#define AT(member) offsetof(struct row_options, member)
static const struct strategy_option options[] = {
    {"threads", OPTION_NUMBER, 1, 1024, AT(threads),
     "threads of a block that share a row, below 32 a power of two, else whole warps"},
    {"vectors", OPTION_NUMBER, 1, 64, AT(vectors), "accesses of 16 bytes that each thread holds"},
    {"rows", OPTION_POWER, 1, 1024, AT(rows), "rows of a block"},
    {"cluster", OPTION_POWER, 1, 16, AT(cluster), "blocks that share a row"},
};

static void candidates(struct arena *a, const struct spec *s, const struct ptx_target *target,
                       struct lower_candidates *out)
{
    static const struct candidates_axis one[] = {{"threads", {0, 32, 64, 128, 256, 512, 1024}, 7},
                                                 {"vectors", {0, 1, 2, 3, 4, 5, 6, 8}, 8}};
    static const struct candidates_axis several[] = {{"threads", {32, 64}, 2},
                                                     {"rows", {2, 4, 8}, 3}};
    static const struct candidates_axis clusters[] = {
        {"threads", {256, 512, 1024}, 3}, {"vectors", {2, 4, 8}, 3}, {"cluster", {2, 4, 8}, 3}};
    (void)s;
    candidates_multiply(a, "row", one, COUNT(one), out);
    candidates_multiply(a, "row", several, COUNT(several), out);
    if (target->sm >= 90)
        candidates_multiply(a, "row", clusters, COUNT(clusters), out);
}

const struct strategy row_strategy = {
    .name = "row",
    .takes = "reductions over the last axes, with an element for each row and column",
    .options = options,
    .noption = COUNT(options),
    .options_size = sizeof(struct row_options),
    .analyse = row_fit,
    .lower = row_lower,
    .candidates = candidates,
    .minds_inouts = true,
    .takes_whole = true,
};
