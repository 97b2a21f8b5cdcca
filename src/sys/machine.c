#include "sys/machine.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/cleanup.h"
#include "sys/file.h"
#include "sys/ids.h"
#include "sys/netlink.h"
#include "sys/process.h"
#include "sys/project.h"
#include "sys/userns.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/magic.h>
#include <linux/rtnetlink.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

const char *const machine_state_words[] = {"good", "less", "missing", "unknown"};

enum {
    KERNEL_NEEDED = 506,
    KERNEL_GROUP_KILL = 514,
    PIDS_FEW = 65536,
    INSTANCES_FEW = 512,
    PATH_ROOM = 512,
    NFT_TIMEOUT_MS = 10000,
};

struct machine_check {
    struct machine_finding *findings;
    size_t count;
    const char *directory;
    bool is_root;
};

static void finding_add(struct machine_check *check, const char *name, enum machine_state state,
                        const char *meaning, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

static void finding_add(struct machine_check *check, const char *name, enum machine_state state,
                        const char *meaning, const char *format, ...)
{
    assert(check->count < MACHINE_FINDINGS_MAX);
    struct machine_finding *finding = &check->findings[check->count++];
    *finding = (struct machine_finding){
        .name = name, .state = state, .meaning = state == MACHINE_GOOD ? "" : meaning};
    va_list args;
    va_start(args, format);
    vsnprintf(finding->found, sizeof finding->found, format, args);
    va_end(args);
}

/* --- kernel --- */

int machine_kernel_number(const char *release)
{
    char *end;
    const long major = strtol(release, &end, 10);
    const long minor = *end == '.' ? strtol(end + 1, NULL, 10) : -1;
    return major < 0 || major > 999 || minor < 0 || minor > 99 ? 0 : (int)(major * 100 + minor);
}

static void check_kernel(struct machine_check *check)
{
    struct utsname names;
    uname(&names);
    const int number = machine_kernel_number(names.release);
    const char *meaning = number < KERNEL_NEEDED
                              ? "Linux 5.6 or later is needed to read what tasks leave safely"
                              : "from 5.14 on, quotas of projects and an end of all processes at "
                                "once are there";
    finding_add(check, "kernel",
                number < KERNEL_NEEDED       ? MACHINE_MISSING
                : number < KERNEL_GROUP_KILL ? MACHINE_LESS
                                             : MACHINE_GOOD,
                meaning, "Linux %.80s", names.release);
}

static bool word_is_in(struct text words, const char *wanted)
{
    while (words.length > 0) {
        struct text word = text_cut(&words, ' ');
        if (text_is(text_trim(word), wanted))
            return true;
    }
    return false;
}

/* Controllers of v2, or the trees of v1: both as words. */
static void controllers_read(struct buf *out, bool *is_v2)
{
    cleanup_buf struct buf text = BUF_INIT;
    struct statfs file_system;
    *is_v2 =
        statfs("/sys/fs/cgroup", &file_system) == 0 && file_system.f_type == CGROUP2_SUPER_MAGIC;
    if (*is_v2) {
        file_read("/sys/fs/cgroup/cgroup.controllers", 4096, out, NULL);
        return;
    }
    file_read("/proc/self/cgroup", 65536, &text, NULL);
    struct text left = buf_as_text(&text);
    while (left.length > 0) { /* "4:cpu,cpuacct:/skep/1a2b/17" */
        struct text line = text_cut(&left, '\n');
        text_cut(&line, ':');
        struct text names = text_cut(&line, ':');
        while (names.length > 0) {
            struct text name = text_cut(&names, ',');
            buf_format(out, "%.*s ", TEXT_ARG(name));
        }
    }
}

static void check_groups(struct machine_check *check)
{
    static const char *const wanted[] = {"cpu", "memory", "pids"};
    cleanup_buf struct buf controllers = BUF_INIT;
    char lacking[64] = "";
    bool is_v2;
    controllers_read(&controllers, &is_v2);
    for (size_t i = 0; i < COUNT_OF(wanted); i++)
        if (!word_is_in(buf_as_text(&controllers), wanted[i])) {
            const size_t used = strlen(lacking);
            snprintf(lacking + used, sizeof lacking - used, " %s", wanted[i]);
        }
    if (lacking[0])
        finding_add(check, "control groups", MACHINE_MISSING,
                    "without them no task has limits; mount them, and see the kernel's options",
                    "no controller%s", lacking);
    else
        finding_add(check, "control groups", is_v2 ? MACHINE_GOOD : MACHINE_LESS,
                    "with v2 page cache goes before a task is killed for memory, and whose memory "
                    "ran out is always known: boot with systemd.unified_cgroup_hierarchy=1",
                    "%s", is_v2 ? "v2" : "v1");
}

static void check_processes(struct machine_check *check)
{
    cleanup_buf struct buf text = BUF_INIT;
    int64_t pids = 0;
    file_read("/proc/sys/kernel/pid_max", 64, &text, NULL);
    text_to_int64(text_trim(buf_as_text(&text)), &pids);
    finding_add(check, "processes", pids < PIDS_FEW ? MACHINE_LESS : MACHINE_GOOD,
                "tasks share half of this: raise kernel.pid_max (sysctl), up to 4194304",
                "at most %lld", (long long)pids);
}

/* What the kernel counts by user: with ids of its own for each job, else for all of them. */
static void check_inotify(struct machine_check *check)
{
    cleanup_buf struct buf text = BUF_INIT;
    int64_t instances = 0;
    file_read("/proc/sys/fs/inotify/max_user_instances", 64, &text, NULL);
    text_to_int64(text_trim(buf_as_text(&text)), &instances);
    finding_add(check, "inotify", instances < INSTANCES_FEW ? MACHINE_LESS : MACHINE_GOOD,
                "the tasks of a job share this, and all tasks and root where tasks have the "
                "machine's user ids: raise fs.inotify.max_user_instances (sysctl)",
                "at most %lld instances for each user", (long long)instances);
}

/* Tasks have none; what skepd has in memory may be there. */
static void check_swap(struct machine_check *check)
{
    cleanup_buf struct buf text = BUF_INIT;
    file_read("/proc/swaps", 65536, &text, NULL);
    struct text rest = buf_as_text(&text);
    text_cut(&rest, '\n'); /* the names of its columns */
    const struct text first = text_cut(&rest, ' ');
    const bool is_on_disk =
        first.length > 0 && !text_starts(first, TEXT("/dev/zram")); /* that is memory */
    finding_add(check, "swap", is_on_disk ? MACHINE_LESS : MACHINE_GOOD,
                "what the server has in memory may be written to the disk, secrets of jobs among "
                "it: encrypt it, or do without (swapoff)",
                is_on_disk ? "%.*s" : "none on a disk", TEXT_ARG(first));
}

static void check_seccomp(struct machine_check *check)
{
    const bool is_there = prctl(PR_GET_SECCOMP) >= 0;
    const bool has_filters = access("/proc/sys/kernel/seccomp/actions_avail", R_OK) == 0;
    finding_add(check, "seccomp", is_there && has_filters ? MACHINE_GOOD : MACHINE_MISSING,
                "no runtime starts a container with its filter of system calls; a kernel with "
                "CONFIG_SECCOMP_FILTER is needed",
                "%s", is_there && has_filters ? "filters" : "no filters");
}

static void check_namespaces(struct machine_check *check)
{
    static const char *const wanted[] = {"mnt", "pid", "ipc", "net"};
    char path[64], lacking[64] = "";
    for (size_t i = 0; i < COUNT_OF(wanted); i++) {
        snprintf(path, sizeof path, "/proc/self/ns/%s", wanted[i]);
        const size_t used = strlen(lacking);
        if (access(path, F_OK) < 0)
            snprintf(lacking + used, sizeof lacking - used, " %s", wanted[i]);
    }
    finding_add(check, "namespaces", lacking[0] ? MACHINE_MISSING : MACHINE_GOOD,
                "containers cannot be made", "%s%s", lacking[0] ? "lacks" : "mnt pid ipc net",
                lacking);
}

/* --- what must be tried --- */

/* What the process ended with, 0 … 125, or -1. */
static int answer_of(pid_t pid)
{
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ||
        WEXITSTATUS(status) > 125)
        return -1;
    return WEXITSTATUS(status);
}

