/* read.h — what the API and the server read from the store.
 *
 * Edge. A reader belongs to one thread at a time. Everything returned lives in the arena given.
 * Lists and look-ups by name are answered from the index of all jobs in memory (no reader needed,
 * any thread); everything else by SQL. An absent thing is ERR_NOT_FOUND; ERR_IO, ERR_CORRUPT are
 * the database's.
 *
 * Source of the filters and orders: OpenPAI REST API, GET /api/v2/jobs.
 */
#ifndef STORE_READ_H
#define STORE_READ_H
#include "store/store.h"

struct plan;

enum { STORE_NOTICES_UNKNOWN = -1 };

/* A job as lists show it. */
struct store_job {
    /* `submission` is NULL. From lists, `reason`, `trigger`, `extra` and the completion's
     * diagnostics are empty. */
    struct job_record record;
    enum public_state shown;
    bool has_priority; /* the job file named a class */
    /* what its user is told of, as its submission said (core/event.h); STORE_NOTICES_UNKNOWN: of a
     * job that was submitted to an older version, and from lists */
    int16_t notices;
    const char *const *tags; /* in alphabetical order */
    size_t tag_count;
};

enum job_order {
    ORDER_SUBMITTED,
    ORDER_NAME,
    ORDER_USER,
    ORDER_VIRTUAL_CLUSTER,
    ORDER_RETRIES, /* of all kinds together */
    ORDER_TASKS,
    ORDER_GPUS,
    ORDER_STATE,     /* by the shown state's name */
    ORDER_COMPLETED, /* not completed: last ascending, first descending */
    ORDER_PRIORITY,  /* none named: likewise */
};

/* Within one field any of the list, across fields all; an empty list does not restrict. */
struct job_filter {
    const struct text *users;
    size_t user_count;
    const struct text *virtual_clusters;
    size_t virtual_cluster_count;
    uint32_t states;         /* bits 1 << enum public_state; 0: all */
    struct text keyword;     /* substring of user, name or virtual cluster, case counts; "": all */
    const struct text *tags; /* has any of them */
    size_t tag_count;
    const struct text *tags_not; /* has none of them */
    size_t tag_not_count;
    const int32_t *priorities; /* of those whose file names one */
    size_t priority_count;
    bool wants_default_priority; /* or: those whose file names none */
    int64_t since_ms, until_ms;  /* submitted then or later, and before then; 0: whenever */
    enum job_order order;
    bool is_descending; /* ties always: newest id first */
    uint64_t offset, limit;
    const struct job_place *after; /* begins behind this one, wherever it is now; NULL: does not */
    bool wants_places;
    bool skips_total; /* nobody wants job_page.total: it need not be right */
};

/* Where a job stood in an order: what it was ordered by at that time. */
struct job_place {
    struct job_id job;
    uint64_t number;
    struct text text;
};

struct job_page {
    struct store_job *items;
    struct job_place *places; /* of each, in the filter's order; NULL: nobody wants them */
    size_t count;
    uint64_t total; /* that match, regardless of offset, limit and place */
};

/* One page; any thread, no reader. */
void store_job_list(struct store *store, const struct job_filter *filter, struct arena *arena,
                    struct job_page *page);

/* By "user" and "name", or by id; as a list shows it. */
int store_job_find(struct store *store, struct text user, struct text name, struct job_id *job,
                   struct err *err);
int store_job_summary(struct store *store, struct job_id job, struct arena *arena,
                      struct store_job *row, struct err *err);

/* How many jobs are in each shown state. */
void store_job_counts(struct store *store, uint64_t counts[PUBLIC_STATE_COUNT]);

/* Ids of final jobs that completed before the time, oldest first, for retention. Returns how many
 * were written. */
size_t store_jobs_final(struct store *store, int64_t completed_before_ms, struct job_id *jobs,
                        size_t room);
/* Ids of final jobs for which there is no room: those of the users who keep more than their shares
 * (model/history_share.h), the oldest of each. Returns how many were written. */
struct store_shares;
size_t store_jobs_surplus(struct store *store, const struct store_shares *shares,
                          struct job_id *jobs, size_t room);

/* What has changed since a number, each thing once, in the order of the last changes; what it is
 * now is to be read elsewhere. Any thread, no reader. A read looks at some hundred changes at most:
 * go on from `number` until that is store_news_number. */
