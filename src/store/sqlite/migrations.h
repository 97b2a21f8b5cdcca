/* migrations.h — the numbered SQL files of migrations/, built into the program.
 *
 * Private to store/sqlite. Number N brings a database from version N - 1 to N (PRAGMA
 * user_version). A migration that has been released is never changed.
 */
#ifndef STORE_SQLITE_MIGRATIONS_H
#define STORE_SQLITE_MIGRATIONS_H

struct migration {
    const char *name, *sql;
};
extern const struct migration migrations[];
extern const unsigned migration_count;

#endif
