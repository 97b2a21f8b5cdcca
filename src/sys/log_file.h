/* log_file.h — the server's newest log lines, in a folder whose space is taken before it is needed.
 *
 * Edge; thread-safe. Beside standard error: where that leads to (a journal, a file) has no space of
 * its own when tasks have filled the disk. Three files: `skepd.log` is written to, `skepd.log.1` is
 * the one before, `skepd.log.next` is the next one, empty, with its blocks taken. A full file is
 * renamed, and the next one takes its place; the space of the oldest is taken again for the next.
 */
#ifndef SYS_LOG_FILE_H
#define SYS_LOG_FILE_H
#include "base/text.h"
#include <stdint.h>

struct err;
struct log_keeper;

/* Of each file: a part of the file system, 16 KiB to 8 MiB. */
uint64_t log_file_bytes(uint64_t file_system_bytes);

/* Goes on with what is there. `directory` is made when it is not there; only root may read. ERR_IO.
 * A disk that is full already is none: lines are written as far as there is room. */
int log_file_open(const char *directory, struct log_keeper **file, struct err *err);
void log_file_close(struct log_keeper *file);

/* A line with its newline. Is not lost while the disk is full, but after so many other lines that
 * all of the space that was taken is used. */
void log_file_write(struct log_keeper *file, struct text line);

#endif
