/* trash.h — removes folders in the background.
 *
 * Edge. A folder is renamed into DIRECTORY/trash, which takes no time, and removed from there by a
 * thread of its own: a half-unpacked image of millions of files must hold up neither a start, nor a
 * stop, nor a pull. What an earlier server left there goes as well.
 */
#ifndef ENGINE_LOCAL_TRASH_H
#define ENGINE_LOCAL_TRASH_H

struct err;
struct trash;

/* `directory` is the engine's. Starts the thread. */
struct trash *trash_new(const char *directory, struct err *err);

/* Ends a removal under way: the next server goes on with it. NULL is fine. */
void trash_free(struct trash *trash);

/* `path`, on the same file system, is gone when this returns. When it cannot be renamed it is
 * removed here and now. Not there: nothing happens. */
void trash_put(struct trash *trash, const char *path);

#endif
