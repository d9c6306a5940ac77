/* kaio-verify: what its three modes share. */
#ifndef KAIO_VERIFY_H
#define KAIO_VERIFY_H

#include "base/cli.h"
#include "base/json.h"
#include "ref/compare.h"
#include "ref/fill.h"

enum row_status { ROW_PASS, ROW_FAIL, ROW_MISTRUST, ROW_SKIP, ROW_ERROR };
enum format { FORMAT_TEXT, FORMAT_TAP, FORMAT_JSON, FORMAT_JUNIT };

/* One output of one case that was checked, or a case that could not be. Strings may be NULL where they mean nothing. */
struct row {
    enum row_status status;
    const char *test;   /* "saxpy/small"; "-" when files are compared */
    const char *output; /* the parameter */
    const char *why;    /* SKIP, ERROR, MISTRUST; FAIL without a comparison */
    const char *device, *target, *fill;
    bool has_seed;
    uint64_t seed;
    double seconds;
    const char *repeat; /* the command that runs this row alone */
    const struct compare_result *result;
};

struct rows {
    enum format format;
    struct arena *arena;
    FILE *out;
    bool color;
    bool summary; /* a closing line of counts */
    struct tolerance tolerance;
    size_t n, count[ROW_ERROR + 1];
    struct buf junit;
    double seconds;
};

void rows_begin(struct rows *r);
void rows_add(struct rows *r, const struct row *row);
/* The exit status: CLI_CHECK_FAILED when a row failed or is not trusted. */
int rows_end(struct rows *r);

struct options {
    const char *device, *target;
    struct tolerance tolerance;
    bool run, golden, repeat, all, quiet;
    int fill;      /* enum fill_kind, or -1: chosen per spec */
    int64_t depth; /* of sums; -1: what the contract says */
    uint64_t seed, sample, max_instructions, message_bytes;
    const char *ptx, *kernel;
    unsigned threads, check; /* check: enum device_check, bits */
    const char *check_words; /* as given */
    enum format format;
    struct spec_define define[64];
    size_t ndefine;
    struct arena *arena; /* of the defines */
    const volatile sig_atomic_t *interrupted;
};

/* Each yields an exit status. */
int verify_golden(struct cli *cli, const struct options *opt);
int verify_files(struct cli *cli, const struct options *opt);
int verify_run(struct cli *cli, const struct options *opt);

/* A word for the shell, quoted when it must be. */
void print_word(const char *word, struct buf *out);

#endif