/* Run `attempt` in a process that has a mount namespace of its own. Its answer, 0 … 125, or -1. */
static int tried_apart(int (*attempt)(const char *directory), const char *directory)
{
    const pid_t pid = fork();
    if (pid == 0) {
        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
            _exit(126);
        _exit(attempt(directory));
    }
    return answer_of(pid);
}

static int scratch_make(const char *directory, char scratch[PATH_ROOM])
{
    if (snprintf(scratch, PATH_ROOM, "%s/.skep-check-XXXXXX", directory) >= PATH_ROOM)
        return -1;
    return mkdtemp(scratch) ? 0 : -1;
}

static void scratch_part(const char *scratch, const char *name, char path[PATH_ROOM + 16])
{
    snprintf(path, PATH_ROOM + 16, "%s/%s", scratch, name);
}

static const char *const scratch_parts[] = {"lower", "upper", "work", "merged"};

/* An overlay of folders in the scratch folder. Without `volatile`, which Linux 5.10 has, its end
 * waits until all of the disk is written. */
static int overlay_try(const char *scratch)
{
    static const char *const ends[] = {",volatile", ""};
    char options[3 * PATH_ROOM + 64], merged[PATH_ROOM + 16];
    scratch_part(scratch, "merged", merged);
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        snprintf(options, sizeof options, "lowerdir=%s/lower,upperdir=%s/upper,workdir=%s/work%s",
                 scratch, scratch, scratch, ends[i]);
        if (mount("overlay", merged, "overlay", 0, options) == 0)
            return 0;
    }
    return 1;
}

