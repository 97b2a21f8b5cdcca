/* escape HOW PORT NAME: a program that tries to outlive its container, run in one by
 * test_remains.c.
 *
 *   leave    leave everything behind that a process can make, and end
 *   stay     the same, and do not end
 *   pass     give a listening socket to whoever waits at the abstract address NAME, and end
 *
 * It prints "GOT what" for each thing that a container must not be able to do, then "ready". Linked
 * statically: the image has no C library. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

static const char *name;

static void got(int result, const char *what)
{
    if (result >= 0)
        printf("GOT %s\n", what);
}

static void need(int result, const char *what)
{
    if (result < 0) {
        printf("cannot %s: %s\n", what, strerror(errno));
        exit(1);
    }
}

/* --- what must not work --- */

static void groups_try(const char *directory)
{
    char path[512];
    snprintf(path, sizeof path, "%s/cgroup.procs", directory);
    if (access(path, F_OK) < 0)
        return; /* no control group: crun mounts a small file system of its own there */
    int fd = open(path, O_WRONLY);
    got(fd, "a control group's list of processes");
    if (fd >= 0)
        got((int)write(fd, "0", 1), "another control group");
    snprintf(path, sizeof path, "%s/escaped", directory);
    got(mkdir(path, 0755), "a control group of its own");
}

static void tries(void)
{
    static const char *const spaces[] = {"mnt", "pid", "ipc", "net", "cgroup"};
    char path[64];
    got(unshare(CLONE_NEWUSER), "a user namespace");
    got(unshare(CLONE_NEWPID), "a pid namespace");
    got(unshare(CLONE_NEWIPC), "an IPC namespace");
    got(mount("x", "/tmp", "tmpfs", 0, ""), "a mount");
    got((int)syscall(SYS_fsopen, "tmpfs", 0), "a file system");
    got((int)syscall(SYS_add_key, "user", name, "x", 1, -4 /* of the user */), "a key");
    got((int)syscall(SYS_keyctl, 0, -5, 1), "a keyring");
    got((int)syscall(SYS_bpf, 0, NULL, 0), "bpf");
    got((int)syscall(SYS_perf_event_open, NULL, 0, 0, 0, 0), "perf");
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
        snprintf(path, sizeof path, "/proc/1/ns/%s", spaces[i]);
        int fd = open(path, O_RDONLY);
        if (fd >= 0)
            got(setns(fd, 0), "a namespace");
    }
    groups_try("/sys/fs/cgroup");
    groups_try("/sys/fs/cgroup/memory");
    groups_try("/sys/fs/cgroup/pids");
    groups_try("/sys/fs/cgroup/freezer");
    got(open("/proc/sys/kernel/core_pattern", O_WRONLY), "the kernel's settings");
    got(open("/proc/sysrq-trigger", O_WRONLY), "sysrq");
    got(mknod("/tmp/disk", S_IFBLK | 0600, makedev(8, 0)), "a disk's node");
    got(mknod("/tmp/memory", S_IFCHR | 0600, makedev(1, 1)), "a node of the machine's memory");
    got(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP), "a raw socket");
    got(socket(AF_PACKET, SOCK_RAW, 0), "the packets of an interface");
}

/* --- what must not remain --- */

/* Never the same process for long: who kills by a list of processes comes too late. */
static void relay(void)
{
    setsid();
    for (;;) {
        if (fork() == 0) {
            setsid();
            usleep(500);
            continue;
        }
        _exit(0);
    }
}

static void processes_leave(void)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    for (int i = 0; i < 8; i++)
        if (fork() == 0)
            relay();
    if (fork() == 0) { /* double fork, new session, stopped */
        setsid();
        if (fork() == 0) {
            raise(SIGSTOP);
            pause();
        }
        _exit(0);
    }
    if (fork() == 0) {
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        prctl(PR_SET_DUMPABLE, 0);
        for (;;)
            pause();
    }
}

static int listener(unsigned port)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    need(fd, "make a socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes);
    need(bind(fd, (struct sockaddr *)&any, sizeof any), "bind");
    need(listen(fd, 5), "listen");
    return fd;
}

static socklen_t abstract_address(struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "%s", name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
}

static void sockets_leave(unsigned port)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_un address;
    int udp = socket(AF_INET, SOCK_DGRAM, 0), local = socket(AF_UNIX, SOCK_STREAM, 0);
    listener(port);
    need(bind(udp, (struct sockaddr *)&any, sizeof any), "bind a datagram socket");
    need(bind(local, (struct sockaddr *)&address, abstract_address(&address)),
         "bind an abstract address");
    need(listen(local, 5), "listen at it");
}

static void memory_leave(void)
{
    char path[128];
    int segment = shmget(ftok("/", 7), 1 << 20, IPC_CREAT | 0600);
    need(segment, "make a shared segment");
    memset(shmat(segment, NULL, 0), 1, 1 << 20);
    need(semget(ftok("/", 8), 4, IPC_CREAT | 0600), "make semaphores");
    int queue = msgget(ftok("/", 9), IPC_CREAT | 0600);
    struct {
        long kind;
        char text[100];
    } message = {1, "x"};
    need(queue, "make a queue");
    need(msgsnd(queue, &message, sizeof message.text, IPC_NOWAIT), "send to it");
    snprintf(path, sizeof path, "/%s", name);
    int file = shm_open(path, O_RDWR | O_CREAT, 0600);
    need(file, "make POSIX shared memory");
    need(ftruncate(file, 1 << 20), "make it large");
    need((int)mq_open(path, O_RDWR | O_CREAT, 0600, NULL), "make a POSIX queue");
    need(sem_open(path, O_CREAT, 0600, 1) == SEM_FAILED ? -1 : 0, "make a POSIX semaphore");
    need(memfd_create(name, 0), "make a file in memory");
    int lock = open("/tmp/lock", O_RDWR | O_CREAT, 0600);
    need(fcntl(lock, F_SETLK, &(struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET}), "lock");
    need(mknod("/tmp/pipe", S_IFIFO | 0600, 0), "make a named pipe");
}

static void pass(unsigned port)
{
    struct sockaddr_un address;
    int to = socket(AF_UNIX, SOCK_STREAM, 0), what = listener(port);
    need(connect(to, (struct sockaddr *)&address, abstract_address(&address)), "reach the other");
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)),
                            .cmsg_level = SOL_SOCKET,
                            .cmsg_type = SCM_RIGHTS}};
    memcpy(CMSG_DATA(&control.header), &what, sizeof what);
    struct iovec part = {"x", 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    need((int)sendmsg(to, &message, 0), "pass the socket on");
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    unsigned port = (unsigned)atoi(argv[2]);
    name = argv[3];
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (strcmp(argv[1], "pass") == 0) {
        pass(port);
        return 0;
    }
    tries();
    memory_leave();
    sockets_leave(port);
    processes_leave();
    puts("ready");
    while (strcmp(argv[1], "stay") == 0)
        pause();
    return 0;
}
