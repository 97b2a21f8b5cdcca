/* memory.h — a database in memory behind the store's seam (store/db.h), as strict as the seam
 * allows.
 *
 * A SQLite in memory reads the SQL; everything else is made here and shares nothing with
 * store/sqlite/. What another database may do is done always: a statement whose answer nobody wants
 * is put off; after one that failed the transaction does nothing more; bytes that were lent by a
 * row are overwritten by the next step; a reader has a copy of what was committed. What the seam
 * asks of its callers is asserted. Commits fail by script. The committing thread, and readers of
 * any thread.
 */
#ifndef TEST_STORE_MEMORY_H
#define TEST_STORE_MEMORY_H
#include <stdbool.h>
#include <stddef.h>

struct database;
struct err;

/* What stays when its database is closed. */
struct memory;

struct memory *memory_new(void);
void memory_free(struct memory *memory); /* its database is closed */

/* Its tables are those of SQLite's migrations. ERR_CONFLICT: it is open. */
int memory_open(struct memory *memory, struct database **database, struct err *err);

/* What becomes of the next commits, one by one: `code` is returned; ERR_* with `is_stored` is an
 * answer that was lost. Those after the last are stored. */
struct memory_commit {
    int code;
    bool is_stored;
};
enum { MEMORY_COMMITS_MAX = 8 };
void memory_script(struct memory *memory, const struct memory_commit *commits, size_t count);

/* Change it behind the store's back, between transactions. 0, or that it failed. */
int memory_sql(struct memory *memory, const char *text);

#endif
