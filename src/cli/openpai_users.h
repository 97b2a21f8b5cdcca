/* openpai_users.h — the users and groups of an OpenPAI cluster, which are secrets of Kubernetes.
 *
 * Read is what `kubectl get secrets -n NAMESPACE -o json` prints of pai-user-v2 (pai-user before
 * 0.11) and pai-group. Users become a file for `skep user import`, with the hashes of their
 * passwords as they are; groups become what services-configuration.yaml says of groups.
 */
#ifndef CLI_OPENPAI_USERS_H
#define CLI_OPENPAI_USERS_H
#include "base/text.h"
#include "cli/openpai.h"
#include <jansson.h>

struct arena;
struct err;

/* A list of the secrets as maps of their texts, decoded; of `grouplist` and `extension`, which hold
 * JSON, of that. "secret" is the name of each, "problem" what is wrong with it, if anything is.
 * Free it. ERR_INVALID: it is no such list. */
int openpai_secrets_read(struct text json, json_t **secrets, struct err *err);

/* After openpai_import: fills output->users, and notes. */
void openpai_users_take(const json_t *users, struct arena *arena, struct openpai_output *output);

#endif
