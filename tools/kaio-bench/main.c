#include <config.h>

#include <stdio.h>

int main(void)
{
    fputs("kaio-bench: not part of this release\n", stderr);
    return 77;
}
