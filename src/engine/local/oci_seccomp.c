/* The system calls a container may make: what Docker's default profile allows to a container with
 * the default capabilities, on the architectures that Skep is built for. Names are libseccomp's;
 * both runtimes skip those that their libseccomp does not know. */
#include "base/buf.h"
#include "base/err.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "engine/local/filter.h"
#include "engine/local/oci.h"
#include "sys/cleanup.h"
#include <errno.h>
#include <seccomp.h>
#include <sodium.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* clang-format off */
static const char *const allowed[] = {
    "_llseek", "_newselect", "accept", "accept4", "access", "adjtimex", "alarm", "bind", "brk",
    "cachestat", "capget", "capset", "chdir", "chmod", "chown", "chown32", "chroot",
    "clock_adjtime", "clock_adjtime64", "clock_getres", "clock_getres_time64", "clock_gettime",
    "clock_gettime64", "clock_nanosleep", "clock_nanosleep_time64", "close", "close_range",
    "connect", "copy_file_range", "creat", "dup", "dup2", "dup3", "epoll_create", "epoll_create1",
    "epoll_ctl", "epoll_ctl_old", "epoll_pwait", "epoll_pwait2", "epoll_wait", "epoll_wait_old",
    "eventfd", "eventfd2", "execve", "execveat", "exit", "exit_group", "faccessat", "faccessat2",
    "fadvise64", "fadvise64_64", "fallocate", "fanotify_mark", "fchdir", "fchmod", "fchmodat",
    "fchmodat2", "fchown", "fchown32", "fchownat", "fcntl", "fcntl64", "fdatasync", "fgetxattr",
    "flistxattr", "flock", "fork", "fremovexattr", "fsetxattr", "fstat", "fstat64", "fstatat64",
    "fstatfs", "fstatfs64", "fsync", "ftruncate", "ftruncate64", "futex", "futex_requeue",
    "futex_time64", "futex_wait", "futex_waitv", "futex_wake", "futimesat", "get_robust_list",
    "get_thread_area", "getcpu", "getcwd", "getdents", "getdents64", "getegid", "getegid32",
    "geteuid", "geteuid32", "getgid", "getgid32", "getgroups", "getgroups32", "getitimer",
    "getpeername", "getpgid", "getpgrp", "getpid", "getppid", "getpriority", "getrandom",
    "getresgid", "getresgid32", "getresuid", "getresuid32", "getrlimit", "getrusage", "getsid",
    "getsockname", "getsockopt", "gettid", "gettimeofday", "getuid", "getuid32", "getxattr",
    "inotify_add_watch", "inotify_init", "inotify_init1", "inotify_rm_watch", "io_cancel",
    "io_destroy", "io_getevents", "io_pgetevents", "io_pgetevents_time64", "io_setup", "io_submit",
    "ioctl", "ioprio_get", "ioprio_set", "ipc", "kill", "landlock_add_rule",
    "landlock_create_ruleset", "landlock_restrict_self", "lchown", "lchown32", "lgetxattr", "link",
    "linkat", "listen", "listxattr", "llistxattr", "lremovexattr", "lseek", "lsetxattr", "lstat",
    "lstat64", "madvise", "map_shadow_stack", "membarrier", "memfd_create", "memfd_secret",
    "mincore", "mkdir", "mkdirat", "mknod", "mknodat", "mlock", "mlock2", "mlockall", "mmap",
    "mmap2", "mprotect", "mq_getsetattr", "mq_notify", "mq_open", "mq_timedreceive",
    "mq_timedreceive_time64", "mq_timedsend", "mq_timedsend_time64", "mq_unlink", "mremap",
    "msgctl", "msgget", "msgrcv", "msgsnd", "msync", "munlock", "munlockall", "munmap",
    "name_to_handle_at", "nanosleep", "newfstatat", "open", "openat", "openat2", "pause",
    "pidfd_open", "pidfd_send_signal", "pipe", "pipe2", "pkey_alloc", "pkey_free", "pkey_mprotect",
    "poll", "ppoll", "ppoll_time64", "prctl", "pread64", "preadv", "preadv2", "prlimit64",
    "process_mrelease", "process_vm_readv", "process_vm_writev", "pselect6", "pselect6_time64",
    "ptrace", "pwrite64", "pwritev", "pwritev2", "read", "readahead", "readlink", "readlinkat",
    "readv", "recv", "recvfrom", "recvmmsg", "recvmmsg_time64", "recvmsg", "remap_file_pages",
    "removexattr", "rename", "renameat", "renameat2", "restart_syscall", "rmdir", "rseq",
    "rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigqueueinfo", "rt_sigreturn",
    "rt_sigsuspend", "rt_sigtimedwait", "rt_sigtimedwait_time64", "rt_tgsigqueueinfo",
    "sched_get_priority_max", "sched_get_priority_min", "sched_getaffinity", "sched_getattr",
    "sched_getparam", "sched_getscheduler", "sched_rr_get_interval", "sched_rr_get_interval_time64",
    "sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler", "sched_yield",
    "seccomp", "select", "semctl", "semget", "semop", "semtimedop", "semtimedop_time64", "send",
    "sendfile", "sendfile64", "sendmmsg", "sendmsg", "sendto", "set_robust_list", "set_thread_area",
    "set_tid_address", "setfsgid", "setfsgid32", "setfsuid", "setfsuid32", "setgid", "setgid32",
    "setgroups", "setgroups32", "setitimer", "setpgid", "setpriority", "setregid", "setregid32",
    "setresgid", "setresgid32", "setresuid", "setresuid32", "setreuid", "setreuid32", "setrlimit",
    "setsid", "setsockopt", "setuid", "setuid32", "setxattr", "shmat", "shmctl", "shmdt", "shmget",
    "shutdown", "sigaltstack", "signalfd", "signalfd4", "sigprocmask", "sigreturn", "socketcall",
    "socketpair", "splice", "stat", "stat64", "statfs", "statfs64", "statx", "symlink", "symlinkat",
    "sync", "sync_file_range", "syncfs", "sysinfo", "tee", "tgkill", "time", "timer_create",
    "timer_delete", "timer_getoverrun", "timer_gettime", "timer_gettime64", "timer_settime",
    "timer_settime64", "timerfd_create", "timerfd_gettime", "timerfd_gettime64", "timerfd_settime",
    "timerfd_settime64", "times", "tkill", "truncate", "truncate64", "ugetrlimit", "umask", "uname",
    "unlink", "unlinkat", "utime", "utimensat", "utimensat_time64", "utimes", "vfork", "vmsplice",
    "wait4", "waitid", "waitpid", "write", "writev",
};
/* clang-format on */

