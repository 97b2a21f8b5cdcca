/* postgres.h — a store's database on a PostgreSQL server.
 *
 * Edge. One skepd at a time writes: its session holds an advisory lock, and each transaction checks
 * that nobody has taken the database over since (docs/rfc/0012-store-seam.md). Connections that
 * break are made again. Without libpq at build time the functions give ERR_UNSUPPORTED.
 */
#ifndef STORE_POSTGRES_POSTGRES_H
#define STORE_POSTGRES_POSTGRES_H
#include <stdbool.h>

struct database;
struct err;

/* Is this the address of a database here: postgres://… or postgresql://…? */
bool postgres_is_address(const char *address);

/* Open (and migrate) the database at `address`, for a server whose other files are in `directory`.
 * ERR_CONFLICT: another process has the directory, or a server the database. ERR_CORRUPT: a
 * database of another program. ERR_UNSUPPORTED: written by a newer program, or a server that is
 * too old. ERR_UNAVAILABLE: it cannot be reached now. ERR_INVALID: no such address can be. */
int postgres_open(const char *address, const char *directory, struct database **database,
                  struct err *err);

/* Whether there is a store in the database already; makes none. */
int postgres_find(const char *address, bool *is_there, struct err *err);

#endif
