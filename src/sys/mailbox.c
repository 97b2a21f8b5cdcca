/* mailbox.c — see mailbox.h. */
#include "sys/mailbox.h"
#include "base/err.h"
#include "sys/clock.h"
#include <assert.h>
#include <errno.h>
#include <time.h>

void mailbox_init(struct mailbox *mailbox, size_t request_room, size_t fact_room)
{
    assert(request_room > 0);
    *mailbox = (struct mailbox){.request_room = request_room, .fact_room = fact_room};
    mailbox->last = &mailbox->first;
    pthread_mutex_init(&mailbox->lock, NULL);
    clock_condition_init(&mailbox->has_mail);
    clock_condition_init(&mailbox->has_room);
}

void mailbox_release(struct mailbox *mailbox)
{
    assert(!mailbox->first);
    pthread_mutex_destroy(&mailbox->lock);
    pthread_cond_destroy(&mailbox->has_mail);
    pthread_cond_destroy(&mailbox->has_room);
}

static void mailbox_append(struct mailbox *mailbox, struct mail *mail, bool is_request)
{
    if (!mailbox->first)
        pthread_cond_signal(&mailbox->has_mail);
    *mail = (struct mail){NULL, is_request};
    *mailbox->last = mail;
    mailbox->last = &mail->next;
    if (is_request)
        mailbox->requests++;
    else
        mailbox->facts++;
}

int mailbox_post(struct mailbox *mailbox, struct mail *mail, struct err *err)
{
    int code = 0;
    pthread_mutex_lock(&mailbox->lock);
    if (mailbox->is_closed)
        code = err_fail(err, ERR_UNAVAILABLE, "", "the server is ending");
    else if (mailbox->requests >= mailbox->request_room)
        code = err_fail(err, ERR_BUSY, "", "%zu requests are waiting already, try again later",
                        mailbox->requests);
    else
        mailbox_append(mailbox, mail, true);
    pthread_mutex_unlock(&mailbox->lock);
    return code;
}

int mailbox_post_wait(struct mailbox *mailbox, struct mail *mail, struct err *err)
{
    int code = 0;
    pthread_mutex_lock(&mailbox->lock);
    while (!mailbox->is_closed && mailbox->facts >= mailbox->fact_room)
        pthread_cond_wait(&mailbox->has_room, &mailbox->lock);
    if (mailbox->is_closed)
        code = err_fail(err, ERR_UNAVAILABLE, "", "the server is ending");
    else
        mailbox_append(mailbox, mail, false);
    pthread_mutex_unlock(&mailbox->lock);
    return code;
}

static void mailbox_sleep(struct mailbox *mailbox, int64_t deadline_ms)
{
    const struct timespec until = clock_moment(deadline_ms < 0 ? 0 : deadline_ms);
    while (!mailbox->first && !mailbox->is_closed && !mailbox->is_woken) {
        if (deadline_ms < 0)
            pthread_cond_wait(&mailbox->has_mail, &mailbox->lock);
        else if (pthread_cond_timedwait(&mailbox->has_mail, &mailbox->lock, &until) == ETIMEDOUT)
            break;
    }
    mailbox->is_woken = false;
}

struct mail *mailbox_take(struct mailbox *mailbox, size_t limit, int64_t deadline_ms)
{
    struct mail *taken, **cut;
    size_t count = 0, requests = 0;
    pthread_mutex_lock(&mailbox->lock);
    mailbox_sleep(mailbox, deadline_ms);
    taken = mailbox->first;
    for (cut = &taken; *cut && (limit == 0 || count < limit); cut = &(*cut)->next) {
        requests += (*cut)->is_request;
        count++;
    }
    mailbox->first = *cut;
    if (!*cut)
        mailbox->last = &mailbox->first;
    *cut = NULL;
    mailbox->requests -= requests;
    mailbox->facts -= count - requests;
    if (count > requests)
        pthread_cond_broadcast(&mailbox->has_room);
    pthread_mutex_unlock(&mailbox->lock);
    return taken;
}

void mailbox_wake(struct mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);
    mailbox->is_woken = true;
    pthread_cond_signal(&mailbox->has_mail);
    pthread_mutex_unlock(&mailbox->lock);
}

void mailbox_close(struct mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);
    mailbox->is_closed = true;
    pthread_cond_broadcast(&mailbox->has_mail);
    pthread_cond_broadcast(&mailbox->has_room);
    pthread_mutex_unlock(&mailbox->lock);
}

size_t mailbox_count(struct mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);
    size_t count = mailbox->requests + mailbox->facts;
    pthread_mutex_unlock(&mailbox->lock);
    return count;
}

size_t mailbox_requests(struct mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);
    size_t count = mailbox->requests;
    pthread_mutex_unlock(&mailbox->lock);
    return count;
}
