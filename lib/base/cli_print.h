/* What cli.c prints from an option table: help, version and shell completions. */
#ifndef KAIO_BASE_CLI_PRINT_H
#define KAIO_BASE_CLI_PRINT_H

#include "base/cli.h"

/* The program's rows followed by those that every tool has; NULL after the last. */
const struct cli_option *cli_row(const struct cli_program *program, size_t i);

void cli_print_help(const struct cli_program *program, FILE *f);
void cli_print_version(const struct cli_program *program, FILE *f);
void cli_print_bash(const struct cli_program *program, FILE *f);
void cli_print_zsh(const struct cli_program *program, FILE *f);

#endif
