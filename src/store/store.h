/* store.h — the port through which everything durable goes.
 *
 * Edge. One writer (the core thread) commits batches; any number of readers (read.h), each thread
 * with its own `struct store_reader`, which sees one state of the database. A commit is durable
 * when it returns 0; otherwise nothing of it is stored, or, when a database's answer was lost with
 * the connection, perhaps all of it. Which database it is (SQLite, PostgreSQL) is chosen when the
 * store is opened: db.h.
 *
 * Beside the database stands an index of all jobs in memory, for lists and names (read.h); it is
 * brought up to date by each commit, before store_commit returns.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H
#include "base/text.h"
#include "core/barriers.h"
#include "core/output.h"
#include "model/notice.h"
#include "model/quota.h"
#include "model/request.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct database;
struct err;
struct store;
struct store_reader;

enum {
    STORE_TAG_MAX = 512, /* bytes of a tag; a comma is not allowed in it */
    STORE_TAGS_MAX = 64, /* of one job */
    STORE_USERS_MAX = 100000,
    STORE_REMOVED_MAX = 100000, /* names of removed users; beyond it each name counts as used */
    STORE_USER_NAME_MAX = 64,   /* of a group's name, too */
    STORE_GROUPS_MAX = 10000,
    STORE_USER_GROUPS_MAX = 1000, /* of one user */
    STORE_GRANTS_MAX = 1000,      /* of one user or group */
    STORE_CLUSTER_NAME_MAX = 255, /* as granted */
    STORE_DESCRIPTION_MAX = 4096, /* of a group */
    STORE_TOKENS_MAX = 1000,      /* of one user, of logins and of applications each */
    STORE_IDENTITY_MAX = 1024,    /* bytes */
    STORE_SETTING_MAX = 1 << 20,
    STORE_EXTENSION_MAX = 1 << 20, /* of a user, bytes of JSON */
    STORE_TAIL_MAX = 4096,         /* bytes of an attempt's last lines */
    STORE_AUDIT_MAX = 16 << 10,    /* bytes of `before`, and of `after`, of an audit record */
    STORE_SUBMIT_KEY_MAX = 255,    /* bytes of an idempotency key */
    STORE_DIGEST_SIZE = 32,
    STORE_MATCH_MAX = 1024, /* bytes of the line by which a rule recognised its end */
    STORE_TEMPLATES_MAX = 5000,
    STORE_USER_TEMPLATES_MAX = 200,
    STORE_TEMPLATE_NAME_MAX = 64,     /* bytes, as the next ones */
    STORE_TEMPLATE_SUMMARY_MAX = 512, /* of the reason of a review, too */
    STORE_TEMPLATE_DESCRIPTION_MAX = 16 << 10,
    STORE_TEMPLATE_PROTOCOL_MAX = 256 << 10,
    STORE_TEMPLATE_WORDS_MAX = 20, /* tags, and categories, and groups, of one template */
    STORE_TEMPLATE_WORD_MAX = 64,
    STORE_TEMPLATE_VERSIONS_MAX = 10, /* of one template, that of now among them */
};

/* Open (and migrate) the database under `directory`, which exists, or the one at the address.
 * ERR_CONFLICT: another process has it. ERR_CORRUPT: damaged, or no database of ours, or commits
 * that were acknowledged are missing, or it is another one than was there; the latter two begin a
 * new epoch when the loss is accepted. ERR_UNSUPPORTED: written by a newer program.
 * ERR_UNAVAILABLE: it cannot be reached. ERR_INVALID: the address is none. ERR_IO otherwise. */
struct store_opening {
    bool accepts_loss;
    const char *address; /* of a database of PostgreSQL; NULL or "": SQLite's, in `directory` */
};
int store_open(const char *directory, struct store **store, struct err *err);
int store_open_with(const char *directory, const struct store_opening *opening,
                    struct store **store, struct err *err);
/* Whether there is a database of a store already; makes none. */
int store_find(const char *directory, const struct store_opening *opening, bool *is_there,
               struct err *err);
