/* absent.c — see postgres.h: what a skepd answers that was built without libpq. */
#include "base/err.h"
#include "store/postgres/postgres.h"
#include <string.h>

bool postgres_is_address(const char *address)
{
    return strncmp(address, "postgres://", 11) == 0 || strncmp(address, "postgresql://", 13) == 0;
}

static int refuse(struct err *err)
{
    return err_fail(err, ERR_UNSUPPORTED, "database",
                    "this skepd was built without PostgreSQL (libpq)");
}

int postgres_open(const char *address, const char *directory, struct database **database,
                  struct err *err)
{
    (void)address;
    (void)directory;
    (void)database;
    return refuse(err);
}

int postgres_find(const char *address, bool *is_there, struct err *err)
{
    (void)address;
    (void)is_there;
    return refuse(err);
}
