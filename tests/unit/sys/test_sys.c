/* test_sys.c — mailbox, log, files, secrets. */
#include "base/buf.h"
#include "base/err.h"
#include "sys/file.h"
#include "sys/log.h"
#include "sys/mailbox.h"
#include "sys/secret.h"
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct letter {
    struct mail mail;
    int sender, number;
};

static void mailbox_is_bounded_and_in_order(void **state)
{
    struct mailbox box;
    struct letter letters[4] = {{.number = 0}, {.number = 1}, {.number = 2}, {.number = 3}};
    struct err err;
    struct mail *mail;
    (void)state;

    mailbox_init(&box, 2, 1);
    assert_int_equal(mailbox_post(&box, &letters[0].mail, &err), 0);
    assert_int_equal(mailbox_post(&box, &letters[1].mail, &err), 0);
    assert_int_equal(mailbox_post(&box, &letters[2].mail, &err), ERR_BUSY);
    assert_int_equal(mailbox_post_wait(&box, &letters[2].mail, &err), 0);
    assert_int_equal(mailbox_count(&box), 3);
    mail = mailbox_take(&box, 2, 0);
    assert_int_equal(((struct letter *)mail)->number, 0);
    assert_int_equal(((struct letter *)mail->next)->number, 1);
    assert_null(mail->next->next);
    mail = mailbox_take(&box, 0, 0);
    assert_int_equal(((struct letter *)mail)->number, 2);
    assert_null(mail->next);
    assert_null(mailbox_take(&box, 0, mailbox_now_ms() + 5)); /* time is over */
    mailbox_wake(&box);
    assert_null(mailbox_take(&box, 0, -1));
    assert_int_equal(mailbox_post(&box, &letters[3].mail, &err), 0);
    mailbox_close(&box);
    assert_int_equal(mailbox_post(&box, &letters[0].mail, &err), ERR_UNAVAILABLE);
    assert_int_equal(mailbox_post_wait(&box, &letters[0].mail, &err), ERR_UNAVAILABLE);
    assert_ptr_equal(mailbox_take(&box, 0, -1), &letters[3].mail);
    assert_null(mailbox_take(&box, 0, -1));
    mailbox_release(&box);
}

enum { SENDERS = 4, EACH = 2000 };
static struct mailbox shared_box;

static void *sender_run(void *argument)
{
    struct letter *letters = argument;

    for (int i = 0; i < EACH; i++)
        assert_int_equal(mailbox_post_wait(&shared_box, &letters[i].mail, NULL), 0);
    return NULL;
}

static void mailbox_loses_nothing_between_threads(void **state)
{
    pthread_t threads[SENDERS];
    struct letter *letters = calloc(SENDERS * EACH, sizeof *letters);
    int next[SENDERS] = {0}, taken = 0;
    (void)state;

    mailbox_init(&shared_box, 8, 8);
    for (int s = 0; s < SENDERS; s++) {
        for (int i = 0; i < EACH; i++)
            letters[s * EACH + i] = (struct letter){.sender = s, .number = i};
        pthread_create(&threads[s], NULL, sender_run, &letters[s * EACH]);
    }
    while (taken < SENDERS * EACH) {
        for (struct mail *mail = mailbox_take(&shared_box, 0, -1); mail; mail = mail->next) {
            struct letter *letter = (struct letter *)mail;
            assert_int_equal(letter->number, next[letter->sender]++);
            taken++;
        }
    }
    for (int s = 0; s < SENDERS; s++)
        pthread_join(threads[s], NULL);
    mailbox_release(&shared_box);
    free(letters);
}

static void log_writes_json_or_text(void **state)
{
    char line[LOG_LINE_MAX + 200];
    int pipes[2];
    ssize_t size;
    (void)state;

    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    log_to(pipes[1]);
    log_setup(LOG_INFO, LOG_AUTO);
    log_debug("core", "not shown");
    log_warning("core", "job %s: \"%s\"", "a~b", "x\ny");
    size = read(pipes[0], line, sizeof line - 1);
    assert_true(size > 0);
    line[size] = '\0';
    assert_non_null(strstr(line, "\"level\":\"warning\",\"part\":\"core\""));
    assert_non_null(strstr(line, "\"text\":\"job a~b: \\\"x\\ny\\\"\"}\n"));
    log_setup(LOG_DEBUG, LOG_TEXT);
    log_debug("core", "an\x1b[31m escape");
    size = read(pipes[0], line, sizeof line - 1);
    line[size] = '\0';
    assert_non_null(strstr(line, " debug   core: an [31m escape\n"));
    /* one character of two bytes that terminals take for ESC [, and one that they do not */
    log_debug("core", "an\xc2\x9b escape, a \xc2\xa9");
    size = read(pipes[0], line, sizeof line - 1);
    line[size] = '\0';
    assert_non_null(strstr(line, " debug   core: an  escape, a \xc2\xa9\n"));
    assert_int_equal(log_level_of("error"), LOG_ERROR);
    assert_int_equal(log_level_of("loud"), -1);
    log_to(2);
    log_setup(LOG_INFO, LOG_AUTO);
    close(pipes[0]);
    close(pipes[1]);
}

static char work[] = "/tmp/test-sys-XXXXXX";