/* Over a database that is open (db.h); the store closes it, also when it fails. */
int store_open_on(struct database *database, struct store **store, struct err *err);
void store_close(struct store *store); /* all readers must have been closed */

/* A line of the event log: what event_encode gave, made before the step (which may free things). */
struct store_event {
    int64_t at_ms;
    uint8_t kind; /* enum event_kind */
    struct text body;
};

/* In order when they were read; given ones need not be. */
struct store_names {
    const char *const *items;
    size_t count;
};

/* A user in a group, by the name of the other of the two. */
struct store_members {
    struct store_member {
        const char *name;
        bool is_admin;         /* of the group */
        bool makes_admins;     /* read of a user's groups: the group's members are admins */
        bool is_cluster_admin; /* read of a page of members: the user is an admin of the platform */
    } * items;
    size_t count;
};

/* Where an error of CHANGE_USER_ADD points that `reuses_name` would take away. */
#define STORE_REUSES_NAME "reuseName"

struct store_user {
    const char *name;
    const char *password_hash; /* as sys/secret.h makes it; "" = cannot log in by password */
    const char *email;
    bool is_admin;                       /* of their own … */
    bool is_admin_by_group;              /* … or as a member of a group; only read */
    bool is_inactive;                    /* may neither log in nor use a token */
    struct store_members groups;         /* which exist */
    struct store_names virtual_clusters; /* granted to the user, not to a group */
    const char *extension_json;          /* object */
    int64_t created_ms;
    const char *identity; /* whom the provider of the sign-on calls so; "": nobody. Unique */
    bool is_requested;    /* made of a visitor's request, and nobody's at the provider since */
};

struct store_group {
    const char *name, *description;
    struct store_names virtual_clusters; /* granted to all members */
    int64_t created_ms;
    const char *external_name;  /* of the directory that users come from */
    const char *extension_json; /* object */
    bool is_admin;              /* members are admins of the platform */
};

/* What a change of a user or a group replaces; the rest stays. */
enum store_user_field {
    USER_PASSWORD = 1, /* browser tokens are revoked, too, but for `token_kept` */
    USER_EMAIL = 2,
    USER_ADMIN = 4,
    USER_INACTIVE = 8, /* all tokens are revoked when the user is inactive now */
    USER_GROUPS = 16,
    USER_CLUSTERS = 32,
    USER_EXTENSION = 64,
    /* 128: of all fields */
    USER_IDENTITY = 256, /* an account that is_requested loses what the visitor could have left to
                          * come back by: password, all tokens, and the extension */
};
enum store_group_field {
    GROUP_DESCRIPTION = 1,
    GROUP_EXTERNAL_NAME = 2,
    GROUP_ADMIN = 4,
    GROUP_CLUSTERS = 8,
    GROUP_EXTENSION = 16,
};

/* What was granted. Stored: never change one. */
enum store_grant_kind { GRANT_CLUSTER = 1 };

struct store_token {
    const char *id; /* jti of the token: the token itself is never stored */
    const char *user;
    bool is_application;
    int64_t created_ms, expires_ms; /* 0: never expires */
    uint8_t scope;                  /* enum auth_scope, of an application's */
};

/* A submission that was taken with an idempotency key. */
struct store_submit_key {
    const char *user, *key;
    uint8_t digest[STORE_DIGEST_SIZE]; /* of the job file */
    struct job_id job;                 /* may be gone */
    const char *job_name;
    int64_t at_ms;
};

/* What is written down of a request to change something. Strings may be NULL: "". */
struct store_audit {
    uint64_t number;                    /* read: grows, never used again */
    int64_t at_ms;                      /* of the wall clock */
    const char *user;                   /* who; "": nobody is known, or the platform itself */
    const char *token;                  /* id of the token that was shown */
    const char *address;                /* from where: an address, "uid N", … */
    const char *right;                  /* auth_right_name of what was asked for last */
    const char *route;                  /* "PUT /api/v2/users/:user/admin" */
    const char *subject_kind, *subject; /* "job", "alice~train"; both may follow from the change */
    int code;                           /* 0: done. Of a change: its own */
    const char *reason;                 /* why not */
    const char *before, *after; /* JSON objects of what differs. Of a change of accounts: its own */
};

