/* --run: a session over specs, a kernel of one of them, and a trial of it: one set of values,
 * filled, run and checked. */
#ifndef KAIO_VERIFY_TRIAL_H
#define KAIO_VERIFY_TRIAL_H

#include "verify.h"

#include "base/progress.h"
#include "base/suppress.h"
#include "ptx/ptx.h"
#include "run/choose.h"
#include "program/program.h"
#include "run/run.h"

typedef VEC(const char *) word_list;
typedef VEC(struct spec_define) define_list;

struct session {
    struct cli *cli;
    const struct options *opt;
    struct arena *a;
    struct diags *d;                /* for the session as a whole */
    word_list specs, cases, values; /* the operands, sorted out */
    const struct spec_file *file;   /* what can be read of the one at hand */
    word_list inputs;               /* "ids=@randint:0:10", of every problem */
    /* by case, by opt->type, by input */
    bool *case_used, *type_used, *input_used;
    const struct device_ops *ops; /* NULL: nothing is run (--list) */
    struct device *dev;
    struct device_info info;
    const struct ptx_target *target;
    struct suppressions suppressions;
    struct rows rows;
    struct progress progress;
    int status;
    bool stop; /* --fail-fast, and something failed */
};

static inline bool session_over(const struct session *s)
{
    return s->stop || *s->opt->interrupted;
}
void session_worse(struct session *s, int status);

struct kernel {
    struct session *s;
    struct arena *a;
    const char *path;
    struct spec *spec;
    const struct program *program; /* what a program was compiled to; NULL: it is a kernel */
    const struct source *ptx;
    struct ptx_module *module;
    struct contract *contract;
    bool loaded;
    bool is_fixed; /* its dimensions are constants in it */
    bool noted;    /* that there are no steps */
    bool one_code; /* there is no other code for it: the PTX is given, or nothing is open */
    /* of one choice among several types: "T=f16"; empty where the spec's own are taken */
    word_list types;
    word_list seen, proved; /* random shapes: outputs compared, and those of which one passed */
};

struct trial {
    struct kernel *k;
    struct arena *a;
    struct diags *d;
    const struct spec_case *named; /* the values; or: */
    word_list values;              /* "n=1000", ... */
    bool drawn;                    /* values that nobody chose: what proves nothing is skipped */
    bool random;                   /* by --shapes */
    const char *test, *words;      /* its name; how its values are named on the command line */
    struct run *run;
    const char **made; /* by parameter: the generator of an input; NULL: it is filled */
    struct ref_input in;
    struct spec_sums sums;
    double seconds;
    bool temps;                    /* runs read the temps back */
    const struct run_watch *watch; /* of a program: who sees its calls */
};

/* code.c: emits and loads the kernel with the types of `spec`, unless that is what the device has.
 * False after a row that says why not. */
bool kernel_prepare(struct kernel *k, struct spec *spec);
/* Runs the problem by code in which its dimensions are constants. */
void kernel_run_fixed(struct kernel *k, struct spec *spec, const struct trial *problem);
/* A row: the kernel was refused before any case could run. */
void kernel_error(struct kernel *k, struct diags *d, int status);

/* Sets .a (a new arena, for the caller to free), .d, .test and .words of a trial whose kernel, and
 * named or values, are set. */
void trial_begin(struct trial *t);
/* "n=3 m=5" */
const char *trial_words(struct arena *a, const word_list *words);
/* Binds the values. False with errors in t->d. */
bool trial_bind(struct trial *t);
/* After trial_bind: the terms that the reference adds up. */
double trial_cost(const struct trial *t);
/* And the bytes of all buffers. */
double trial_bytes(const struct trial *t);
/* After trial_bind: a row that skips what is too large to be run without being asked for. False: it
 * is not. */