static const char *in_work(const char *name)
{
    static char path[200];
    snprintf(path, sizeof path, "%s/%s", work, name);
    return path;
}

static void files_are_replaced_whole(void **state)
{
    struct buf buf = BUF_INIT;
    struct err err;
    struct stat status;
    (void)state;

    assert_int_equal(dir_make(in_work("a/b/c"), 0700, &err), 0);
    assert_int_equal(dir_make(in_work("a/b/c"), 0700, &err), 0);
    assert_int_equal(file_read(in_work("a/b/c/f"), 10, &buf, &err), ERR_NOT_FOUND);
    assert_int_equal(file_write(in_work("a/b/c/f"), TEXT("one"), 0640, &err), 0);
    assert_int_equal(file_write(in_work("a/b/c/f"), TEXT("two"), 0640, &err), 0);
    assert_int_equal(file_create(in_work("a/b/c/f"), TEXT("three"), 0640, &err), ERR_CONFLICT);
    assert_int_equal(file_read(in_work("a/b/c/f"), 3, &buf, &err), 0);
    assert_string_equal(buf_cstr(&buf), "two");
    assert_int_equal(file_read(in_work("a/b/c/f"), 2, &buf, &err), ERR_TOO_BIG);
    assert_int_equal(stat(in_work("a/b/c/f"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0640);
    assert_int_equal(dir_make(in_work("a/b/c/f/d"), 0700, &err), ERR_IO);
    assert_int_equal(file_write(in_work("none/f"), TEXT("x"), 0600, &err), ERR_IO);
    assert_non_null(strstr(err.text, "none/f"));
    buf_release(&buf);
}

static void keys_are_made_once_and_kept_private(void **state)
{
    uint8_t key[SECRET_KEY_SIZE], again[SECRET_KEY_SIZE], sub[2][SECRET_KEY_SIZE];
    struct err err;
    struct stat status;
    (void)state;

    assert_int_equal(secret_key_load(in_work("key"), key, &err), 0);
    assert_int_equal(secret_key_load(in_work("key"), again, &err), 0);
    assert_memory_equal(key, again, sizeof key);
    assert_int_equal(stat(in_work("key"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    secret_key_derive(key, 1, "skeptest", sub[0]);
    secret_key_derive(key, 2, "skeptest", sub[1]);
    assert_memory_not_equal(sub[0], sub[1], SECRET_KEY_SIZE);
    chmod(in_work("key"), 0644);
    assert_int_equal(secret_key_load(in_work("key"), key, &err), ERR_FORBIDDEN);
    assert_int_equal(file_write(in_work("key"), TEXT("12ab"), 0600, &err), 0);
    assert_int_equal(secret_key_load(in_work("key"), key, &err), ERR_CORRUPT);
}

static void secrets_open_only_with_their_key(void **state)
{
    uint8_t key[SECRET_KEY_SIZE], other[SECRET_KEY_SIZE];
    struct buf sealed = BUF_INIT, plain = BUF_INIT;
    struct err err;
    (void)state;

    secret_random(key, sizeof key);
    secret_random(other, sizeof other);
    secret_seal(key, TEXT("hunter2"), &sealed);
    assert_int_equal(text_find(buf_as_text(&sealed), TEXT("hunter2")), SIZE_MAX);
    assert_int_equal(secret_open(key, buf_as_text(&sealed), &plain, &err), 0);
    assert_string_equal(buf_cstr(&plain), "hunter2");
    assert_int_equal(secret_open(other, buf_as_text(&sealed), &plain, &err), ERR_CORRUPT);
    sealed.at[sealed.length - 1] ^= 1;
    assert_int_equal(secret_open(key, buf_as_text(&sealed), &plain, &err), ERR_CORRUPT);
    assert_int_equal(secret_open(key, TEXT("short"), &plain, &err), ERR_CORRUPT);
    buf_release(&sealed);
    buf_release(&plain);
}

static void passwords_are_hashed(void **state)
{
    char hash[PASSWORD_HASH_SIZE], word[21];
    static char longer[PASSWORD_MAX + 1];
    struct err err;
    (void)state;

    secret_random_word(word, 20);
    assert_int_equal(strlen(word), 20);
    assert_int_equal(password_hash(text_of(word), hash, &err), 0);
    assert_non_null(strstr(hash, "$argon2id$"));
    assert_true(password_matches(text_of(word), hash));
    assert_false(password_matches(TEXT("wrong"), hash));
    assert_false(password_matches(text_of(word), ""));
    assert_int_equal(password_hash((struct text){longer, sizeof longer}, hash, &err), ERR_TOO_BIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mailbox_is_bounded_and_in_order),
        cmocka_unit_test(mailbox_loses_nothing_between_threads),
        cmocka_unit_test(log_writes_json_or_text),
        cmocka_unit_test(files_are_replaced_whole),
        cmocka_unit_test(keys_are_made_once_and_kept_private),
        cmocka_unit_test(secrets_open_only_with_their_key),
        cmocka_unit_test(passwords_are_hashed),
    };
    char remove[100];
    int failed;

    if (!mkdtemp(work) || secret_init(NULL) < 0)
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    snprintf(remove, sizeof remove, "rm -rf %s", work);
    return system(remove) != 0 || failed;
}
