/* world.h — a store in a folder of its own, with one reader, and the records of its tests.
 *
 * With SKEP_TEST_POSTGRES=postgres://… in the environment (tests/common/postgres.py) each test has
 * a database of its own there; with SKEP_TEST_MEMORY, one in memory (memory.h); without them,
 * SQLite's.
 */
#ifndef TEST_STORE_WORLD_H
#define TEST_STORE_WORLD_H
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "core/output.h"
#include "memory.h"
#include "store/read.h"
#include "store/store.h"

struct world {
    char directory[64];
    char address[200];     /* of a database of PostgreSQL; "": SQLite's */
    char relayed[200];     /* the same through something between, when not "" */
    struct memory *memory; /* or of one in memory; NULL: it is not */
    struct store *store;
    struct store_reader *reader;
    struct output output; /* what the next commit stores */
    struct arena arena;
    struct err err;
    struct buf plan_bytes; /* of the jobs: one "ps", three "worker" */
};

/* Of each test: the world's begin and end. */
int setup(void **state);
int setup_in_memory(void **state); /* whatever the environment says */
int teardown(void **state);

void world_open(struct world *world);
void world_close(struct world *world);
/* What store_open_with says, of the world's database. */
int world_try(struct world *world, struct store **store);
/* Change the database behind the store's back; 0, or that it failed. */
int world_sql(const struct world *world, const char *text);
/* The closed world goes on with a copy of its database, of PostgreSQL. */
void world_copy(struct world *world);
/* Of tests that look at SQLite's files: the rest is left out. */
#define SQLITE_ONLY(world)                                                                         \
    if ((world)->address[0] || (world)->memory)                                                    \
    skip()

struct job_record job_of(uint32_t id, const char *user, const char *name);
struct task_record task_of(uint32_t job, uint16_t role, uint16_t index, uint64_t attempt);

/* Records of the next commit; what they point to must live until then. */
void add_job(struct world *world, struct job_record job);
void add_task(struct world *world, struct task_record task);
void add_deleted(struct world *world, uint32_t job);
struct submission *submission_of(struct world *world); /* lives until then, too */
void add_submitted(struct world *world, uint32_t id, const char *user, const char *name);

/* One event, what was added, the changes; store_commit's code. */
int commit(struct world *world, struct store_change *changes, size_t count);
void change(struct world *world, struct store_change change, int expected);
void submit(struct world *world, uint32_t id, const char *user, const char *name);

#endif
