/* migrations.h — the numbered SQL files of each database's migrations/, built into the program.
 *
 * Private to store. Number N brings a database from version N - 1 to N. A migration that has been
 * released is never changed.
 */
#ifndef STORE_MIGRATIONS_H
#define STORE_MIGRATIONS_H

struct migration {
    const char *name, *sql;
};
extern const struct migration sqlite_migrations[], postgres_migrations[];
extern const unsigned sqlite_migration_count, postgres_migration_count;

#endif
