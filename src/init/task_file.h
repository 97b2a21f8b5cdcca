/* task_file.h — what one try of one task must know beside the job file: its place, its commands.
 *
 * Pure. Written by the server for each attempt, read by skep-init. It holds the commands with the
 * secrets rendered and the job's private ssh key: the engine writes it with mode 0400, and nothing
 * of it is logged. Own address, node and ports stand in the job file's table.
 */
#ifndef INIT_TASK_FILE_H
#define INIT_TASK_FILE_H
#include "base/text.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct buf;
struct err;

enum {
    TASK_FILE_BYTES_MAX = 8 << 20,
    TASK_FILE_GPUS_MAX = 64,
};

struct task_file {
    uint64_t attempt_id;   /* names the container */
    const char *container; /* the container's or pod's name */
    uint16_t role, index;
    uint32_t task_attempt, retries; /* index of this try, from 0; retries charged so far */
    const uint16_t *gpus;           /* device indices on the node */
    size_t gpu_count;
    bool is_gpu_simulated; /* indices only: no device is there */
    /* Shell text. pre: plugins' preparations, into the runtime log; post: after success only. "" =
     * none. The user's command must not be empty. */
    const char *pre_command, *command, *post_command;
    /* ssh between the tasks of a job attempt; "" = none. The private key in OpenSSH's or PEM form,
     * the public key one line. `authorized_keys`: further lines, the user's own keys. */
    const char *ssh_private_key, *ssh_public_key, *ssh_authorized_keys;
    bool has_ssh_barrier;           /* wait until the ssh servers of all tasks with ssh answer */
    uint32_t ssh_barrier_timeout_s; /* 0: the default, and no barrier where no sshd could be
                                       started, as early jobs had it */
    /* The server that answers when all tasks have come (docs/rfc/0009): http://HOST:PORT/… or
     * unix:SOCKET:/…, to which the barrier's name is added; "" = none can be reached. The token, of
     * this try alone, goes into the Authorization header. */
    const char *barrier_url, *barrier_token;
    bool has_start_barrier;
    uint32_t barrier_timeout_s; /* of the start barrier; 0: the default */
    bool reports_ssh;           /* others wait for this task's ssh, also when it does not */
    const char *code_path;      /* of a folder in the container that is copied into the working
                                   directory under the last name of the job's codeDir; "" = none */
    uint64_t segment_bytes;     /* of a log segment; 0 = LAYOUT_SEGMENT_BYTES */
};

void task_file_write(const struct task_file *task, struct buf *out);

/* Everything that `task` points to is in `arena`. ERR_CORRUPT, ERR_UNSUPPORTED as
 * job_file_read. */
int task_file_read(struct text bytes, struct arena *arena, struct task_file *task, struct err *err);

#endif
