/* reserve.h — room on the disk that is kept for what must be possible when it is full.
 *
 * Private to store/sqlite. The file `reserve` in the data directory takes a sixteenth of its file
 * system, at least 256 KiB and at most 8 MiB. When a commit finds the disk full, the file is
 * removed and the commit is tried again; it is made again once there is twice its size free. In
 * between only what frees room, and what has happened, should be committed. On a file system that
 * copies on write the room is not certain.
 */
#ifndef STORE_SQLITE_RESERVE_H
#define STORE_SQLITE_RESERVE_H
#include <stdbool.h>
#include <stdint.h>

struct err;

struct reserve {
    char *path;
    uint64_t bytes;
    bool is_held;
};

/* Find the file, or make it; without room for it there is none. A start on a full disk needs the
 * room itself: then the file is given up here. ERR_IO: the directory cannot be looked at. */
int reserve_open(struct reserve *reserve, const char *directory, struct err *err);
void reserve_close(struct reserve *reserve); /* the file stays */

/* Give the room to the others. False: there was none. */
bool reserve_give_up(struct reserve *reserve);
/* Take it back, when there is enough. Returns whether it is held. */
bool reserve_make(struct reserve *reserve);

#endif
