/* waits.h — tests wait for files by what the kernel tells of their folders, not by looking again
 * and again. Times are monotonic.
 */
#ifndef TEST_WAITS_H
#define TEST_WAITS_H
#include <stdbool.h>
#include <stdint.h>

/* Until there is something at `path`, be it a link that leads nowhere; its folder must be there.
 * False: not within limit_ms. */
bool file_await(const char *path, int64_t limit_ms);

/* Until the file holds `words` among its first 64 KiB. */
bool file_says_await(const char *path, const char *words, int64_t limit_ms);

#endif
