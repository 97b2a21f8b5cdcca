/* unit.h — the unit tests of one room are one program, and each file of them can be run alone.
 *
 * A test file is named after the source that it tests: tests/unit/core/test_queue.c for
 * src/core/queue.c. It has its tests in a table and ends with UNIT_FILE; it has no main. The
 * program is run as
 *
 *     test-core [--list] [FILE…] [-- ARGUMENT…]
 *
 * with the names of files without `test_` and `.c`; without a name all files are run.
 */
#ifndef TEST_UNIT_H
#define TEST_UNIT_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct unit_file {
    const char *path; /* of the source, as the compiler was given it */
    const struct CMUnitTest *tests;
    size_t count;
    CMFixtureFunction setup, teardown; /* once for the file; NULL: nothing to do */
    struct unit_file *next;
};

/* The table of tests of this file, and what is done before the first and after the last of them. */
#define UNIT_FILE(tests_, setup_, teardown_)                                                       \
    static struct unit_file unit_file = {                                                          \
        __FILE__, tests_, sizeof(tests_) / sizeof((tests_)[0]), setup_, teardown_, NULL};          \
    __attribute__((constructor)) static void unit_file_register(void)                              \
    {                                                                                              \
        unit_file_add(&unit_file);                                                                 \
    }                                                                                              \
    struct unit_file /* so that a semicolon follows */

/* Called before main() by UNIT_FILE. */
void unit_file_add(struct unit_file *file);

/* What stands behind `--` on the command line; NULL: not so many were given. */
const char *unit_argument(size_t index);

/* Of very many cases that differ in one number only, each so many-th is enough; 1: all. A
 * sanitizer, or the counting of branches, makes each case several times as long, and finds in a
 * part of them what it looks for; whether all are right is asked where they are fast. */
unsigned unit_every(void);

#endif