/* What is kept of an attempt's end beside its row. Texts are printable (base/printable.h). */
struct store_attempt_end {
    struct attempt_id attempt;
    struct {
        int32_t code; /* that the rule gives */
        const char *phrase;
        uint32_t number, pattern, line; /* struct exit_source; number 0: no rule matched */
        const char *file;               /* "": the built-in table */
        const char *log;                /* "user", "platform", or "" when no line of a log did */
        struct text text;               /* the line that matched */
    } rule;
    struct text tail; /* the last lines */
};

/* Whether others see a template that its author shares with everyone. Stored: never change one. */
enum template_status {
    TEMPLATE_PRIVATE = 0, /* it is not shared with everyone */
    TEMPLATE_PENDING = 1, /* it waits for an administrator */
    TEMPLATE_APPROVED = 2,
    TEMPLATE_REJECTED = 3,
};

/* A job file to begin others from. */
struct store_template {
    const char *id; /* never used again */
    const char *author, *name;
    const char *summary, *description; /* the latter in Markdown */
    const char *protocol;              /* the job file; its secrets are masked */
    struct store_names categories, tags;
    struct store_names groups; /* whose members see it without an approval */
    bool is_public;            /* shared with everyone, once it is approved */
    enum template_status status;
    const char *reason;   /* why it was rejected */
    const char *reviewer; /* who approved or rejected it */
    bool is_official;     /* an administrator says so; never unless it is approved */
    int64_t created_ms, updated_ms;
    int64_t use_count, used_ms, star_count; /* only read; as is … */
    bool is_starred;                        /* … by who reads it */
};

/* What somebody asks administrators for: docs/rfc/0022-requests.md. Strings may be NULL: "". */
struct store_request {
    const char *id; /* never used again */
    enum request_kind kind;
    enum request_state state;
    const char *user;            /* who asks; of an account: who the visitor wants to be */
    const char *virtual_cluster; /* "" of an account; the next three "" of the other kind */
    const char *email;
    const char *password_hash; /* never read */
    const char *address;       /* from where a visitor asked */
    const char *why;
    int64_t asked_ms;
    int64_t decided_ms; /* or withdrawn; 0: it is open */
    const char *decider, *answer;
    const char *group;  /* by which it was granted; "": to the user alone */
    bool is_name_taken; /* only read, of an account: there is a user of this name … */
    bool is_name_used;  /* … likewise: there was one, who was removed */
};