enum store_news_kind { STORE_NEWS_JOB, STORE_NEWS_JOB_REMOVED, STORE_NEWS_NODE };
struct store_news {
    struct store_news_item {
        uint64_t number;
        enum store_news_kind kind;
        uint32_t id;      /* of the job or node */
        const char *name; /* of a removed job, "user~name" */
    } * items;
    size_t count;
    uint64_t number;
    bool is_lost; /* what changed is not known: too long ago, before the server's start, or no
                     number of ours. Read everything anew, and go on from `number`. */
};
void store_news(struct store *store, uint64_t after, struct arena *arena, struct store_news *news);
uint64_t store_news_number(struct store *store);

/* All of the row. */
int store_job_read(struct store_reader *reader, struct job_id job, struct arena *arena,
                   struct store_job *row, struct err *err);

/* What was submitted. `source` has its secrets masked; `sealed` is sealed by the server's key. */
struct store_source {
    uint8_t format; /* enum spec_format */
    struct text spec_bytes, source, sealed;
};
int store_job_source(struct store_reader *reader, struct job_id job, struct arena *arena,
                     struct store_source *source, struct err *err);

/* The secrets of jobs behind `after`, in the order of the jobs, those that have any; as sealed. */
struct store_sealed {
    struct job_id job;
    struct text sealed;
};
int store_sealed_read(struct store_reader *reader, struct job_id after, struct arena *arena,
                      struct store_sealed *items, size_t most, size_t *count, struct err *err);

/* The plan that was submitted, on the heap. */
int store_job_plan(struct store_reader *reader, struct job_id job, struct plan **plan,
                   struct err *err);

/* All attempts of the job, oldest first; the last one is the current. */
struct job_attempts {
    struct job_record *items;
    size_t count;
};
int store_job_attempts(struct store_reader *reader, struct job_id job, struct arena *arena,
                       struct job_attempts *attempts, struct err *err);

struct store_tasks {
    struct task_record *items;
    size_t count;
};

/* The tasks of the job's current attempt (`job_attempt` < 0), or all that a given one has ever had,
 * by role and index: also those that were scaled away. A task that has never been placed has no row
 * of its own yet and is made from the plan: state LIFE_CREATION_PENDING, attempt 0. */
int store_tasks(struct store_reader *reader, struct job_id job, int64_t job_attempt,
                struct arena *arena, struct store_tasks *tasks, struct err *err);

/* Some of those, in the same order. No more rows are read than are wanted where nothing but
 * `job_attempt`, `after` and `limit` is given; of a task that has been tried again, its attempts.
 */
struct task_filter {
    int64_t job_attempt; /* < 0: the current one, without tasks that were scaled away */
    const struct text *roles, *nodes; /* within one any of the list; an empty list: all */
    size_t role_count, node_count;
    uint32_t states;     /* bits 1 << enum public_state; 0: all */
    struct text keyword; /* is part of ROLE[INDEX], node, address, or of how it ended; empty: all */
    bool has_after;      /* only those behind … */
    struct task_ref after;
    /* and what the caller sees in it; NULL: all */
    bool (*passes)(const void *context, const struct task_record *task);
    const void *context;
    uint64_t limit; /* at most */
};
int store_task_page(struct store_reader *reader, struct job_id job,
                    const struct task_filter *filter, struct arena *arena,
                    struct store_tasks *tasks, struct err *err);

/* How many tasks each role of the plan has of those that store_tasks would give. Of the tasks that
 * the plan has (or what it was scaled to) no row is read: the others are counted by the database.
 */
struct store_task_totals {
    uint64_t *roles;
    size_t count;
};
int store_task_totals(struct store_reader *reader, struct job_id job, int64_t job_attempt,
                      struct arena *arena, struct store_task_totals *totals, struct err *err);

/* How many tasks of the current attempt are in each state, by role, and in which state each is.
 * Counted once after each change of the job, for some jobs that were asked about last. */
struct store_task_counts {
    struct store_role_count {
        const char *name;
        uint64_t states[PUBLIC_STATE_COUNT];
        struct text each; /* a byte enum public_state for each task, by its index */
    } * roles;
    size_t count;
};
int store_task_states(struct store_reader *reader, struct job_id job, struct arena *arena,
                      struct store_task_counts *counts, struct err *err);

