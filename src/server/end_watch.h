/* end_watch.h — bounds the orderly end of the server, and says what it waits for.
 *
 * Edge. While the server ends each part of it waits for its own threads, and some of these wait for
 * others: a runtime, a disk, a provider of logins. A thread of the watch logs what is waited for
 * every END_TELL_MS, and gives up after END_MAX_MS, before a service manager would kill the server
 * without a word (systemd after 90 s). What was acknowledged is in the store by then, and
 * containers do not need the server: to give up loses no more than a crash, and a crash loses
 * nothing.
 */
#ifndef SERVER_END_WATCH_H
#define SERVER_END_WATCH_H
#include <stdint.h>

struct end_watch;

enum { END_TELL_MS = 10 * 1000, END_MAX_MS = 75 * 1000 };

struct end_watch_config {
    int64_t tell_ms, limit_ms;
    /* After limit_ms, once, by the watch's thread; `stage`: what is waited for. */
    void (*give_up)(void *context, const char *stage);
    void *context;
};

/* The end begins, with `stage`. NULL: no thread can be made, and the end has no bound. */
struct end_watch *end_watch_start(const struct end_watch_config *config, const char *stage);
/* What is waited for from here on; the string must last as long as the watch. NULL is fine. */
void end_watch_stage(struct end_watch *watch, const char *stage);
/* The server has ended. NULL is fine. */
void end_watch_stop(struct end_watch *watch);

#endif