enum store_change_kind {
    CHANGE_TAG_ADD,       /* idempotent; ERR_NOT_FOUND job, ERR_TOO_BIG, ERR_INVALID */
    CHANGE_TAG_REMOVE,    /* ERR_NOT_FOUND job or tag */
    CHANGE_USER_ADD,      /* ERR_CONFLICT: exists, or jobs of an earlier user of the name do, or
                           * (err->path is STORE_REUSES_NAME) there was one of another identity,
                           * unless `reuses_name`; ERR_NOT_FOUND group; ERR_TOO_BIG, ERR_INVALID */
    CHANGE_USER_SET,      /* replaces; ERR_NOT_FOUND user or group; ERR_TOO_BIG, ERR_INVALID;
                           * ERR_CONFLICT: the extension is not `extension_was`, or another user
                           * has the identity. This and the next
                           * five: ERR_FORBIDDEN: no admin would be left who may log in */
    CHANGE_USER_REMOVE,   /* and its tokens, memberships, grants and templates; the name is kept,
                           * or, of STORE_REMOVED_MAX, that one is missing. ERR_NOT_FOUND */
    CHANGE_MEMBER_ADD,    /* idempotent; ERR_NOT_FOUND user or group; ERR_TOO_BIG */
    CHANGE_MEMBER_REMOVE, /* idempotent; ERR_NOT_FOUND user or group */
    CHANGE_GROUP_ADD,     /* ERR_CONFLICT: exists; ERR_TOO_BIG, ERR_INVALID */
    CHANGE_GROUP_SET,     /* replaces, members stay; ERR_NOT_FOUND, ERR_TOO_BIG, ERR_INVALID;
                           * ERR_CONFLICT as of a user */
    CHANGE_GROUP_REMOVE,  /* and what members have by it; ERR_NOT_FOUND */
    CHANGE_TOKEN_ADD,     /* ERR_NOT_FOUND user; ERR_CONFLICT; ERR_TOO_BIG: of applications. A login
                           * beyond the limit ends one that has expired, else the oldest. */
    CHANGE_TOKEN_REMOVE,  /* ERR_NOT_FOUND: no such token of this user */
    CHANGE_TOKENS_REMOVE, /* all browser tokens of the user, and those of applications, too, when
                           * token.is_application; except `token.id` if not "" */
    CHANGE_SETTING,       /* replaces; an empty value removes */
    CHANGE_ACCOUNTS,      /* there are several, though users are made elsewhere: store_accounts */
    CHANGE_ATTEMPT_END, /* adds what is kept of an attempt whose row says that it has ended; nothing
                         * is done for another one, or a second time. The rule is kept only when
                         * the row has its code: a task that was stopped may exit with a code that
                         * a rule knows. ERR_TOO_BIG */
    CHANGE_BARRIER,     /* a job attempt has passed it; replaces */
    CHANGE_LOG_TRIM,    /* events logged before `before_ms`: retention */
    CHANGE_TOKENS_EXPIRE,    /* tokens that expired before `before_ms`, 1,000 at most */
    CHANGE_QUOTAS,           /* those of `kinds` of a user or group; ERR_NOT_FOUND, ERR_INVALID */
    CHANGE_AUDIT,            /* nothing but its audit record */
    CHANGE_AUDIT_TRIM,       /* records of before `before_ms`, and the oldest beyond `most`;
                              * 20,000 at most */
    CHANGE_SUBMIT_KEY,       /* beside the submission itself; the user has no other of this key */
    CHANGE_SUBMIT_KEYS_TRIM, /* likewise; 20,000 at most */
    CHANGE_RESEAL,           /* a job's secrets, by another key; ERR_NOT_FOUND */
    CHANGE_GPU_USE_TRIM,     /* GPU time of the months before that of `before_ms` */
    CHANGE_TEMPLATE_ADD,     /* ERR_CONFLICT: its author has one of this name, or the id is used;
                              * ERR_TOO_BIG, ERR_NOT_FOUND author */
    CHANGE_TEMPLATE_SET,     /* all of it but author and status; ERR_NOT_FOUND, ERR_TOO_BIG,
                              * ERR_CONFLICT as above or since `template.seen_ms`. A template for
                              * everyone is approved anew, unless `template.by_admin`, and no more
                              * official then. What it said before stays as a version */
    CHANGE_TEMPLATE_REMOVE,  /* ERR_NOT_FOUND */
    CHANGE_TEMPLATE_REVIEW,  /* status, reason, reviewer; ERR_NOT_FOUND. ERR_CONFLICT: it is not for
                              * everyone, or it was changed since `template.row.updated_ms` */
    CHANGE_NOTICE_ADD,       /* a message waits to be sent */
    CHANGE_NOTICES_REMOVE,   /* messages have been sent, or given up; idempotent */
    CHANGE_TEMPLATE_OFFICIAL, /* or not; ERR_NOT_FOUND. ERR_CONFLICT: it is not approved, or it was
                               * changed since `template.row.updated_ms` */
    CHANGE_TEMPLATE_USE,      /* one more job was submitted from it; ERR_NOT_FOUND */
    CHANGE_TEMPLATE_STAR,     /* of template.user, put or taken away; idempotent; ERR_NOT_FOUND */
    CHANGE_REQUEST_ADD,       /* ERR_CONFLICT: the user has an open one for this virtual cluster;
                               * ERR_NOT_FOUND user; ERR_TOO_BIG; ERR_BUSY: too many visitors wait */
    CHANGE_REQUEST_ACT,       /* state, decided_ms, decider, answer and group as `act` has it, and
                               * what it grants. ERR_NOT_FOUND request, user or group; ERR_CONFLICT:
                               * it is decided, the group does not grant it, or the name is taken or
                               * was a removed user's, as of USER_ADD */
    CHANGE_REQUESTS_TRIM,     /* decided ones, and open ones for accounts, of before `before_ms`; of
                               * decided ones the oldest beyond `most` */
    CHANGE_DELETIONS,         /* a piece of what deleted jobs have left: store_deletions */
};