/* All attempts of one task within one job attempt, oldest first. ERR_NOT_FOUND when there is none
 * (yet). */
int store_task_attempts(struct store_reader *reader, struct job_id job, uint32_t job_attempt,
                        struct task_ref task, struct arena *arena, struct store_tasks *attempts,
                        struct err *err);

/* One attempt, current or past. */
int store_attempt(struct store_reader *reader, struct attempt_id attempt, struct arena *arena,
                  struct task_record *row, struct err *err);

/* The job attempt that has passed the barrier last; -1 when none has. */
int store_barrier_passed(struct store_reader *reader, struct job_id job, enum barrier_kind kind,
                         int64_t *attempt, struct err *err);

/* Lines of jobs' stories in order of `sequence`, which only grows. */
struct story_filter {
    struct job_id job; /* 0: of all jobs */
    uint64_t after;    /* only later than this sequence number; 0: from the start */
    uint64_t
        before; /* only earlier than this one, but the total counts the others; 0: to the end */
    bool is_newest_first;
    int is_warning;         /* -1: both, 0: normal ones, 1: warnings */
    uint64_t offset, limit; /* limit 0: 1,000 */
};
struct stories {
    struct store_story {
        uint64_t sequence;
        struct story_record record;
        const char *role_name; /* "" when of the whole job */
    } * items;
    size_t count;
    uint64_t total; /* that match; only counted when wants_total */
};
int store_stories(struct store_reader *reader, const struct story_filter *filter, bool wants_total,
                  struct arena *arena, struct stories *stories, struct err *err);

/* The event log, for audits and replays: what was logged after `after`, at most `limit`. */
struct store_events {
    struct store_event *items;
    size_t count;
    uint64_t last; /* sequence of the last one; `after` when there is none */
};
int store_events(struct store_reader *reader, uint64_t after, uint64_t limit, struct arena *arena,
                 struct store_events *events, struct err *err);

/* What is kept of an attempt's end, when its log has gone, too. ERR_NOT_FOUND: nothing, because it
 * wrote nothing and no rule matched. */
int store_attempt_end(struct store_reader *reader, struct attempt_id attempt, struct arena *arena,
                      struct store_attempt_end *end, struct err *err);

/* What follows is short enough to be read whole. One user, one token: ERR_NOT_FOUND. */
struct store_nodes {
    struct node_record *items; /* by id */
    size_t count;
};
int store_nodes(struct store_reader *reader, struct arena *arena, struct store_nodes *nodes,
                struct err *err);
/* The first `most` whose names come after this one, by name. Its cost is that of these. */
int store_nodes_page(struct store_reader *reader, struct text after, uint64_t most,
                     struct arena *arena, struct store_nodes *nodes, struct err *err);
int store_node_count(struct store_reader *reader, int64_t *count, struct err *err);

/* Virtual clusters of which nothing starts, by name. */
struct store_clusters {
    struct cluster_record *items;
    size_t count;
};
int store_closed_clusters(struct store_reader *reader, struct arena *arena,
                          struct store_clusters *clusters, struct err *err);

int store_user(struct store_reader *reader, struct text name, struct arena *arena,
               struct store_user *user, struct err *err);
/* Whose identity this is. ERR_NOT_FOUND. */
int store_user_identified(struct store_reader *reader, struct text identity, struct arena *arena,
                          struct store_user *user, struct err *err);
struct store_users {
    struct store_user *items; /* by name */
    size_t count;
};
int store_users(struct store_reader *reader, struct arena *arena, struct store_users *users,
                struct err *err);
/* The first `most` whose names come after this one. Its cost is that of these. */
int store_users_page(struct store_reader *reader, struct text after, uint64_t most,
                     struct arena *arena, struct store_users *users, struct err *err);

/* ERR_NOT_FOUND. The members are users; they may be NULL, and then cost nothing. */
int store_group(struct store_reader *reader, struct text name, struct arena *arena,
                struct store_group *group, struct store_members *members, struct err *err);
/* The first `most` users of the group whose names come after this one; none of an unknown group. */
int store_members_page(struct store_reader *reader, const char *group, struct text after,
                       uint64_t most, struct arena *arena, struct store_members *members,
                       struct err *err);
struct store_groups {
    struct store_group *items; /* by name */
    size_t count;
};
int store_groups(struct store_reader *reader, struct arena *arena, struct store_groups *groups,
                 struct err *err);