enum { IDS_ALL, IDS_NO_MOUNT, IDS_NO_OVERLAY, IDS_NO_NAMESPACE, IDS_NO_PROC };

/* Each container has a /proc of its own. In a user namespace the kernel mounts one only where the
 * one that is there hides nothing. */
static bool proc_try(int userns_fd)
{
    const pid_t pid = fork();
    if (pid == 0) {
        if (setns(userns_fd, CLONE_NEWUSER) < 0 || unshare(CLONE_NEWNS | CLONE_NEWPID) < 0)
            _exit(1);
        const pid_t first = fork(); /* of the processes that it shows */
        if (first == 0)
            _exit(mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0);
        _exit(answer_of(first) != 0);
    }
    return answer_of(pid) == 0;
}

/* 0 … 65535 are some ids of the machine */
static const struct userns_map some_ids = {.extents = {{0, 100000, 65536}}, .count = 1};

/* Folders with other ids below an overlay: how images can be shared by tasks in user namespaces. */
static int ids_try(const char *scratch)
{
    char lower[PATH_ROOM + 16], merged[PATH_ROOM + 16], options[2 * PATH_ROOM + 64];
    const int ids = userns_make(&some_ids, &some_ids, some_ids.extents[0].outside, NULL);
    if (ids < 0)
        return IDS_NO_NAMESPACE;
    scratch_part(scratch, "lower", lower);
    const int tree = userns_mount(lower, ids, false, NULL);
    if (tree < 0 || move_mount(tree, "", AT_FDCWD, lower, MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return IDS_NO_MOUNT;
    snprintf(options, sizeof options, "lowerdir=%s/lower:%s/upper", scratch, scratch);
    scratch_part(scratch, "merged", merged);
    if (mount("overlay", merged, "overlay", MS_RDONLY, options) < 0)
        return IDS_NO_OVERLAY;
    return proc_try(ids) ? IDS_ALL : IDS_NO_PROC;
}

/* Are a file's owner and mode copied up without its data? And user namespaces, as above. */
static int layers_try(const char *scratch)
{
    static const char name[] = "lower/file", copy[] = "upper/file", shown[] = "merged/file";
    char path[PATH_ROOM + 16], merged[PATH_ROOM + 16], options[3 * PATH_ROOM + 64];
    const int ids = userns_make(&some_ids, &some_ids, some_ids.extents[0].outside, NULL);
    if (ids < 0)
        return IDS_NO_NAMESPACE;
    scratch_part(scratch, name, path);
    int answer = file_write(path, TEXT("data\n"), 0600, NULL) == 0 ? IDS_ALL : IDS_NO_OVERLAY;
    snprintf(options, sizeof options,
             "lowerdir=%s/lower,upperdir=%s/upper,workdir=%s/work,metacopy=on", scratch, scratch,
             scratch);
    scratch_part(scratch, "merged", merged);
    if (mount("overlay", merged, "overlay", 0, options) < 0)
        answer = IDS_NO_OVERLAY;
    scratch_part(scratch, shown, path);
    if (answer == IDS_ALL && chmod(path, 0644) < 0)
        answer = IDS_NO_OVERLAY;
    scratch_part(scratch, copy, path);
    if (answer == IDS_ALL && lgetxattr(path, "trusted.overlay.metacopy", NULL, 0) < 0)
        answer = IDS_NO_OVERLAY;
    unlink(path);
    scratch_part(scratch, name, path);
    unlink(path);
    return answer == IDS_ALL && !proc_try(ids) ? IDS_NO_PROC : answer;
}

static void scratch_remove(const char *scratch)
{
    static const char *const made_by_kernel[] = {"work/work/incompat/volatile/dirty",
                                                 "work/work/incompat/volatile",
                                                 "work/work/incompat", "work/work", "work/index"};
    char path[PATH_ROOM + 64];
    for (size_t i = 0; i < COUNT_OF(made_by_kernel); i++) {
        snprintf(path, sizeof path, "%s/%s", scratch, made_by_kernel[i]);
        remove(path);
    }
    for (size_t i = 0; i < COUNT_OF(scratch_parts); i++) {
        snprintf(path, sizeof path, "%s/%s", scratch, scratch_parts[i]);
        rmdir(path);
    }
    rmdir(scratch);
}

static int scratch_tried(const char *directory, int (*attempt)(const char *scratch))
{
    char scratch[PATH_ROOM], path[PATH_ROOM + 16];
    if (scratch_make(directory, scratch) < 0)
        return -1;
    bool is_made = true;
    for (size_t i = 0; i < COUNT_OF(scratch_parts); i++) {
        scratch_part(scratch, scratch_parts[i], path);
        is_made &= mkdir(path, 0755) == 0;
    }
    const int answer = is_made ? tried_apart(attempt, scratch) : -1;
    scratch_remove(scratch);
    return answer;
}

int machine_ids_try(const char *path, struct err *err)
{
    cleanup_close int ids = userns_make(&some_ids, &some_ids, some_ids.extents[0].outside, err);
    if (ids < 0)
        return ids;
    cleanup_close int tree = userns_mount(path, ids, true, err);
    return tree < 0 ? tree : 0;
}

static const char root_alone[] = "only root can try it";

static void check_overlay(struct machine_check *check)
{
    const int answer = check->is_root ? scratch_tried(check->directory, overlay_try) : -1;
    if (!check->is_root)
        finding_add(check, "overlay", MACHINE_UNKNOWN, root_alone, "not tried");
    else
        finding_add(check, "overlay", answer == 0 ? MACHINE_GOOD : MACHINE_MISSING,
                    "the file system of the data directory cannot hold the layers of tasks: use "
                    "ext4, XFS, btrfs or tmpfs, and load the module overlay",
                    "%s in %.80s", answer == 0 ? "works" : "cannot be mounted", check->directory);
}

static void check_ids(struct machine_check *check)
{
    static const char *const words[] = {"work, below an overlay as well", "not on this file system",
                                        "not below an overlay", "no user namespaces",
                                        "work, but parts of /proc are hidden here"};
    const int answer = check->is_root ? scratch_tried(check->directory, ids_try) : -1;
    const int layers = check->is_root ? scratch_tried(check->directory, layers_try) : -1;
    if (!check->is_root) {
        finding_add(check, "idmapped mounts", MACHINE_UNKNOWN, root_alone, "not tried");
        finding_add(check, "metadata layers", MACHINE_UNKNOWN, root_alone, "not tried");
        return;
    }
    finding_add(check, "idmapped mounts", answer == IDS_ALL ? MACHINE_GOOD : MACHINE_LESS,
                layers == IDS_ALL
                    ? "images get the ids of jobs by metadata layers: a job whose image has none "
                      "yet starts later, "
                      "by seconds when it has many files"
                    : "root of a task is root of the machine, without most of its capabilities: "
                      "Linux 5.19 is needed, a file system that has idmapped mounts (ext4, XFS, "
                      "btrfs, tmpfs), and the whole of /proc (a container hides some of it)",
                "%s", answer < 0 ? "could not be tried" : words[answer]);
    finding_add(check, "metadata layers", layers == IDS_ALL ? MACHINE_GOOD : MACHINE_LESS,
                "images cannot get the ids of jobs by them, which matters only where idmapped "
                "mounts do not work",
                "%s",
                layers < 0                 ? "could not be tried"
                : layers == IDS_ALL        ? "work"
                : layers == IDS_NO_OVERLAY ? "not here: an overlay copies all of a file"
                                           : words[layers]);
}

/* As the engine makes them for tasks with ids of their own (engine/local/task_ids.c). */
static int device_try(const char *scratch)
{
    char merged[PATH_ROOM + 16], path[PATH_ROOM + 16];
    scratch_part(scratch, "merged", merged);
    scratch_part(scratch, "merged/null", path);
    if (mount("tmpfs", merged, "tmpfs", MS_NOSUID | MS_NOEXEC, "size=64k") < 0 ||
        mknod(path, S_IFCHR | 0600, makedev(1, 3)) < 0)
        return 1;
    return open(path, O_RDWR | O_CLOEXEC) < 0;
}

static void check_devices(struct machine_check *check)
{
    const int answer = check->is_root ? scratch_tried(check->directory, device_try) : -1;
    if (!check->is_root)
        finding_add(check, "device files", MACHINE_UNKNOWN, root_alone, "not tried");
    else
        finding_add(check, "device files", answer == 0 ? MACHINE_GOOD : MACHINE_LESS,
                    "root of a task with GPUs, network cards or /dev/fuse is root of the machine: "
                    "skepd must be allowed to make device files and to open them",
                    "%s", answer == 0 ? "can be made" : "cannot be made or opened");
}

static void check_holders(struct machine_check *check)
{
    char holder[80];
    const uint64_t end = ID_RANGES_FIRST + (ID_RANGES_COUNT + UINT64_C(1)) * ID_RANGE_IDS;
    const bool is_held = ids_holder("/etc", ID_RANGES_FIRST, end, holder, sizeof holder);
    finding_add(check, "user ids", is_held ? MACHINE_LESS : MACHINE_GOOD,
                "a user of the machine shares ids with tasks, and may do to them what they may to "
                "that user: choose others by engine.userNamespaces.firstId",
                is_held ? "some are given to %s" : "those of jobs are nobody's", holder);
}

/* --- networks --- */

enum { NETWORKS_ALL, NETWORKS_NO_NAMESPACE, NETWORKS_NO_PAIR, NETWORKS_NO_RULES };

/* As a job's network is made (engine/local/network_link.c). */
static int pair_try(void)
{
    struct netlink route = {.fd = -1};
    cleanup_netlink_batch struct netlink_batch batch = {0};
    const struct ifinfomsg header = {0};
    if (netlink_open(&route, NETLINK_ROUTE, NULL) < 0)
        return -1;
    netlink_message(&batch, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, &header,
                    sizeof header);
    netlink_put_string(&batch, IFLA_IFNAME, "eth0");
    const size_t info = netlink_nest(&batch, IFLA_LINKINFO);
    netlink_put_string(&batch, IFLA_INFO_KIND, "veth");
    netlink_nest_end(&batch, info);
    const int code = netlink_send(&route, &batch, NULL);
    netlink_close(&route);
    return code;
}

static int nft_do(const char *const *argv, const char *text, struct buf *out)
{
    static const char *const env[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL};
    const size_t length = strlen(text);
    int exit_code = 1;
    cleanup_close int in = memfd_create("nft", MFD_CLOEXEC);
    if (in < 0 || write(in, text, length) != (ssize_t)length || lseek(in, 0, SEEK_SET) < 0)
        return -1;
    const struct process process = {.argv = argv, .env = env, .in = in, .out = -1, .err = -1};
    return process_run(&process, NFT_TIMEOUT_MS, out, NULL, &exit_code, NULL) == 0 && exit_code == 0
               ? 0
               : -1;
}

/* One of each kind of rule that networks of jobs need (engine/local/network_rules.c). */
static int rules_try(void)
{
    static const char *const argv[] = {"nft", "-f", "-", NULL};
    static const char rules[] =
        "add table ip t\n"
        "add map ip t m { type inet_service : ipv4_addr; }\n"
        "add chain ip t before { type nat hook prerouting priority dstnat; }\n"
        "add chain ip t after { type nat hook postrouting priority srcnat; }\n"
        "add chain ip t through { type filter hook forward priority filter; }\n"
        "add rule ip t before fib daddr type local meta l4proto { tcp, udp } dnat to th dport map "
        "@m\n"
        "add rule ip t after oifgroup != 7 oifname != lo ip saddr 10.0.0.0/8 masquerade\n"
        "add rule ip t through oifgroup 7 ct status dnat accept\n"
        "add rule ip t through oifgroup 7 reject with icmp admin-prohibited\n";
    return nft_do(argv, rules, NULL);
}

static int networks_try(const char *scratch)
{
    (void)scratch;
    if (unshare(CLONE_NEWNET) < 0)
        return NETWORKS_NO_NAMESPACE;
    if (pair_try() != 0)
        return NETWORKS_NO_PAIR;
    return rules_try() == 0 ? NETWORKS_ALL : NETWORKS_NO_RULES;
}

static const char *const network_words[] = {"work", "no network namespaces",
                                            "no links of type veth", "nft cannot set up the rules"};

int machine_networks_try(struct err *err)
{
    const int answer = tried_apart(networks_try, "");
    if (answer == NETWORKS_ALL)
        return 0;
    return err_fail(err, ERR_UNSUPPORTED, "", "networks of jobs %s",
                    answer < 0 ? "could not be tried" : network_words[answer]);
}

static void check_networks(struct machine_check *check)
{
    const char *const *words = network_words;
    const int answer = check->is_root ? tried_apart(networks_try, "") : -1;
    if (!check->is_root)
        finding_add(check, "job networks", MACHINE_UNKNOWN, root_alone, "not tried");
    else
        finding_add(check, "job networks", answer == NETWORKS_ALL ? MACHINE_GOOD : MACHINE_LESS,
                    "engine.network.mode: private is not possible, so tasks reach what listens on "
                    "the machine's loopback: install nftables, load veth and nf_tables",
                    "%s", answer < 0 ? "could not be tried" : words[answer]);
}

/* Does a chain of the machine drop what it forwards unless a rule says otherwise? */
static void check_forwarding(struct machine_check *check)
{
    static const char *const argv[] = {"nft", "list", "chains", NULL};
    cleanup_buf struct buf text = BUF_INIT;
    bool is_dropped = false;
    const bool is_told = check->is_root && nft_do(argv, "", &text) == 0;
    for (struct text rest = buf_as_text(&text); rest.length > 0;) {
        const struct text line = text_cut(&rest, '\n');
        is_dropped |= text_find(line, TEXT("hook forward")) != SIZE_MAX &&
                      text_find(line, TEXT("policy drop")) != SIZE_MAX;
    }
    if (!is_told)
        finding_add(check, "firewall", MACHINE_UNKNOWN,
                    check->is_root ? "nft does not list the rules of the machine" : root_alone,
                    "not known");
    else
        finding_add(check, "firewall", is_dropped ? MACHINE_LESS : MACHINE_GOOD,
                    "networks of jobs reach no other machine, and are not reached: add rules that "
                    "accept what is forwarded from and to engine.network.subnet",
                    "%s", is_dropped ? "drops what is forwarded" : "forwards");
}

/* --- disks --- */

static void check_quotas(struct machine_check *check)
{
    cleanup_close int fd = open(check->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool is_enforced = fd >= 0 && project_is_enforced(fd);
    const bool has_loops = access("/dev/loop-control", F_OK) == 0;
    finding_add(check, "project quotas", is_enforced ? MACHINE_GOOD : MACHINE_LESS,
                has_loops ? "tasks can fill the disk: mount it with prjquota (ext4) or pquota "
                            "(XFS), or set engine.disk.quota to required"
                          : "tasks can fill the disk: mount it with prjquota (ext4) or pquota "
                            "(XFS); there are no loop devices for engine.disk.quota: required",
                "%s in %.80s", is_enforced ? "enforced" : "none", check->directory);
}

/* BFQ on any disk, or io.cost switched on. */
static bool has_weights(void)
{
    cleanup_buf struct buf text = BUF_INIT;
    if (file_read("/sys/fs/cgroup/io.cost.qos", 65536, &text, NULL) == 0 &&
        text_find(buf_as_text(&text), TEXT("enable=1")) != SIZE_MAX)
        return true;
    cleanup_dir DIR *dir = opendir("/sys/block");
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char path[PATH_ROOM];
        buf_clear(&text);
        snprintf(path, sizeof path, "/sys/block/%.200s/queue/scheduler", entry->d_name);
        if (file_read(path, 4096, &text, NULL) == 0 &&
            text_find(buf_as_text(&text), TEXT("[bfq]")) != SIZE_MAX)
            return true;
    }
    return false;
}

static void check_weights(struct machine_check *check)
{
    const bool is_there = has_weights();
    finding_add(check, "disk weights", is_there ? MACHINE_GOOD : MACHINE_LESS,
                "a task that reads and writes much slows the others: use the scheduler bfq or "
                "io.cost",
                "%s", is_there ? "bfq or io.cost" : "none");
}

/* --- programs --- */

static const struct {
    const char *name, *paths[3];
    enum machine_state without;
    const char *meaning;
} programs[] = {
    {"runtime", {"crun", "runc"}, MACHINE_MISSING, "no container can be started: install crun"},
    {"conmon", {"conmon"}, MACHINE_MISSING, "no container can be started: install conmon"},
    {"skopeo", {"skopeo"}, MACHINE_LESS, "no image of a registry or an archive can be used"},
    {"umoci", {"umoci"}, MACHINE_LESS, "no image of a registry or an archive can be used"},
    {"nft", {"nft"}, MACHINE_LESS, "jobs cannot have networks of their own: install nftables"},
    {"mke2fs",
     {"mke2fs"},
     MACHINE_LESS,
     "engine.disk.quota: required needs project quotas then: install e2fsprogs"},
};

static bool program_is_there(const char *name)
{
    static const char *const folders[] = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
                                          "/usr/bin",        "/sbin",          "/bin"};
    char path[PATH_ROOM];
    for (size_t i = 0; i < COUNT_OF(folders); i++) {
        snprintf(path, sizeof path, "%s/%s", folders[i], name);
        if (access(path, X_OK) == 0)
            return true;
    }
    return false;
}

static void check_programs(struct machine_check *check)
{
    for (size_t i = 0; i < COUNT_OF(programs); i++) {
        const char *found = NULL;
        for (size_t k = 0; programs[i].paths[k] && !found; k++)
            if (program_is_there(programs[i].paths[k]))
                found = programs[i].paths[k];
        finding_add(check, programs[i].name, found ? MACHINE_GOOD : programs[i].without,
                    programs[i].meaning, "%s", found ? found : "not installed");
    }
}

/* The folder itself, or the nearest one above that is there. */
static const char *directory_nearest(const char *directory, char path[PATH_ROOM])
{
    struct stat stat_of_it;
    snprintf(path, PATH_ROOM, "%s", directory);
    while (stat(path, &stat_of_it) < 0 || !S_ISDIR(stat_of_it.st_mode)) {
        char *slash = strrchr(path, '/');
        if (!slash || slash == path)
            return "/";
        *slash = 0;
    }
    return path;
}

size_t machine_check(const char *directory, struct machine_finding findings[MACHINE_FINDINGS_MAX])
{
    static void (*const checks[])(struct machine_check * check) = {
        check_kernel,  check_groups,    check_namespaces, check_seccomp,
        check_overlay, check_programs,  check_ids,        check_devices,
        check_holders, check_networks,  check_forwarding, check_quotas,
        check_weights, check_processes, check_inotify,    check_swap,
    };
    char path[PATH_ROOM];
    struct machine_check check = {.findings = findings,
                                  .directory = directory_nearest(directory, path),
                                  .is_root = geteuid() == 0};
    for (size_t i = 0; i < COUNT_OF(checks); i++)
        checks[i](&check);
    return check.count;
}
