/* store.h — the port through which everything durable goes: SQLite, later PostgreSQL.
 *
 * Edge. One writer (the core thread) commits batches; any number of readers, each thread with its
 * own `struct store_reader` (SQLite in WAL mode gives it a snapshot). A commit is durable when it
 * returns 0; otherwise nothing of it is stored.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H
#include "base/text.h"
#include "core/output.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct err;
struct event;
struct store;
struct store_reader;

/* Open (and migrate) the database under `directory`. ERR_CONFLICT: another process has it.
 * ERR_CORRUPT, ERR_UNSUPPORTED: written by a newer program. */
int store_open(const char *directory, struct store **store, struct err *err);
void store_close(struct store *store);

/* One transaction: the events' log rows and all records of `output`. */
int store_commit(struct store *store, const struct event *const *events, size_t event_count,
                 const struct output *output, struct err *err);

int store_reader_open(struct store *store, struct store_reader **reader, struct err *err);
void store_reader_close(struct store_reader *reader);

#endif