#if defined(__x86_64__)
static const char *const allowed_here[] = {"arch_prctl", "modify_ldt"};
static const char *const architectures[] = {"SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"};
static const uint32_t other_architectures[] = {SCMP_ARCH_X86, SCMP_ARCH_X32};
#elif defined(__aarch64__)
static const char *const allowed_here[] = {"arm_fadvise64_64", "arm_sync_file_range",
                                           "sync_file_range2", "breakpoint",
                                           "cacheflush",       "set_tls"};
static const char *const architectures[] = {"SCMP_ARCH_AARCH64", "SCMP_ARCH_ARM"};
static const uint32_t other_architectures[] = {SCMP_ARCH_ARM};
#else
#error "the seccomp profile of this architecture is not known"
#endif

enum {
    /* CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET */
    CLONE_NAMESPACES = 0x7e020000,
    FAMILY_VSOCK = 40, /* talks to the hypervisor, past every network rule */
};

/* those of personality(2) that weaken nothing: Linux, Linux32, UNAME26, both, and the question */
static const uint64_t personalities[] = {0x0, 0x8, 0x20000, 0x20008, 0xffffffff};

static void names_write(struct json_writer *json, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        json_string(json, names[i]);
}

static void argument_write(struct json_writer *json, uint64_t value, uint64_t value_two,
                           const char *comparison)
{
    json_key(json, "args");
    json_array(json);
    json_object(json);
    json_key_int(json, "index", 0);
    json_key_int(json, "value", (int64_t)value);
    json_key_int(json, "valueTwo", (int64_t)value_two);
    json_key_string(json, "op", comparison);
    json_object_end(json);
    json_array_end(json);
}

static void rule_open(struct json_writer *json, const char *name, const char *action)
{
    json_object(json);
    json_key(json, "names");
    json_array(json);
    if (name)
        json_string(json, name);
    else {
        names_write(json, allowed, COUNT_OF(allowed));
        names_write(json, allowed_here, COUNT_OF(allowed_here));
    }
    json_array_end(json);
    json_key_string(json, "action", action);
}

/* Docker allows these beside CAP_SYS_ADMIN, without which the capability is of no use. */
static const char *const allowed_to_admin[] = {
    "clone", "fsconfig",   "fsmount",   "fsopen",      "fspick", "mount",   "mount_setattr",
    "setns", "move_mount", "open_tree", "sethostname", "umount", "umount2", "unshare",
};

static void admin_write(struct json_writer *json)
{
    json_object(json);
    json_key_strings(json, "names", allowed_to_admin, COUNT_OF(allowed_to_admin));
    json_key_string(json, "action", "SCMP_ACT_ALLOW");
    json_object_end(json);
}

