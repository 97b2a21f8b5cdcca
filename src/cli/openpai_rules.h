/* openpai_rules.h — what each setting of OpenPAI is in Skep: one table. */
#ifndef CLI_OPENPAI_RULES_H
#define CLI_OPENPAI_RULES_H
#include "cli/openpai.h"

enum openpai_special {
    SPECIAL_NONE,
    SPECIAL_CELLS,
    SPECIAL_OIDC,
    SPECIAL_GROUPS,
    SPECIAL_TLS,
    SPECIAL_PLUGINS,
    SPECIAL_MAIL,
    SPECIAL_RECEIVERS,
};

struct openpai_rule {
    const char *path; /* of a setting, or of a whole section; NULL ends the table */
    enum openpai_note_kind kind;
    const char *target; /* NOTE_TAKEN: the key of skepd.yaml */
    const char *text;   /* else: why, or what to do */
    enum openpai_special special;
    bool is_number; /* NOTE_TAKEN: of its value */
};

extern const struct openpai_rule OPENPAI_SERVICES[];
extern const struct openpai_rule OPENPAI_CONFIG[];

#endif
