/* ssh between the tasks of a job attempt: a key pair that all of them share, a server on the task's
 * ssh port when the image has one, and `ssh worker-0` for the client. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "init/init.h"
#include "init/ssh_config.h"

static int directory_make(const char *path, mode_t mode, struct err *err)
{
    if (mkdir(path, mode) < 0 && errno != EEXIST)
        return err_errno(err, errno, "cannot create %s", path);
    return 0;
}

static void file_append(const char *path, struct buf *out)
{
    char bytes[4096];
    size_t length;
    FILE *file = fopen(path, "re");
    while (file && (length = fread(bytes, 1, sizeof bytes, file)) > 0)
        buf_add(out, bytes, length);
    if (file)
        fclose(file);
}

/* ~/.ssh/environment: what `ssh worker-0 command` sees. One line a variable, so those with a
 * newline cannot be there. */
static void environment_text(struct init *init, struct buf *out)
{
    for (char **entry = init->environment; *entry; entry++)
        if (!strchr(*entry, '\n') && strncmp(*entry, "PWD=", 4) != 0)
            buf_format(out, "%s\n", *entry);
}

/* What the image had in its own config comes after ours, which names nothing but tasks. */
static int client_files(struct init *init, const char *folder, const char *key, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT;
    const char *path = arena_format(&init->arena, "%s/config", folder);
    ssh_config_write(&init->job, init->user_name, key, &init->arena, &text);
    file_append(path, &text);
    int code = file_write(path, buf_as_text(&text), 0600, err);
    buf_clear(&text);
    if (code == 0) {
        path = arena_format(&init->arena, "%s/authorized_keys", folder);
        file_append(path, &text);
        if (text.length > 0 && text.at[text.length - 1] != '\n')
            buf_char(&text, '\n');
        buf_format(&text, "%s\n%s\n", init->task.ssh_public_key, init->task.ssh_authorized_keys);
        code = file_write(path, buf_as_text(&text), 0600, err);
    }
    buf_clear(&text);
    if (code == 0) {
        environment_text(init, &text);
        path = arena_format(&init->arena, "%s/environment", folder);
        code = file_write(path, buf_as_text(&text), 0600, err);
    }
    return code;
}

static int key_files(struct init *init, const char *key, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT;
    const char *private_key = init->task.ssh_private_key;
    buf_string(&text, private_key);
    if (text.at[text.length - 1] != '\n') /* ssh refuses a key without it */
        buf_char(&text, '\n');
    int code = file_write(key, buf_as_text(&text), 0600, err);
    buf_clear(&text);
    buf_format(&text, "%s\n", init->task.ssh_public_key);
    if (code == 0)
        code = file_write(arena_format(&init->arena, "%s.pub", key), buf_as_text(&text), 0644, err);
    return code;
}

/* The job's key is the server's host key as well: it is known to the job alone, and making another
 * one would take longer than all the rest. */
static void server_config(struct init *init, const char *key, unsigned port, struct buf *out)
{
    buf_format(out,
               "Port %u\nHostKey %s\nPidFile none\nUsePAM no\nStrictModes no\nUseDNS no\n"
               "PermitRootLogin prohibit-password\nPasswordAuthentication no\n"
               "KbdInteractiveAuthentication no\nPubkeyAuthentication yes\n"
               "AuthorizedKeysFile %s/.ssh/authorized_keys\nPermitUserEnvironment yes\n"
               "PrintMotd no\nX11Forwarding no\nLogLevel FATAL\nMaxStartups 500\nMaxSessions 500\n"
               "Subsystem sftp internal-sftp\n",
               port, key, init->home);
}

/* The job file asked for it: a barrier tells the others, and says so to all; else nobody would. */
static int sshd_missing(struct init *init, const char *program, unsigned port, struct err *err)
{
    if (port == 0 || init->role->is_ssh_optional || init->task.has_ssh_barrier)
        return 0;
    init->end.code = EXIT_FILE_SSH_MISSING;
    return err_fail(err, ERR_UNSUPPORTED, "",
                    "plugin ssh: the image has no %s; install openssh-server in it, or set the "
                    "plugin's failurePolicy to ignore",
                    program);
}

static int server_start(struct init *init, const char *key, struct err *err)
{
    static const char PROGRAM[] = "/usr/sbin/sshd";
    unsigned port = env_port(&init->job, init->task.role, init->task.index, "ssh");
    if (access(PROGRAM, X_OK) < 0 || port == 0) {
        note(init, "the image has no %s: peers cannot reach this task by ssh", PROGRAM);
        return sshd_missing(init, PROGRAM, port, err);
    }
    cleanup_buf struct buf text = BUF_INIT;
    const char *path = arena_format(&init->arena, "%s/run/sshd_config", init->root);
    server_config(init, key, port, &text);
    int code = file_write(path, buf_as_text(&text), 0600, err);
    if (code < 0)
        return code;
    if (getuid() == 0) { /* sshd's privilege separation; the packages leave it to their service */
        mkdir("/run", 0755);
        code = directory_make("/run/sshd", 0755, err);
        if (code < 0)
            return code;
    }
    const char *argv[] = {PROGRAM, "-D", "-e", "-f", path, NULL};
    pid_t pid = command_start(init, argv, PIPE_RUNTIME, PIPE_RUNTIME, err);
    if (pid < 0)
        return (int)pid;
    init->sshd_pid = pid;
    return 0;
}

int ssh_setup(struct init *init, struct err *err)
{
    if (!init->role->is_ssh_enabled || !init->task.ssh_private_key[0])
        return 0;
    const char *folder = arena_format(&init->arena, "%s/.ssh", init->home);
    const char *key = private_path(init, "skep_job");
    int code = directory_make(folder, 0700, err);
    if (code < 0 && init->role->is_ssh_optional) {
        note(init, "%s: no ssh to and from this task", err->text);
        return 0;
    }
    if (code == 0)
        code = key_files(init, key, err);
    if (code == 0)
        code = client_files(init, folder, key, err);
    if (code == 0)
        code = server_start(init, key, err);
    return code;
}
