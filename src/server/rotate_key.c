/* rotate_key.c — skepd --rotate-key: seal everything anew by a new key, while no server runs.
 *
 * The order makes it safe to be ended at any instant: the new key is in the key file beside the old
 * one before anything is sealed by it, and the old one leaves the file after nothing needs it any
 * more. Who comes after an end in between, a server or this again, opens by either; this goes on
 * where it was.
 */
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "server/server.h"
#include "store/read.h"
#include "store/store.h"
#include "sys/key_file.h"
#include <stdio.h>

enum { STEP = 100 }; /* jobs, of one transaction */

/* By the key that it is sealed by; true when it is the new one already. */
static int seal_anew(const struct key_file *keys, struct text sealed, struct buf *out,
                     bool *is_done, struct err *err)
{
    cleanup_buf struct buf plain = BUF_INIT;
    *is_done = secret_open(keys->seal, sealed, &plain, err) == 0;
    int code = *is_done ? 0 : secret_open(keys->old_seal, sealed, &plain, err);
    if (code == 0 && !*is_done)
        secret_seal(keys->seal, buf_as_text(&plain), out);
    if (plain.at)
        secret_wipe(plain.at, plain.room);
    return code;
}

/* The jobs behind `*last`, at most STEP of them; *is_end when there are no more. */
static int step(struct store *store, const struct key_file *keys, struct job_id *last, bool *is_end,
                size_t *count, struct err *err)
{
    cleanup_arena struct arena arena;
    cleanup_store_reader struct store_reader *reader = NULL;
    struct store_sealed items[STEP];
    struct store_change changes[STEP];
    struct store_batch batch = {.changes = changes};
    size_t read = 0;
    arena_init(&arena);
    int code = store_reader_open(store, &reader, err);
    if (code == 0)
        code = store_sealed_read(reader, *last, &arena, items, STEP, &read, err);
    for (size_t i = 0; code == 0 && i < read; i++) {
        cleanup_buf struct buf sealed = BUF_INIT;
        bool is_done;
        code = seal_anew(keys, items[i].sealed, &sealed, &is_done, err);
        *last = items[i].job;
        if (code || is_done)
            continue;
        changes[batch.change_count++] = (struct store_change){
            .kind = CHANGE_RESEAL,
            .reseal = {.job = items[i].job,
                       .sealed = {arena_copy(&arena, buf_as_text(&sealed)), sealed.length}},
            .err = err};
    }
    *is_end = read < STEP;
    if (code == 0 && batch.change_count)
        code = store_commit(store, &batch, err);
    for (size_t i = 0; code == 0 && i < batch.change_count; i++)
        code = changes[i].code;
    *count += batch.change_count;
    return code;
}

int server_key_rotate(struct store *store, const char *directory, size_t *count, struct err *err)
{
    cleanup_keys struct key_file keys;
    char path[4200];
    struct job_id last = {0};
    bool is_end = false;
    *count = 0;
    snprintf(path, sizeof path, "%s/key", directory);
    int code = key_file_load(path, &keys, err);
    if (code == 0 && !keys.has_old) /* else one before this was ended in between */
        code = key_file_rotate(path, &keys, err);
    while (code == 0 && !is_end)
        code = step(store, &keys, &last, &is_end, count, err);
    return code < 0 ? code : key_file_settle(path, &keys, err);
}
