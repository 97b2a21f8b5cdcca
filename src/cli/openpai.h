/* openpai.h — the configuration of an OpenPAI cluster, said in Skep's words.
 *
 * Pure. Read are the three files that `paictl config pull` and an installation leave behind
 * (OpenPAI 0.14 to 1.8): services-configuration.yaml, layout.yaml and config.yaml. What comes out
 * is skepd's configuration, HiveD's cells as they were, scripts that make the groups and prepare
 * the nodes, and a note on every setting that was read: none is passed over in silence.
 */
#ifndef CLI_OPENPAI_H
#define CLI_OPENPAI_H
#include "base/buf.h"
#include "doc/doc.h"

struct arena;

/* Of the pods of tasks. */
#define OPENPAI_NAMESPACE "skep-jobs"

/* What became of a setting. */
enum openpai_note_kind {
    NOTE_TAKEN, /* it stands in what was written */
    NOTE_TO_DO, /* the operator must do something */
    NOTE_GONE,  /* it has no counterpart, or needs none */
};

struct openpai_note {
    enum openpai_note_kind kind;
    const char *file; /* "services-configuration.yaml" */
    const char *path; /* "rest-server.jwt-secret" */
    const char *text; /* one sentence, no full stop */
};

struct openpai_input {
    const struct doc *services; /* the two others may be NULL: there is no such file */
    const struct doc *layout, *config;
    /* The groups of the cluster's secrets, a list as that of services-configuration.yaml; NULL:
     * they were not given. */
    const struct doc *groups;
    const struct doc *volumes; /* its claims and volumes; NULL: they were not given */
    bool has_users;            /* those of the secrets follow (openpai_users.h) */
    const char *folder;        /* where the output will stand: its files name each other by it */
    const char *init_image;    /* NULL: not known */
    bool is_local; /* tasks run on skepd's own machine, and not in a Kubernetes cluster */
};

struct openpai_output {
    struct buf skepd;         /* skepd.yaml */
    struct buf cells;         /* cells.yaml; empty: none */
    struct buf groups;        /* groups.sh; empty: there are none */
    struct buf secret;        /* oidc-secret, which nobody else may read; empty: none */
    struct buf mail_password; /* smtp-password, likewise */
    struct buf nodes;         /* nodes.sh; empty: there are no workers, or tasks run here */
    struct buf claims;        /* claims.yaml; empty: no storages, or tasks run here */
    struct buf users;         /* users.csv, which nobody else may read; empty: none */
    bool has_storages;        /* skepd.yaml has some */
    bool has_signon;          /* users logged in by OpenID Connect: they have no passwords */
    const char **group_names; /* that groups.sh makes */
    size_t group_count, group_room;
    struct openpai_note *notes;
    size_t note_count, note_room;
};

/* One more note; its strings live as long as the output. */
void openpai_note(struct openpai_output *output, enum openpai_note_kind kind, const char *file,
                  const char *path, const char *text);

/* OpenPAI reads "true", "True" and true alike. */
bool openpai_is_true(const struct doc *doc);

/* Strings of the notes are in the arena. */
void openpai_import(const struct openpai_input *input, struct arena *arena,
                    struct openpai_output *output);
void openpai_output_release(struct openpai_output *output);
#define cleanup_openpai __attribute__((cleanup(openpai_output_release)))

#endif
