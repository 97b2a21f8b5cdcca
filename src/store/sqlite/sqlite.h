/* sqlite.h — a store's database in a directory, by SQLite.
 *
 * Edge. One process has the directory. Write-ahead log, synced by each commit; checkpoints by a
 * thread of its own; a mark that tells a loss; a reserve for a full disk (docs/rfc/0007-store.md).
 */
#ifndef STORE_SQLITE_SQLITE_H
#define STORE_SQLITE_SQLITE_H
#include <stdbool.h>

struct database;
struct err;

/* Open (and migrate) the database under `directory`, which exists. ERR_CONFLICT: another process
 * has it. ERR_CORRUPT: damaged, or no database of ours, or commits that were acknowledged are
 * missing, or it is another one than was there; the latter two begin a new epoch when the loss is
 * accepted. ERR_UNSUPPORTED: written by a newer program. ERR_IO otherwise. */
int sqlite_open(const char *directory, bool accepts_loss, struct database **database,
                struct err *err);

#endif