/* The first `most` whose names come after this one. Its cost is that of these. */
int store_groups_page(struct store_reader *reader, struct text after, uint64_t most,
                      struct arena *arena, struct store_groups *groups, struct err *err);
/* Those that somebody is in whose name is from the first of these users' to the last one's: all
 * that a page of users needs. */
int store_groups_of(struct store_reader *reader, const struct store_users *users,
                    struct arena *arena, struct store_groups *groups, struct err *err);
/* All virtual clusters that were granted to a user, or to a group that the user is in; in order. */
int store_user_clusters(struct store_reader *reader, const char *user, struct arena *arena,
                        struct store_names *clusters, struct err *err);

/* What the groups of a user name as storages, each once, the names in order; the first of each
 * group is a default. */
struct store_storages {
    struct store_names names, defaults;
    bool is_admin; /* the user is: all of them are the user's */
};
int store_user_storages(struct store_reader *reader, const char *user, struct arena *arena,
                        struct store_storages *storages, struct err *err);

int store_token(struct store_reader *reader, struct text id, struct arena *arena,
                struct store_token *token, struct err *err);
struct store_tokens {
    struct store_token *items; /* newest first, expired ones too */
    size_t count;
};
int store_tokens(struct store_reader *reader, struct text user, struct arena *arena,
                 struct store_tokens *tokens, struct err *err);

/* Grows whenever users, groups, memberships or quotas have changed; never 0. Any thread. */
uint64_t store_account_version(const struct store *store);
/* Grows whenever one of those has changed, or a token has gone; never 0. Any thread. */
uint64_t store_token_version(const struct store *store);

/* What a user or a group was given itself. */
int store_quotas(struct store_reader *reader, bool is_group, struct text holder,
                 struct quotas *quotas, struct err *err);
/* What counts for a user. */
struct store_user_quotas {
    struct quotas values;
    const char *groups[QUOTA_KIND_COUNT]; /* whose it is; NULL: the user's own, or there is none */
};
int store_user_quotas(struct store_reader *reader, struct text user, struct arena *arena,
                      struct store_user_quotas *quotas, struct err *err);
/* The quota of this kind of all users who have one, their own or by a group. */
struct store_shares {
    struct store_share {
        const char *user;
        int64_t value;
    } * items;
    size_t count;
};
int store_quota_shares(struct store_reader *reader, enum quota_kind kind, struct arena *arena,
                       struct store_shares *shares, struct err *err);

/* What a user has; any thread, no reader. */
struct store_use {
    uint64_t live_jobs, gpus; /* of live jobs, waiting ones too */
    uint64_t stored_jobs;     /* ended ones too */
};
void store_use_of(struct store *store, struct text user, struct store_use *use);

/* GPUs times the milliseconds that the user's tasks have run with them in the calendar month (UTC)
 * of `now_ms`, until then. A task that ends at the same moment may count twice for that moment. */
int store_gpu_use(struct store_reader *reader, struct text user, int64_t now_ms, uint64_t *gpu_ms,
                  struct err *err);

/* The submission of the user that had this key. ERR_NOT_FOUND: none had, or it is forgotten. */
int store_submit_key(struct store_reader *reader, const char *user, const char *key,
                     struct arena *arena, struct store_submit_key *row, struct err *err);

/* A template, by its id or by "author~name"; `user` is who reads it (is_starred). ERR_NOT_FOUND. */
int store_template(struct store_reader *reader, struct text name, const char *user,
                   struct arena *arena, struct store_template *row, struct err *err);
/* All of them, in no order; description and protocol are "". */
struct store_templates {
    struct store_template *items;
    size_t count;
};
int store_templates(struct store_reader *reader, const char *user, struct arena *arena,
                    struct store_templates *templates, struct err *err);

/* Messages about changes of jobs that wait to be sent: the oldest ones, in order. */
struct store_notice {
    uint64_t number;    /* grows, never used again */
    const char *target; /* "mail", or the address of a webhook */
    struct notice notice;
};
struct store_notices {
    struct store_notice *items;
    size_t count;
};
int store_notices(struct store_reader *reader, uint64_t most, struct arena *arena,
                  struct store_notices *notices, struct err *err);

/* What a template said from one change to the next. Its name and whom it is shared with are no part
 * of it. */
