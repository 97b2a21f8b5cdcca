/* epoch.h — notices at the start that the database is a copy or has lost commits, and begins a new
 * epoch.
 *
 * Private to store. A copy that is put in the place of a database knows neither the numbers that
 * were given since it was made, nor that it is a copy. The mark beside the database (marker.h)
 * knows.
 */
#ifndef STORE_EPOCH_H
#define STORE_EPOCH_H
#include "store/marker.h"
#include <stdbool.h>

struct err;
struct store;

/* What stands in a database before anything is written to it. */
struct past {
    bool is_empty, is_backup, has_epochs;
    uint64_t commits, events;
    uint32_t last_job;
    uint64_t last_attempt;
};

/* What a start shall do. */
struct judgement {
    const char *new_epoch; /* why one begins; NULL: none does */
    struct mark mark;      /* numbers that were given, by the mark */
};

/* Read only. ERR_CORRUPT: the database lacks commits that were acknowledged, or is not the one that
 * the mark was made for, and `accepts_loss` is not set. */
int epoch_judge(struct store *store, bool accepts_loss, struct judgement *judgement,
                struct err *err);

/* After the migrations: load the epochs, begin the first or a new one, and mark it. */
int epoch_open(struct store *store, const struct judgement *judgement, struct err *err);

/* Of what has been committed. A mark that cannot be written is logged once. */
void epoch_mark(struct store *store);

#endif
