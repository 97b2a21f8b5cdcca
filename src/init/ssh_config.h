/* ssh_config.h — the client configuration by which `ssh worker-0` reaches a task of the job.
 *
 * Pure. Source of the rule: early PAI's and QIZHI's ~/.ssh/config.
 */
#ifndef INIT_SSH_CONFIG_H
#define INIT_SSH_CONFIG_H

struct arena;
struct buf;
struct job_file;

/* One Host block for each placed task of a role with ssh, under all spellings of the role's name.
 * `user` "" leaves it to ssh; `key` is the path of the private key. */
void ssh_config_write(const struct job_file *job, const char *user, const char *key,
                      struct arena *arena, struct buf *out);

#endif
