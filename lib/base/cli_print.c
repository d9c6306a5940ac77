#include <config.h>

#include "base/cli_print.h"

enum { HELP_COLUMN = 28 };

/* "--check[=LIST]", "--target=TARGET" */
static int print_long(const struct cli_option *o, FILE *f)
{
    if (!o->arg)
        return fprintf(f, "--%s", o->name);
    if (o->arg[0] == '[')
        return fprintf(f, "--%s[=%s", o->name, o->arg + 1);
    return fprintf(f, "--%s=%s", o->name, o->arg);
}

static void print_option(const struct cli_option *o, FILE *f)
{
    int n = o->id < CLI_LONG ? fprintf(f, "  -%c, ", o->id) : fprintf(f, "      ");
    n += print_long(o, f);
    for (const char *line = o->help; *line;) {
        size_t len = strcspn(line, "\n");
        if (n > HELP_COLUMN - 2) {
            fputc('\n', f);
            n = 0;
        }
        fprintf(f, "%*s%.*s\n", HELP_COLUMN - n, "", (int)len, line);
        n = 0;
        line += len + (line[len] == '\n');
    }
}

void cli_print_help(const struct cli_program *p, FILE *f)
{
    const struct cli_option *o;
    const char *lead = "Usage:";
    for (const char *line = p->usage; *line;) {
        size_t len = strcspn(line, "\n");
        fprintf(f, "%-6s %s %.*s\n", lead, p->name, (int)len, line);
        lead = "  or:";
        line += len + (line[len] == '\n');
    }
    fprintf(f, "%s\n", p->purpose);
    for (size_t i = 0; (o = cli_row(p, i)); i++)
        if (o->heading)
            fprintf(f, "\n%s:\n", o->heading);
        else if (o->help)
            print_option(o, f);
    if (p->epilogue)
        fprintf(f, "\n%s", p->epilogue);
    fprintf(
        f,
        "\nExit status: 0 success, 1 a check failed, 2 usage or bad input, 3 the device failed,\n"
        "77 the device asked for is not there. The whole story: man %s\n",
        p->name);
}

void cli_print_version(const struct cli_program *p, FILE *f)
{
    fprintf(f, "%s (%s) %s\n", p->name, PACKAGE_NAME, PACKAGE_VERSION);
    if (p->details)
        fputs(p->details, f);
}

/* kaio-run -> kaio_run, for the names of shell functions */
static void print_identifier(const char *name, FILE *f)
{
    for (; *name; name++)
        fputc(*name == '-' ? '_' : *name, f);
}

/* The options, as bash sees them: words[1..cword], where --name=value comes as three words. */
void cli_print_bash(const struct cli_program *p, FILE *f)
{
    const struct cli_option *o;
    fprintf(f, "# bash completion for %s; written by %s --completion=bash\n_", p->name, p->name);
    print_identifier(p->name, f);
    fputs("() {\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=\n"
          "    COMPREPLY=()\n"
          "    if [[ $cur == = ]]; then\n"
          "        cur=\n"
          "    elif [[ $prev == = ]]; then\n"
          "        prev=${COMP_WORDS[COMP_CWORD-2]}\n"
          "    fi\n"
          "    case $prev in\n",
          f);
    for (size_t i = 0; (o = cli_row(p, i)); i++) {
        if (!o->help || !o->arg || o->heading)
            continue;
        fputs("    ", f);
        if (o->id < CLI_LONG && o->arg[0] != '[')
            fprintf(f, "-%c|", o->id);
        fprintf(f, "--%s)", o->name);
        if (o->arg[0] == '[') /* only after '=' */
            fputs(" [[ ${COMP_WORDS[COMP_CWORD]} == = || ${COMP_WORDS[COMP_CWORD-1]} == = ]] &&",
                  f);
        if (o->values && !*o->values)
            fputs(" return ;;\n", f);
        else if (o->values)
            fprintf(f, " words='%s' ;;\n", o->values);
        else
            fputs(" mapfile -t COMPREPLY < <(compgen -f -- \"$cur\"); return ;;\n", f);
    }
    fputs("    esac\n"
          "    if [[ -z $words && $cur == -* ]]; then\n"
          "        words='",
          f);
    for (size_t i = 0; (o = cli_row(p, i)); i++)
        if (o->name && o->help)
            fprintf(f, "%s--%s", i > 1 ? " " : "", o->name);
    fputs("'\n"
          "    fi\n"
          "    if [[ -n $words ]]; then\n"
          "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
          "    else\n"
          "        mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
          "    fi\n"
          "}\n"
          "complete -o filenames -F _",
          f);
    print_identifier(p->name, f);
    fprintf(f, " %s\n", p->name);
}

/* Help text inside '...[...]': one line, without what zsh would read as syntax. */
static void print_zsh_text(const char *s, FILE *f)
{
    for (; *s && *s != '\n'; s++) {
        if (strchr("[]:\\", *s))
            fputc('\\', f);
        fputs(*s == '\'' ? "'\\''" : (char[]){*s, '\0'}, f);
    }
}

static void print_zsh_spec(const struct cli_option *o, const char *dashes, const char *name,
                           FILE *f)
{
    const char *join = !o->arg ? "" : dashes[1] ? "=" : "+";
    if (o->arg && o->arg[0] == '[')
        join = dashes[1] ? "=-" : "-";
    fprintf(f, " \\\n    '*%s%s%s[", dashes, name, join);
    print_zsh_text(o->help, f);
    fputc(']', f);
    if (o->arg) {
        size_t skip = o->arg[0] == '[';
        fprintf(f, "%s%.*s:", skip ? "::" : ":", (int)(strlen(o->arg) - 2 * skip), o->arg + skip);
        if (!o->values)
            fputs("_files", f);
        else if (*o->values)
            fprintf(f, "(%s)", o->values);
        else
            fputc(' ', f);
    }
    fputc('\'', f);
}

void cli_print_zsh(const struct cli_program *p, FILE *f)
{
    const struct cli_option *o;
    fprintf(f, "#compdef %s\n# zsh completion; written by %s --completion=zsh\n_arguments -s -S",
            p->name, p->name);
    for (size_t i = 0; (o = cli_row(p, i)); i++) {
        if (!o->name || !o->help)
            continue;
        if (o->id < CLI_LONG)
            print_zsh_spec(o, "-", (char[]){(char)o->id, '\0'}, f);
        print_zsh_spec(o, "--", o->name, f);
    }
    fputs(" \\\n    '*:file:_files'\n", f);
}
