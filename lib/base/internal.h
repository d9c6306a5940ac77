/* Mistakes in kaio itself. Nothing that a user gives may lead to one. */
#ifndef KAIO_BASE_INTERNAL_H
#define KAIO_BASE_INTERNAL_H

/* Prints "kaio: internal error: FILE:LINE: TEXT" on stderr and aborts: the one place of the library
 * that prints, since its state can't be trusted any more and nobody is left to take a message. The
 * text names what should have been true. */
_Noreturn void internal_error(const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#define INTERNAL_ERROR(...) internal_error(__FILE__, __LINE__, __VA_ARGS__)

#endif