bool trial_skip_large(struct trial *t);
/* Checks with every fill that is asked for; adds the rows. */
void trial_run(struct trial *t);
/* A row about the kernel or the case as a whole, with the first of t->d, which are reported. */
void trial_error(struct trial *t, int status, const char *fill);
void trial_skip(struct trial *t, const char *why);

/* trial.c: adds the row of a comparison that was made with this fill. It is skipped where it proves
 * nothing and nobody chose the values. Its test, kernel and device are filled in. */
void trial_judged(struct trial *t, const struct row *row, enum fill_kind kind);
/* The reference failed; the row that says so. */
void trial_no_reference(struct trial *t, enum fill_kind kind);
/* Adds a row as it is, but for what the trial says of itself. */
void trial_add(struct trial *t, const struct row *row, const char *fill);
/* repeat.c: the command that runs one row alone. */
const char *trial_repeat(const struct trial *t, const char *fill);
extern const char trial_given[]; /* "given" */
/* The kind's name for rows; trial_given where each input has a generator. */
const char *trial_fill(const struct trial *t, enum fill_kind kind);
bool trial_all_made(const struct trial *t);
/* Fills the input from its generator's text. */
bool trial_make_input(struct trial *t, const char *text, struct run_param *p);
/* Runs it. False after a row that says what went wrong. */
bool trial_execute(struct trial *t, const char *fill);
/* After that: runs it as often as --repeat says. False after a row: the bits are not the same. */
bool trial_bit_stable(struct trial *t, const char *fill);
bool trial_has_float_input(const struct spec *s);
/* How the reference of this trial is evaluated. */
struct ref_options trial_ref_options(struct trial *t);
/* Whether a constant output is suspicious with this fill. */
bool trial_should_vary(const struct trial *t, enum fill_kind kind);

/* steps.c: whether the kernel stores something on its way that later steps can be judged from. */
bool steps_any(const struct trial *t);
/* After a run that read the temps back: adds a row for each stored intermediate and for each
 * output, judged by the stored values that the kernel made it from. */
void steps_judge(struct trial *t, enum fill_kind kind);

/* program.c: a trial of a program, with every fill that is asked for. */
void program_run(struct trial *t);
/* The terms of the references of its calls, one of each step. */
double program_terms(const struct trial *t);
/* What is asked for that programs have no answer to: "--shapes"; NULL: nothing. */
const char *program_lacks(const struct options *o);
/* The kernels of a file with a program are there for it. By itself one is checked where it has
 * cases and something says what it computes, or where it is asked for. */
bool program_has(const struct session *s, const struct spec *spec);
/* watch.c: the calls of the steps while the program runs, judged by what each was given. */
struct watcher;
struct watcher *watch_new(struct trial *t, enum fill_kind kind, bool may_be_nan);
const struct run_watch *watch_of(struct watcher *w);
/* A step made little but NaN of what it was first given, and was not allowed to: another kind of
 * fill shows more. No row was added. */
bool watch_saw_nan(const struct watcher *w);
/* It was wrong; the row says where. */
bool watch_saw_wrong(const struct watcher *w);
/* Adds the row of a program that did nothing wrong. */
void watch_end(struct watcher *w);
/* The kernel that is called so; NULL: the PTX has one that the program does not know, or knows with
 * other parameters. */
struct spec *program_spec(const struct trial *t, const struct contract *kernel);

/* Random shapes for --shapes. */
struct shapes *shapes_new(struct arena *a, struct kernel *k);
/* The next one's values. False: there are no more. */
bool shapes_next(struct shapes *sh, word_list *values);
/* For a kernel without cases: values of a kind, of which there are SHAPES_USUAL. False: none will
 * do. */
enum { SHAPES_USUAL = 3 };
bool shapes_usual(struct shapes *sh, size_t kind, word_list *values);
/* "small", "odd", "aligned" */
extern const char *const shapes_usual_names[SHAPES_USUAL];
/* Why the last one that was tried is none. */
const char *shapes_refused(const struct shapes *sh);

#endif
