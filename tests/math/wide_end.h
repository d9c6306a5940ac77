/* The last line of a program that begins with wide.h. */
#if defined __x86_64__ && defined __clang__
#pragma clang attribute pop
#endif