/* What is changed besides the core's records. One that cannot be done gets its code and does not
 * hinder the others. Strings are borrowed for the commit. */
struct store_change {
    enum store_change_kind kind;
    union {
        struct {
            struct job_id job;
            const char *name;
        } tag;
        struct store_user user;   /* USER_REMOVE: the name alone */
        struct store_group group; /* GROUP_REMOVE: the name alone */
        struct {
            const char *user, *group;
            int is_admin; /* of the group; < 0: as it was, at first no */
        } member;
        struct store_token token;
        struct {
            const char *key;
            struct text value;
        } setting;
        struct {
            struct job_id job;
            struct text sealed;
        } reseal;
        struct store_attempt_end attempt_end;
        struct store_submit_key submit_key;
        struct {
            struct job_id job;
            uint32_t attempt; /* of the job */
            enum barrier_kind kind;
        } barrier;
        struct {
            const char *holder;
            bool is_group;
            unsigned kinds;       /* bits 1 << enum quota_kind */
            struct quotas values; /* QUOTA_NONE takes one away */
        } quotas;
        struct {
            struct store_template row;
            const char *user; /* STAR; ADD, SET: who writes it, NULL: its author */
            bool is_starred;  /* STAR */
            bool by_admin;    /* ADD, SET: nobody else needs to approve it */
            int64_t seen_ms;  /* SET: updated_ms of the row that was changed; 0: of any */
            int64_t now_ms;   /* USE */
        } template;
        struct {
            struct store_request row; /* ACT: id, decided_ms, decider, answer and group */
            enum request_act act;
            bool is_told; /* ACT: a decision becomes a mail to who has asked */
        } request;
        struct {
            const char *target;
            struct notice row;
        } notice;
        struct {
            const uint64_t *numbers;
            size_t count;
        } sent;
        struct {
            int64_t before_ms; /* 0: however old */
            uint64_t most;     /* 0: any number */
        };
    };
    /* Written down in the same transaction, whatever comes of the change; NULL: nothing is. */
    const struct store_audit *audit;
    unsigned fields;           /* USER_SET, GROUP_SET: what is replaced; 0: everything */
    const char *extension_was; /* likewise: only of this extension; NULL: of any */
    bool reuses_name;          /* USER_ADD, REQUEST_ACT: though it was a removed user's */
    const char *token_kept;    /* USER_SET: id of a token that a new password leaves; NULL: none */
    int code;                  /* out: 0 or ERR_* */
    struct err *err;           /* out, may be NULL */
};

struct store_batch {
    const struct store_event *events;
    size_t event_count;
    const struct output *output; /* records only; may be NULL */
    struct store_change *changes;
    size_t change_count;
    bool keeps_reserve; /* a full disk takes none for it: nobody waits for it */
};

/* One transaction; on failure nothing of it is stored. The codes tell whose fault it is.
 * The disk's, or the network's: ERR_UNAVAILABLE (full, read-only, not reached), ERR_BUSY (locked by
 * another program), ERR_IO; the same batch may succeed later. Whether a batch was stored after all
 * whose answer was lost is found out before the next one; the reads show it from then on.
 * ERR_CONFLICT: another server has taken the database over. ERR_CORRUPT: the database is damaged.
 * A record's: ERR_INTERNAL. A row that should change does not exist, or one that should be new
 * exists already: the same batch fails again, however good the disk is. */
int store_commit(struct store *store, const struct store_batch *batch, struct err *err);

/* After ERR_INTERNAL: the first job of which the records alone are refused, and in `err` why.
 * Nothing is stored; costs a transaction for each job. ERR_NOT_FOUND: there is none; others as a
 * commit. */
