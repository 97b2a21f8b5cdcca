/* check.h — for checks of a placer: an assertion that stays in every build and says what. */
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
