/* log_watch.h — wakes those who follow logs. All of them share one inotify instance: root has 128.
 *
 * Edge. One thread. A follower gets one of two sockets, and has gone when it has closed it.
 */
#ifndef ENGINE_LOCAL_LOG_WATCH_H
#define ENGINE_LOCAL_LOG_WATCH_H

struct err;
struct log_watch;

enum { LOG_WATCH_FOLLOWERS_MAX = 2048 };

/* NULL: the machine has no inotify instance or thread left; whoever follows must then look from
 * time to time. */
struct log_watch *log_watch_new(struct err *err);
void log_watch_free(struct log_watch *watch); /* NULL is fine */

/* A descriptor that becomes readable when anything in the folder is written, made or removed; the
 * caller reads what is in it and closes it. It does not block. ERR_NOT_FOUND: there is no such
 * folder; ERR_BUSY: LOG_WATCH_FOLLOWERS_MAX follow already; ERR_IO. */
int log_watch_add(struct log_watch *watch, const char *directory, struct err *err);

#endif
