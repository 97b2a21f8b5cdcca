/* past.h — checks at a start that the database is the one that was here last, and lacks no commit.
 *
 * Private to store/sqlite. A copy that is put in the place of a database knows neither the numbers
 * that were given since it was made, nor that it is a copy. The mark beside the database (marker.h)
 * knows.
 */
#ifndef STORE_SQLITE_PAST_H
#define STORE_SQLITE_PAST_H
#include "store/sqlite/connection.h"

struct marker;

/* Where a database stands; borrowed. */
struct sqlite_place {
    sqlite3 *db;
    const char *directory, *path;
};

/* What a start shall do. Read only. ERR_CORRUPT: the database lacks commits that were acknowledged,
 * or is not the one that the mark was made for, and `accepts_loss` is not set. */
int past_judge(const struct sqlite_place *place, struct marker *marker, bool accepts_loss,
               struct db_opening *opening, struct err *err);

#endif