int store_refused_job(struct store *store, const struct output *output, struct job_id *job,
                      struct err *err);

/* Likewise the first node of which the row is refused by itself, of the records from *at on. *at is
 * behind it then, so that the next one can be asked for. */
int store_refused_node(struct store *store, const struct output *output, size_t *at,
                       struct node_id *node, struct err *err);

/* A reserve of room on the disk is given up to a commit that finds it full. Then, and as long as
 * there is no room for a new one, the store is short: commits may fail soon, and only what frees
 * room, or has happened, should be committed. Any thread. */
bool store_is_short(const struct store *store);
/* The database has lost commits that it had said to be durable (0012): it is behind what this
 * process has told others, and takes nothing more from it (ERR_CONFLICT). A store that is opened
 * anew goes on from what is left, with an epoch. Any thread. */
bool store_is_behind(const struct store *store);
/* The committing thread: make the reserve again when there is room. Returns whether the store is
 * still short. */
bool store_make_room(struct store *store);

/* A commit was refused with this code, and no record is to blame: the disk, or the network, may be
 * better soon, or all is over with this server. */
bool store_refusal_passes(int code);

/* Jobs that are deleted, of which rows of tasks, attempts and stories may be left: nobody is shown
 * them, and they go by one CHANGE_DELETIONS after the other. The commit that deletes a job does the
 * first, so that a small one leaves nothing. Any thread. */
uint64_t store_deletions(const struct store *store);
/* Those of them of which a piece was refused (ERR_UNAVAILABLE and ERR_BUSY are no refusal), and the
 * others. When there are no others, a CHANGE_DELETIONS tries the one again that was refused longest
 * ago. */
uint64_t store_deletions_refused(const struct store *store);
uint64_t store_deletions_waiting(const struct store *store);

/* What retention looks at; the committing thread only. Bytes of the database without free pages;
 * time of the oldest event in the log, 0 when there is none. */
int store_measure(struct store *store, uint64_t *used_bytes, int64_t *oldest_event_ms,
                  struct err *err);

/* Counts for /metrics; any thread. */
struct store_counts {
    uint64_t commits, commit_failures, records, events;
    uint64_t database_bytes, wal_bytes; /* of the files */
    int64_t wal_large_since_ms;         /* Unix time from which on the log is larger than it should
                                         * be (200 MiB); 0: it is not */
    uint64_t commit_us;                 /* total time in store_commit */
};
void store_count(const struct store *store, struct store_counts *counts);

/* A copy of a database that goes on does not know what numbers were given since it was made. So
 * each restore of a copy begins an epoch: numbers go on beyond all that were given, and what is
 * derived of a job's number is derived with the epoch's id, too. */
struct store_epoch {
    uint32_t number; /* 0: the first, of which nothing is derived */
    uint64_t id;     /* random */
    struct job_id first_job;
    struct attempt_id first_attempt;
};
/* Any thread. */
struct store_epoch store_epoch_of(struct store *store, struct job_id job);
struct store_epoch store_epoch_last(struct store *store);
/* The committing thread: begin one, with attempts numbered beyond
 * `beyond`, because somebody knows that number. ERR_TOO_BIG: after some 4,000 of them. */
int store_epoch_begin(struct store *store, struct attempt_id beyond, const char *reason,
                      struct err *err);
/* The last numbers that were given; the committing thread. */
void store_numbers(const struct store *store, struct job_id *job, struct attempt_id *attempt);

/* Look through the whole database for damage. ERR_CORRUPT says what was found first. */
int store_check(struct store *store, struct err *err);

/* A connection of its own, for one thread at a time; the caller's, closed before the store is.
 * ERR_IO, ERR_CORRUPT. */
int store_reader_open(struct store *store, struct store_reader **reader, struct err *err);
void store_reader_close(struct store_reader *reader); /* NULL is fine */

static inline void cleanup_close_store_reader(struct store_reader **reader)
{
    store_reader_close(*reader);
}
#define cleanup_store_reader __attribute__((cleanup(cleanup_close_store_reader)))

#endif
