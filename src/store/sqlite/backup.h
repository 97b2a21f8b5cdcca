/* backup.h — a copy of a database that is at work, and putting one in place.
 *
 * Edge. A backup is one file of SQLite: the database as of one instant, and in the table `backup`
 * the key without which its secrets cannot be opened. Who can read it can read everything.
 */
#ifndef STORE_SQLITE_BACKUP_H
#define STORE_SQLITE_BACKUP_H
#include <stdbool.h>
#include <stdint.h>

struct err;

/* Copy the database under `directory` into the new file `path` (mode 0600), whether or not a server
 * works on it; it is not held up. When 0 is returned the file is whole, looked through and on the
 * disk; otherwise there is none. ERR_NOT_FOUND: no database; ERR_CONFLICT: the file exists;
 * ERR_CORRUPT: the database is damaged; ERR_UNSUPPORTED: of a newer program; ERR_UNAVAILABLE: the
 * disk is full; ERR_IO. */
int store_backup(const char *directory, const char *path, uint64_t *bytes, struct err *err);

/* Put a backup in place of the database under `directory`, which is made when it does not exist. A
 * database that is there is kept in a folder beside it when `replaces`, else ERR_CONFLICT, as it is
 * while a server works on it. It is copied whole before anything else changes: whatever ends this
 * in between, the next start finds the old database or puts the new one in place, and begins an
 * epoch. ERR_NOT_FOUND; ERR_CORRUPT: damaged or no backup; other errors as store_backup. */
int store_restore_backup(const char *path, const char *directory, bool replaces, struct err *err);

/* Private to store/sqlite, of who has locked the directory: what a restore had copied whole, and
 * could not put in place, is put there. Nothing when there is none. */
int sqlite_restore_finish(const char *directory, struct err *err);

#endif
