/* notices.h — which messages about changes of jobs become part of a commit
 * (docs/rfc/0021-notifications.md).
 *
 * The core thread's alone. It keeps of each live job what the last row said, so that the next one
 * shows what has changed, and what the job's file asks for; of a job that it does not know it reads
 * both from the store's row, which is the one of before until the commit.
 */
#ifndef SERVER_NOTICES_H
#define SERVER_NOTICES_H
#include "core/output.h"
#include "store/store.h"
#include <stdbool.h>
#include <stddef.h>

struct err;
struct notice_book;
struct notify_config;
struct spec;
struct store_reader;

/* The target of a webhook is "webhook:NAME", as stored. */
#define NOTICE_HOOK "webhook:"

/* NOTICE_BIT of what the job's file asks for. */
unsigned notices_asked(const struct spec *spec);
/* With NOTICE_HOLDS: what a submission says of it. */
#define NOTICE_HOLDS (1u << 7) /* extras.debug: containers of failed tasks are kept */
unsigned notices_of_file(const struct spec *spec);

struct notice_book *notice_book_new(struct store_reader *reader); /* borrows it */
void notice_book_free(struct notice_book *book);

/* Records of the next commit, where messages go, and for how long containers are kept for
 * debugging. A message never hinders the commit: where the store cannot be read, the job's message
 * is given up, which the log says once. */
void notices_take(struct notice_book *book, const struct notify_config *config,
                  uint32_t debug_hold_s, const struct record *records, size_t count);

/* While it is mute the messages that are taken are given up: the store has refused what they came
 * with, and they may be at fault. */
void notices_mute(struct notice_book *book, bool is_mute);
bool notices_are_mute(const struct notice_book *book);

/* What the commit gets: how many, and the changes, whose texts live as long as the records. */
size_t notices_change_count(const struct notice_book *book);
void notices_changes(const struct notice_book *book, struct store_change *changes);

/* The commit has been made. Returns whether there was a message in it. */
bool notices_committed(struct notice_book *book);
/* It has failed: know nothing any more. */
void notices_clear(struct notice_book *book);

#endif
