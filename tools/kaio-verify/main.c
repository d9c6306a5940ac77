#include <config.h>

#include <stdio.h>

int main(void)
{
    fputs("kaio-verify: not part of this release\n", stderr);
    return 77;
}
