/* A mailbox is bounded and keeps the order, also between threads. */
#include "unit.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/err.h"
#include "sys/clock.h"
#include "sys/mailbox.h"

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
    assert_string_equal(err.text, "2 requests are waiting already, try again later");
    assert_int_equal(mailbox_post_wait(&box, &letters[2].mail, &err), 0);
    assert_int_equal(mailbox_count(&box), 3);
    mail = mailbox_take(&box, 2, 0);
    assert_int_equal(((struct letter *)mail)->number, 0);
    assert_int_equal(((struct letter *)mail->next)->number, 1);
    assert_null(mail->next->next);
    mail = mailbox_take(&box, 0, 0);
    assert_int_equal(((struct letter *)mail)->number, 2);
    assert_null(mail->next);
    assert_null(mailbox_take(&box, 0, clock_monotonic_ms() + 5)); /* time is over */
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

/* However many facts wait, a request is taken; however many requests wait, a fact is. */
static void facts_and_requests_have_rooms_of_their_own(void **state)
{
    struct mailbox box;
    struct letter facts[5], requests[2];
    struct err err;
    (void)state;

    mailbox_init(&box, 1, 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(mailbox_post_wait(&box, &facts[i].mail, &err), 0);
    assert_int_equal(mailbox_post(&box, &requests[0].mail, &err), 0);
    assert_int_equal(mailbox_requests(&box), 1);
    assert_int_equal(mailbox_count(&box), 6);
    assert_int_equal(mailbox_post(&box, &requests[1].mail, &err), ERR_BUSY);
    assert_ptr_equal(mailbox_take(&box, 5, 0), &facts[0].mail);
    assert_int_equal(mailbox_post(&box, &requests[1].mail, &err), ERR_BUSY);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(mailbox_post_wait(&box, &facts[i].mail, &err), 0);
    assert_ptr_equal(mailbox_take(&box, 1, 0), &requests[0].mail);
    assert_int_equal(mailbox_post(&box, &requests[1].mail, &err), 0);
    assert_ptr_equal(mailbox_take(&box, 0, 0), &facts[0].mail);
    assert_int_equal(mailbox_count(&box), 0);
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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(mailbox_is_bounded_and_in_order),
    cmocka_unit_test(facts_and_requests_have_rooms_of_their_own),
    cmocka_unit_test(mailbox_loses_nothing_between_threads),
};
UNIT_FILE(tests, NULL, NULL);