void oci_seccomp_write(struct json_writer *json, bool is_admin)
{
    json_key(json, "seccomp");
    json_object(json);
    json_key_string(json, "defaultAction", "SCMP_ACT_ERRNO");
    json_key_int(json, "defaultErrnoRet", EPERM);
    json_key(json, "architectures");
    json_array(json);
    names_write(json, architectures, COUNT_OF(architectures));
    json_array_end(json);
    json_key(json, "syscalls");
    json_array(json);
    rule_open(json, NULL, "SCMP_ACT_ALLOW");
    json_object_end(json);
    for (size_t i = 0; i < COUNT_OF(personalities); i++) {
        rule_open(json, "personality", "SCMP_ACT_ALLOW");
        argument_write(json, personalities[i], 0, "SCMP_CMP_EQ");
        json_object_end(json);
    }
    rule_open(json, "socket", "SCMP_ACT_ALLOW");
    argument_write(json, FAMILY_VSOCK, 0, "SCMP_CMP_NE");
    json_object_end(json);
    if (is_admin) {
        admin_write(json);
    } else {
        rule_open(json, "clone", "SCMP_ACT_ALLOW");
        argument_write(json, CLONE_NAMESPACES, 0, "SCMP_CMP_MASKED_EQ");
        json_object_end(json);
    }
    /* its flags stand in memory, out of a filter's sight: C libraries fall back to clone */
    rule_open(json, "clone3", "SCMP_ACT_ERRNO");
    json_key_int(json, "errnoRet", ENOSYS);
    json_object_end(json);
    json_array_end(json);
    json_object_end(json);
}

/* --- the same, compiled --- */

/* Names that this libseccomp does not know are no system calls of its time: refused by default. */
static int names_allow(scmp_filter_ctx filter, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int number = seccomp_syscall_resolve_name(names[i]);
        int code =
            number == __NR_SCMP_ERROR ? 0 : seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0);
        if (code < 0)
            return code;
    }
    return 0;
}

static int rules_add(scmp_filter_ctx filter)
{
    int code = names_allow(filter, allowed, COUNT_OF(allowed));
    if (code == 0)
        code = names_allow(filter, allowed_here, COUNT_OF(allowed_here));
    for (size_t i = 0; code == 0 && i < COUNT_OF(personalities); i++)
        code = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(personality), 1,
                                SCMP_A0_64(SCMP_CMP_EQ, personalities[i], 0));
    if (code == 0)
        code = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
                                SCMP_A0_64(SCMP_CMP_NE, FAMILY_VSOCK, 0));
    if (code == 0)
        code = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
                                SCMP_A0_64(SCMP_CMP_MASKED_EQ, CLONE_NAMESPACES, 0));
    int clone3 = seccomp_syscall_resolve_name("clone3");
    if (code == 0 && clone3 != __NR_SCMP_ERROR)
        code = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), clone3, 0);
    return code;
}

static int program_read(int fd, struct sock_filter *program, size_t *count)
{
    struct stat stat;
    if (fstat(fd, &stat) < 0 || stat.st_size <= 0 ||
        (size_t)stat.st_size > FILTER_MAX * sizeof *program)
        return -EIO;
    *count = (size_t)stat.st_size / sizeof *program;
    return pread(fd, program, (size_t)stat.st_size, 0) == stat.st_size ? 0 : -EIO;
}

int oci_seccomp_compile(struct sock_filter *program, size_t *count, struct err *err)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    if (!filter)
        return err_fail(err, ERR_IO, "", "libseccomp does not start");
    int code = 0;
    for (size_t i = 0; code == 0 && i < COUNT_OF(other_architectures); i++)
        code = seccomp_arch_add(filter, other_architectures[i]);
    if (code == 0)
        code = rules_add(filter);
    if (code == 0) /* a tree instead of a list: fewer steps for each call */
        code = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    cleanup_close int fd = memfd_create("seccomp", MFD_CLOEXEC);
    if (code == 0)
        code = fd < 0 ? -errno : seccomp_export_bpf(filter, fd);
    if (code == 0)
        code = program_read(fd, program, count);
    seccomp_release(filter);
    return code == 0 ? 0 : err_errno(err, -code, "compile the seccomp profile");
}

static int program_compile_short(struct sock_filter *program, size_t *count, struct err *err)
{
    cleanup_free struct sock_filter *shorter = mem_zero(FILTER_MAX, sizeof *shorter);
    int code = oci_seccomp_compile(program, count, err);
    size_t shorter_count = code == 0 ? filter_shorten(program, *count, shorter) : 0;
    if (shorter_count) {
        memcpy(program, shorter, shorter_count * sizeof *program);
        *count = shorter_count;
    }
    return code;
}

int oci_seccomp_bpf(struct buf *out, struct err *err)
{
    cleanup_free struct sock_filter *program = mem_zero(FILTER_MAX, sizeof *program);
    size_t count = 0;
    int code = program_compile_short(program, &count, err);
    if (code == 0) {
        size_t size = count * sizeof *program;
        size_t room = sodium_base64_ENCODED_LEN(size, sodium_base64_VARIANT_ORIGINAL);
        cleanup_free char *text = mem_alloc(room);
        sodium_bin2base64(text, room, (const unsigned char *)program, size,
                          sodium_base64_VARIANT_ORIGINAL);
        buf_string(out, text);
    }
    return code;
}
