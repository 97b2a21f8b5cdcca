#include "init/ssh_config.h"

#include <inttypes.h>

#include "base/arena.h"
#include "base/buf.h"
#include "init/env.h"
#include "init/job_file.h"

static void task_write(const struct job_file *job, size_t role, uint32_t index, const char *user,
                       const char *key, struct arena *arena, struct buf *out)
{
    const char *names[ENV_SPELLINGS];
    const char *address = job->tasks[job_file_first_task(job, role) + index].address;
    size_t count = env_role_spellings(job, role, arena, names);
    if (!address[0])
        return;
    buf_string(out, "Host");
    for (size_t i = 0; i < count; i++)
        buf_format(out, " %s-%" PRIu32, names[i], index);
    buf_format(out, "\n  HostName %s\n  Port %u\n", address, env_port(job, role, index, "ssh"));
    if (user[0])
        buf_format(out, "  User %s\n", user);
    /* the addresses and ports are new with every attempt, and so is the key */
    buf_format(out,
               "  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n"
               "  LogLevel ERROR\n  IdentityFile %s\n",
               key);
}

void ssh_config_write(const struct job_file *job, const char *user, const char *key,
                      struct arena *arena, struct buf *out)
{
    for (size_t r = 0; r < job->role_count; r++)
        for (uint32_t i = 0; job->roles[r].is_ssh_enabled && i < job->roles[r].instances; i++)
            task_write(job, r, i, user, key, arena, out);
}
