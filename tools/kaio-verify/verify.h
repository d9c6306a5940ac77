/* kaio-verify: what its three modes share. */
#ifndef KAIO_VERIFY_H
#define KAIO_VERIFY_H

#include "base/cli.h"
#include "base/json.h"
#include "ref/compare.h"
#include "ref/fill.h"

enum row_status { ROW_PASS, ROW_FAIL, ROW_MISTRUST, ROW_SKIP, ROW_ERROR };
enum code { CODE_BOTH, CODE_GENERIC, CODE_FIXED };
extern const char *const code_names[]; /* NULL at the end */
enum format { FORMAT_TEXT, FORMAT_TAP, FORMAT_JSON, FORMAT_JUNIT };

/* One output of one case that was checked, or a case that could not be. Strings may be NULL where
 * they mean nothing. */
struct row {
    enum row_status status;
    const char *kernel;
    const char *test;   /* "saxpy/small"; "-" when files are compared */
    const char *output; /* the parameter */
    const char *why;    /* SKIP, ERROR, MISTRUST; FAIL without a comparison */
    const char *device, *target, *fill;
    const char *code; /* "generic", "fixed" */
    bool has_seed;
    uint64_t seed;
    double seconds;
    const char *repeat; /* the command that runs this row alone */
    const struct compare_result *result;
    const struct diags *said; /* errors and findings; NULL: none */
    /* of one step of a chain: the stored values that it was judged from */
    const char *const *from;
    size_t nfrom;
    /* of a program: the step that is judged ("step of line 9, t = 3: ..."); what was seen of it;
     * the calls of kernels, and those of them that were checked */
    const char *step, *about;
    uint64_t calls, checked;
};

struct rows {
    enum format format;
    struct arena *arena;
    FILE *out;
    bool color;
    bool summary; /* a closing line of counts */
    struct tolerance tolerance;
    size_t n, count[ROW_ERROR + 1];
    double seconds;
    /* JUnit: the finished test suites, and the one that is being written */
    struct buf suites, suite;
    const char *suite_name; /* NULL: none is */
    size_t suite_n, suite_count[ROW_ERROR + 1];
    double suite_seconds;
};

/* What was compared; what could not be, after the errors in d, of which the first is the row's. */
struct row row_of_result(const char *output, const struct compare_result *result);
struct row row_of_errors(struct arena *a, const char *output, const struct diags *d);
/* The first error's text. */
const char *rows_first_error(const struct diags *d);

void rows_begin(struct rows *r);
void rows_add(struct rows *r, const struct row *row);
/* --list: a case's name, its values (" n=3 alpha=2"), and what its reference costs. */
void rows_list(struct rows *r, const struct spec *spec, const char *name, const char *values,
               double terms);
/* The exit status: CLI_CHECK_FAILED when a row failed or is not trusted. */
int rows_end(struct rows *r);

/* formats.c: the row as it is written, or kept until the end; the end. */
void tap_row(const struct rows *r, const struct row *row);
void json_row(const struct rows *r, const struct row *row);
void junit_row(struct rows *r, const struct row *row);
void junit_end(struct rows *r);
/* rows.c: "y f32[3]: 3 compared, ...", or why there is no such result. */
const char *row_description(struct arena *a, const struct row *row);
const char *row_details(const struct rows *r, const struct row *row); /* lines, "" for a pass */
const char *row_word(enum row_status status);
/* "saxpy/n33 fixed exact"; NULL when files are compared. Code for all sizes is not named. */
const char *row_name(struct arena *a, const struct row *row);

struct type_choice {  /* of --types */
    const char *name; /* NULL: every type */
    size_t n;         /* 0: every choice */
    enum dtype v[16];
};

struct options {
    const char *device, *target;
    struct tolerance tolerance;
    bool run, golden, all, list, fail_fast;
    bool steps; /* each value that the kernel stores is judged by those that it was made from */
    bool every; /* never a sample */
    enum code code;
    unsigned fills;  /* bits by enum fill_kind; 0: chosen per spec */
    uint64_t repeat; /* more runs, whose bits must be those of the first */
    uint64_t shapes, shapes_seed;
    size_t ntype;
    struct type_choice type[16];
    struct spec_sums sums; /* RUN_NOT_GIVEN: what the contract says */
    uint64_t seed, sample, max_instructions, message_bytes;
    uint64_t check_seed; /* of the simulator's timing */
    const char *ptx, *kernel;
    unsigned threads, check;  /* check: enum device_check, bits */
    const char *suppressions; /* a file; NULL: none */
    const char *check_words;  /* as given */
    enum format format;
    struct spec_define define[64];
    size_t ndefine;
    const char *include[64]; /* folders of the kernels that programs use */
    size_t ninclude;
    struct arena *arena; /* of the defines */
    const volatile sig_atomic_t *interrupted;
};

/* Each yields an exit status. */
int verify_golden(struct cli *cli, const struct options *opt);
int verify_files(struct cli *cli, const struct options *opt);
int verify_run(struct cli *cli, const struct options *opt);

/* cost.c: elements of every equation times the ranges of the reductions in it, memory from a; a
 * sample of the outputs (0: all) needs less. */
double cost_of(struct arena *a, const struct ref_input *in, uint64_t sample);
/* An extent, 1 where it depends on an index or on what is in a tensor, or is 0. */
double cost_extent(struct arena *a, const struct ref_input *in, const struct lang_expr *e);
/* Whether the expression's value depends on the dimension, scalar or index. */
bool cost_reads(const struct lang_expr *e, const struct lang_symbol *s);
/* How many elements of each output are evaluated: what --sample says; else all (0), or as many as
 * take seconds. */
uint64_t cost_sample(struct arena *a, const struct ref_input *in, const struct options *o);
/* The same for one call of many: as many as take a tenth of a second, unless all are asked for. */
uint64_t cost_sample_of_call(struct arena *a, const struct ref_input *in, const struct options *o);

/* A word for the shell, quoted when it must be. */
void print_word(const char *word, struct buf *out);
/* " --rtol=1e-3 --ulp=2", "" without a tolerance. */
void print_tolerance(const struct tolerance *t, struct buf *out);

#endif