struct store_template_version {
    int64_t number; /* from 1; the largest is what the template says now */
    const char *editor;
    int64_t saved_ms;
    const char *summary, *description, *protocol;
    struct store_names categories, tags;
};
struct store_template_versions {
    struct store_template_version *items;
    size_t count;
};
/* Those of the template with this id that are kept, the newest first; description and protocol are
 * "". */
int store_template_versions(struct store_reader *reader, const char *id, struct arena *arena,
                            struct store_template_versions *versions, struct err *err);
/* ERR_NOT_FOUND: there is none of this number, or it is not kept any more. */
int store_template_version(struct store_reader *reader, const char *id, int64_t number,
                           struct arena *arena, struct store_template_version *version,
                           struct err *err);

/* Requests, in no order. */
struct request_filter {
    struct text user; /* whose requests for virtual clusters; "": all, for accounts too */
    bool is_open;     /* only those that are */
};
struct store_requests {
    struct store_request *items;
    size_t count;
};
int store_requests(struct store_reader *reader, const struct request_filter *filter,
                   struct arena *arena, struct store_requests *requests, struct err *err);
/* ERR_NOT_FOUND. */
int store_request(struct store_reader *reader, struct text id, struct arena *arena,
                  struct store_request *request, struct err *err);
/* ERR_BUSY: as many requests for accounts as may be are open from the network of this address. */
int store_request_site(struct store_reader *reader, const char *address, struct err *err);

/* Audit records, the newest first. */
struct audit_filter {
    struct text user, subject;  /* "": all */
    int64_t since_ms, until_ms; /* `until` is not in it; 0: none */
    bool wants_refused;         /* only those with a code */
    uint64_t before;            /* only older than this number; 0: from the newest on */
    uint64_t limit;
};
struct store_audits {
    struct store_audit *items;
    size_t count;
};
int store_audits(struct store_reader *reader, const struct audit_filter *filter,
                 struct arena *arena, struct store_audits *audits, struct err *err);

/* By the audit records that are not refusals: who has asked for `route` from which addresses, at
 * `since_ms` or later; of each user and address the latest time. The `limit` newest, these first.
 */
struct audit_place {
    const char *user, *address;
    int64_t at_ms;
};
struct store_audit_places {
    struct audit_place *items;
    size_t count;
};
int store_audit_places(struct store_reader *reader, struct text route, int64_t since_ms,
                       uint64_t limit, struct arena *arena, struct store_audit_places *places,
                       struct err *err);

/* Accounts of users, deactivated ones too. Once there were several there always are: an account
 * that is removed and made again changes nothing. */
struct store_accounts {
    bool are_several;
    struct job_id last_sole_job; /* all jobs up to it are the first account's; 0: not known, none */
};
int store_accounts(struct store_reader *reader, struct arena *arena,
                   struct store_accounts *accounts, struct err *err);
/* Was the job submitted while there was one account? Pure. */
bool store_account_is_sole(const struct store_accounts *accounts, struct job_id job);

/* A value under CHANGE_SETTING's key. */
int store_setting(struct store_reader *reader, const char *key, struct arena *arena,
                  struct text *value, struct err *err);

/* What a core is made of, in this order and of one instant: others may use the store meanwhile.
 * Each visit gets memory that lives for that call only. */
struct store_restore {
    void *context;
    int (*counters)(void *context, struct job_id last_job, struct attempt_id last_attempt,
                    struct err *err);
    int (*node)(void *context, const struct node_record *node, struct err *err);
    int (*cluster)(void *context, const struct cluster_record *cluster, struct err *err);
    int (*job)(void *context, const struct job_record *job, struct text plan_bytes,
               struct err *err);
    int (*task)(void *context, const struct task_record *task, struct err *err);
};
int store_restore_counters(struct store_reader *reader, struct job_id *last_job,
                           struct attempt_id *last_attempt, struct err *err);
/* The time of the last event that was stored; 0: none. */
int store_restore_time(struct store_reader *reader, int64_t *last_ms, struct err *err);
/* The last numbers that were given, nodes, virtual clusters that are closed, then live jobs by id
 * (and ended ones with held containers), then the tasks of their current attempts. Ends with the
 * first error of a visit. */
int store_restore(struct store_reader *reader, const struct store_restore *restore,
                  struct err *err);

#endif
