/* quarantine.h — jobs of which the store refuses what follows, now and later.
 *
 * Private to server: the core thread's. What has become due by itself, without a mail, would be
 * refused in every round, and with it what everybody else asks for. So would the end of a try that
 * its row says shall start or end: each core that is made of the rows orders that again. So such a
 * job is left out of the cores that are made of the rows, and its containers are ended. It is ended
 * in its rows as soon as the store takes that: at once, or when a server starts after they have
 * been mended. Until then whoever asks for something of it is told why; a setting keeps which jobs
 * these are.
 */
#ifndef SERVER_QUARANTINE_H
#define SERVER_QUARANTINE_H
#include "model/ids.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct server;
struct server_mail;
struct task_record;

struct quarantine {
    struct quarantined_job {
        struct job_id job;
        char why[200];
        bool is_settled; /* its containers have been given up, and its end has been tried */
    } * items;
    size_t count, room;
    struct {
        struct {
            struct attempt_id attempt;
            uint8_t engine;
        } * items; /* of jobs that are not settled */
        size_t count, room;
    } containers;
};

/* Those that a server before has left out; before the first core is made. */
int quarantine_load(struct server *server, struct err *err);
void quarantine_release(struct quarantine *quarantine);

/* The store has refused the output of the core thread (ERR_INTERNAL), which no mail is to blame
 * for; *refusals counts. True: try again, with a core made of the rows: it was the first time, or a
 * job has been left out now. False: no job is to blame. */
bool quarantine_find(struct server *server, unsigned *refusals, const struct err *err);

/* Likewise of the output that a fact has led to: the end of one job gives places to others, and a
 * lost node ends many. True: a job that the fact itself is not of has been left out now. */
bool quarantine_other(struct server *server, const struct server_mail *mail);

/* This attempt's end is set aside. Its job is left out, unless the attempt runs by its row: then
 * nothing is ordered for it until its job is to end. The job's story says why. */
void quarantine_end(struct server *server, struct attempt_id attempt, const struct err *why);

/* Why a job is left out; NULL: it is not. */
const char *quarantine_why(const struct server *server, struct job_id job);

/* A row of a task of a job that is left out. */
void quarantine_task(struct server *server, const struct task_record *task);
/* A core has been made without them: their containers are ended, and they themselves if possible.
 */
void quarantine_settle(struct server *server);

#endif
