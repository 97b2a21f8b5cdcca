/* check.h — CHECK, by which a placer examines its own state: gives an error that names what is
 * wrong. */
#ifndef PLACEMENT_CHECK_H
#define PLACEMENT_CHECK_H
#include "base/err.h"

/* Needs `struct err *err`. */
#define CHECK(condition, where, ...)                                                               \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return err_fail(err, ERR_INTERNAL, where, __VA_ARGS__);                                \
    } while (0)

#endif
