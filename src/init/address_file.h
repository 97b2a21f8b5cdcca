/* address_file.h — the addresses of a job's tasks, where each has one of its own and none is known
 * before it runs (docs/rfc/0009-skep-init.md, "Addresses that come later").
 *
 * Pure. A line "ROLE INDEX ADDRESS" for each task whose address is known, in any order, and a last
 * line "." that shows that nothing was cut off.
 */
#ifndef INIT_ADDRESS_FILE_H
#define INIT_ADDRESS_FILE_H
#include "base/text.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct buf;
struct err;

enum { ADDRESS_FILE_BYTES_MAX = 2 << 20 }; /* 20,000 tasks with addresses of IPv6 */

struct address_file_task {
    uint32_t role, index;
    const char *address;
};

struct address_file {
    const struct address_file_task *tasks;
    size_t count;
};

void address_file_write(const struct address_file *file, struct buf *out);

/* Its last line has come. */
bool address_file_is_whole(struct text bytes);

/* Everything is in `arena`. ERR_CORRUPT: a line is none, or the last one is missing. Whether the
 * addresses are some, and the job has these tasks, is for the caller to see. */
int address_file_read(struct text bytes, struct arena *arena, struct address_file *file,
                      struct err *err);

#endif
