/* stream — bytes through a TCP connection as fast as they go: one end of network-bench.
 *
 * usage: stream serve PORT
 *        stream send ADDRESS PORT STREAMS MILLISECONDS
 *
 * serve takes connections for ever, reads until each ends, and then answers with the number of
 * bytes. send writes from that many processes at once for so long, and prints the bytes that all
 * receivers have counted, and the microseconds until the last one had its answer. */
#include <arpa/inet.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PIECE = 256 << 10, STREAMS_MAX = 64 };

static char piece[PIECE];

static int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void need(int is_so, const char *what)
{
    if (is_so)
        return;
    perror(what);
    exit(1);
}

static struct sockaddr_in address_of(const char *host, const char *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    need(inet_pton(AF_INET, host, &address.sin_addr) == 1, host);
    return address;
}

static void receive(int fd)
{
    uint64_t sum = 0;
    for (ssize_t got; (got = read(fd, piece, sizeof piece)) > 0;)
        sum += (uint64_t)got;
    need(write(fd, &sum, sizeof sum) == sizeof sum, "answer");
    _exit(0);
}

static void serve(const char *port)
{
    const struct sockaddr_in any = address_of("0.0.0.0", port);
    const int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    need(bind(listener, (const struct sockaddr *)&any, sizeof any) == 0, "bind");
    need(listen(listener, STREAMS_MAX) == 0, "listen");
    signal(SIGCHLD, SIG_IGN);
    puts("ready");
    fflush(stdout);
    for (;;) {
        const int fd = accept(listener, NULL, NULL);
        need(fd >= 0, "accept");
        if (fork() == 0)
            receive(fd);
        close(fd);
    }
}

static uint64_t send_one(const struct sockaddr_in *to, int64_t until)
{
    uint64_t sum = 0;
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    need(connect(fd, (const struct sockaddr *)to, sizeof *to) == 0, "connect");
    while (now_us() < until)
        need(write(fd, piece, sizeof piece) > 0, "write");
    shutdown(fd, SHUT_WR);
    need(read(fd, &sum, sizeof sum) == sizeof sum, "the answer");
    return sum;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "serve") == 0)
        serve(argv[2]);
    if (argc != 6 || strcmp(argv[1], "send") != 0)
        return 2;
    const struct sockaddr_in to = address_of(argv[2], argv[3]);
    const int count = atoi(argv[4]);
    need(count >= 1 && count <= STREAMS_MAX, "STREAMS");
    uint64_t *sums = mmap(NULL, STREAMS_MAX * sizeof *sums, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    need(sums != MAP_FAILED, "memory");
    const int64_t begun = now_us(), until = begun + atoll(argv[5]) * 1000;
    for (int i = 0; i < count; i++)
        if (fork() == 0) {
            sums[i] = send_one(&to, until);
            _exit(0);
        }
    int status, is_good = 1;
    while (wait(&status) > 0)
        is_good &= status == 0;
    uint64_t sum = 0;
    for (int i = 0; i < count; i++)
        sum += sums[i];
    printf("%llu bytes %lld us\n", (unsigned long long)sum, (long long)(now_us() - begun));
    return is_good ? 0 : 1;
}
