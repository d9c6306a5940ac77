/* kaio-bench: not yet written; it comes with the matmul release, and says so. */
#include <config.h>

#include "base/cli.h"

static const struct cli_option options[] = {{0}};

static const struct cli_program program = {
    .name = "kaio-bench",
    .usage = "[OPTION]...",
    .purpose = "Time kernels beside cuBLAS on the GPU. This release has no benchmarks yet.",
    .options = options,
};

int main(int argc, char **argv)
{
    struct cli cli;
    cli_begin(&cli, &program, argc, argv);
    while (cli_next(&cli) != CLI_END)
        ;
    cli_note(&cli, "benchmarks come with the matmul release; kaio-run --time times one kernel");
    return cli_finish(&cli, CLI_NO_DEVICE);
}
