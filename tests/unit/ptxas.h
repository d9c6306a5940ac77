/* The assembler of the CUDA toolkit as an outside judge, where the machine has one. */
#ifndef KAIO_TESTS_PTXAS_H
#define KAIO_TESTS_PTXAS_H

#include "ptx/ptx.h"

#include <stdlib.h>
#include <unistd.h>

/* Where ptxas is: $PTXAS, the toolkit's own place, /usr/bin. NULL when it is nowhere. */
static const char *ptxas_path(void)
{
    const char *const places[] = {getenv("PTXAS"), "/usr/local/cuda/bin/ptxas", "/usr/bin/ptxas"};
    for (size_t i = 0; i < 3; i++)
        if (places[i] && access(places[i], X_OK) == 0)
            return places[i];
    return NULL;
}

/* Runs ptxas over the text; what it prints is to be read from the stream, which is then closed with
 * pclose(). The file is removed by ptxas_clean(). ptxas 13 makes no code before sm_75 but reads
 * modules for older targets. */
static char ptxas_file[64];
static FILE *ptxas_run(const char *text, size_t len, unsigned sm, char suffix)
{
    char command[512];
    const char *tmp = getenv("TMPDIR"), *path = ptxas_path();
    if (!path)
        return NULL;
    snprintf(ptxas_file, sizeof ptxas_file, "%s/kaio-%ld.ptx",
             tmp && strlen(tmp) < 30 ? tmp : "/tmp", (long)getpid());
    FILE *f = fopen(ptxas_file, "w");
    if (!f)
        return NULL;
    bool good = fwrite(text, 1, len, f) == len;
    good &= fclose(f) == 0;
    snprintf(command, sizeof command, "%s -O0 -arch=sm_%u%.1s %s -o /dev/null 2>&1", path,
             sm < 75 ? 75 : sm, sm < 75 ? "" : &suffix, ptxas_file);
    return good ? popen(command, "r") : NULL;
}

static void ptxas_clean(void)
{
    if (*ptxas_file)
        remove(ptxas_file);
}

#endif
