/* auth.h — who may do what: (caller, right, subject) → yes, or why not.
 *
 * Pure. Every decision about a right is made here, by one function over one table; the edges find
 * out who the caller is (tokens, the store) and what the subject is, and carry the answer out.
 * Nothing is owned: all strings are borrowed for the call. A decision costs a few comparisons; what
 * the caller was granted is searched by halves.
 */
#ifndef AUTH_AUTH_H
#define AUTH_AUTH_H
#include <stdbool.h>
#include <stddef.h>

struct err;

enum auth_right {
    AUTH_CALL,         /* to call what needs no more than an account */
    AUTH_SESSION,      /* to log out, and to list, make and revoke tokens */
    AUTH_ADMINISTER,   /* to change nodes and virtual clusters */
    AUTH_MANAGE,       /* to make, change and remove users and groups */
    AUTH_MANAGE_GROUP, /* to say who is in the subject's group */
    AUTH_READ_MEMBERS, /* to see who is in it */
    AUTH_EDIT_USER,    /* to change the profile of the subject's owner: mail, password, extension */
    AUTH_READ_PROFILE, /* to see it */
    AUTH_SUBMIT,       /* to submit jobs */
    AUTH_SUBMIT_AS,    /* to submit jobs of the subject's owner */
    AUTH_CHANGE_JOB,   /* to stop, start, scale, tag, release or delete a job, to see its secrets */
    AUTH_ENTER_JOB,    /* to start programs in its running tasks: a terminal */
    AUTH_READ_OUTPUT, /* to read what its tasks wrote: logs, last lines, lines that rules matched */
    AUTH_READ_CONFIG, /* to read its job file, secrets masked */
    AUTH_USE_CLUSTER, /* to submit jobs to the subject's virtual cluster */
    AUTH_USE_STORAGE, /* to see the subject's storage, and to have it mounted */
    AUTH_REVOKE,      /* to revoke a token of the subject's owner */
    AUTH_READ_TEMPLATE, /* to see a template, and to begin jobs from it */
    AUTH_EDIT_TEMPLATE, /* to change or remove it */
    AUTH_REUSE_SECRETS, /* to submit a job that takes its secrets from the subject, a job */
    AUTH_READ_REQUEST,  /* to see what the subject's owner has asked administrators for */
    AUTH_WITHDRAW,      /* to withdraw it */
};
enum { AUTH_RIGHT_COUNT = AUTH_WITHDRAW + 1 };

/* What an application token is good for; each but the first is named when the token is made.
 * Stored: never change one. */
enum auth_scope {
    AUTH_SCOPE_USUAL = 0,  /* what its user may do, but for accounts and sessions, as in OpenPAI */
    AUTH_SCOPE_READ = 1,   /* to read what its user may read as no admin */
    AUTH_SCOPE_SUBMIT = 2, /* that, and to submit and change its user's jobs */
    AUTH_SCOPE_ADMIN = 3,  /* what its user may do, but for sessions */
};
enum { AUTH_SCOPE_COUNT = AUTH_SCOPE_ADMIN + 1 };

struct auth_caller {
    const char *user;      /* "": nobody */
    bool is_admin;         /* of the platform */
    bool is_application;   /* came with an application token … */
    enum auth_scope scope; /* … of this scope */
    /* The three lists are in the order of strcmp. */
    /* names of virtual clusters granted to the user or to a group of the user, beside `default`,
     * which is everybody's */
    const char *const *clusters;
    size_t cluster_count;
    const char *const *storages; /* names of those granted to a group of the user */
    size_t storage_count;
    /* names of the groups of which the user is the admin */
    const char *const *groups;
    size_t group_count;
};

struct auth_subject {
    const char *owner;   /* of the job, token, template or profile; NULL where there is none */
    const char *name;    /* of the job or template, for the message; NULL likewise */
    const char *cluster; /* of AUTH_USE_CLUSTER */
    const char *storage; /* of AUTH_USE_STORAGE */
    const char *group;   /* of AUTH_MANAGE_GROUP and AUTH_READ_MEMBERS */
    /* the operator lets everybody read what tasks write, and job files */
    bool is_output_open, is_config_open;
    bool is_shared; /* the template: with everyone, and approved, or with a group of the caller */
};

/* 0, or ERR_UNAUTHORIZED (nobody has said who calls) or ERR_FORBIDDEN with the sentence that says
 * which right was missing. `err` may be NULL. */
int auth_check(const struct auth_caller *caller, enum auth_right right,
               const struct auth_subject *subject, struct err *err);

/* "auth.session", …: the stable name of a right, for logs and answers. */
const char *auth_right_name(enum auth_right right);
/* "usual", "read", "submit", "admin". */
const char *auth_scope_name(enum auth_scope scope);

#endif
