/* load — many connections asking a skepd, with latencies.
 *
 * usage: load WHERE TOKEN CONNECTIONS COUNT RATE METHOD TARGET [BODY-FILE]
 *
 * WHERE: a port of 127.0.0.1; the path of a Unix socket, which begins with a slash; or
 * tls:PORT:FILE, a port where TLS is spoken, and the PEM file of certificates that are trusted.
 * Connections are kept; with CONNECT=each in the environment each request has one of its own, whose
 * making (and TLS's whole handshake) is part of the latency. TOKEN and TARGET may be several, with
 * '|' between them: each connection has one of the tokens, and the requests go to one target after
 * the other; what each target took is printed, too, in order. RATE: requests a second over all
 * connections, 0 as fast as answers come. "%d" in the body is replaced by the request's number
 * (from START=… in the environment). Prints one JSON object, with the processor's time that it took
 * itself: client and server share a machine. Latency counts from when a request was due, so that a
 * slow server cannot hide behind its queue.
 */
#include "../arguments.h"
#include <arpa/inet.h>
#include <gnutls/gnutls.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { REPLY_ROOM = 1 << 16, BODY_ROOM = 1 << 16, WORDS_MAX = 256 };

struct words {
    char *items[WORDS_MAX];
    long count;
};

/* To the server; `session` NULL: without TLS. */
struct link {
    int fd;
    gnutls_session_t session;
};

static struct {
    int port, rate;
    const char *path; /* of a Unix socket; NULL: the port */
    bool is_tls, connects_each;
    gnutls_certificate_credentials_t trusted;
    const char *method;
    struct words tokens, targets;
    char body[BODY_ROOM];
    long count, start;
    int64_t begin_ns;
    atomic_long next, connected, bad, bytes;
    double *latency_ms;
} load;

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void fail_tls(const char *what, int answer)
{
    fprintf(stderr, "%s: %s\n", what, gnutls_strerror(answer));
    exit(1);
}

static int socket_open(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)load.port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    int fd, one = 1;
    if (load.path) {
        memcpy(local.sun_path, load.path, strlen(load.path) + 1);
        fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (fd < 0 || connect(fd, (struct sockaddr *)&local, sizeof local) < 0)
            fail(load.path);
        return fd;
    }
    fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
        fail("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static void link_open(struct link *link)
{
    *link = (struct link){.fd = socket_open()};
    if (!load.is_tls)
        return;
    int answer = gnutls_init(&link->session, GNUTLS_CLIENT);
    if (answer == 0)
        answer = gnutls_set_default_priority(link->session);
    if (answer == 0)
        answer =
            gnutls_credentials_set(link->session, GNUTLS_CRD_CERTIFICATE, (void *)load.trusted);
    if (answer < 0)
        fail_tls("TLS", answer);
    gnutls_session_set_verify_cert(link->session, NULL, 0);
    gnutls_transport_set_int(link->session, link->fd);
    do
        answer = gnutls_handshake(link->session);
    while (answer < 0 && !gnutls_error_is_fatal(answer));
    if (answer < 0)
        fail_tls("TLS handshake", answer);
}

static void link_close(struct link *link)
{
    if (link->session) {
        gnutls_bye(link->session, GNUTLS_SHUT_WR);
        gnutls_deinit(link->session);
    }
    close(link->fd);
    *link = (struct link){.fd = -1};
}

static void link_send(struct link *link, const char *bytes, size_t length)
{
    for (size_t sent = 0; sent < length;) {
        ssize_t part = link->session
                           ? gnutls_record_send(link->session, bytes + sent, length - sent)
                           : send(link->fd, bytes + sent, length - sent, MSG_NOSIGNAL);
        if (link->session && (part == GNUTLS_E_AGAIN || part == GNUTLS_E_INTERRUPTED))
            continue;
        if (link->session && part < 0)
            fail_tls("send", (int)part);
        if (part < 0)
            fail("send");
        sent += (size_t)part;
    }
}

/* As recv; 0 for any end. */
static size_t link_receive(struct link *link, char *room, size_t length)
{
    ssize_t part;
    if (!link->session) {
        part = recv(link->fd, room, length, 0);
        return part < 0 ? 0 : (size_t)part;
    }
    do /* a ticket for the next session is no data */
        part = gnutls_record_recv(link->session, room, length);
    while (part == GNUTLS_E_AGAIN || part == GNUTLS_E_INTERRUPTED);
    return part < 0 ? 0 : (size_t)part;
}

static void words_cut(struct words *words, char *text)
{
    for (char *word = strtok(text, "|"); word && words->count < WORDS_MAX; word = strtok(NULL, "|"))
        words->items[words->count++] = word;
}

static size_t request_make(char *out, size_t room, const char *token, long number)
{
    char body[BODY_ROOM];
    const char *mark = strstr(load.body, "%d");
    if (mark)
        snprintf(body, sizeof body, "%.*s%ld%s", (int)(mark - load.body), load.body, number,
                 mark + 2);
    else
        memcpy(body, load.body, strlen(load.body) + 1);
    int length = snprintf(out, room,
                          "%s %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: "
                          "text/plain\r\nContent-Length: %zu\r\n\r\n%s",
                          load.method, load.targets.items[number % load.targets.count], token,
                          strlen(body), body);
    return (size_t)length;
}

/* The status; the whole reply is read (it has a Content-Length). */
static int reply_read(struct link *link, char *room)
{
    size_t have = 0;
    long need = -1;
    while (need < 0 || have < (size_t)need) {
        const size_t length = need >= 0 && have >= REPLY_ROOM / 2
                                  ? link_receive(link, room + REPLY_ROOM / 2, REPLY_ROOM / 2)
                                  : link_receive(link, room + have, REPLY_ROOM - 1 - have);
        if (length == 0)
            return 0;
        have += length;
        if (need >= 0)
            continue;
        room[have] = '\0';
        const char *end = strstr(room, "\r\n\r\n");
        const char *size = end ? strcasestr(room, "\r\nContent-Length:") : NULL;
        if (end && size)
            need = (end + 4 - room) + strtol(size + 17, NULL, 10);
        else if (end)
            return 0;
    }
    atomic_fetch_add(&load.bytes, (long)have);
    return (int)strtol(room + 9, NULL, 10);
}

static void pause_until(int64_t at_ns)
{
    struct timespec at = {.tv_sec = at_ns / 1000000000, .tv_nsec = at_ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL))
        continue;
}

static void *client_run(void *context)
{
    (void)context;
    char *room = malloc(REPLY_ROOM), *request = malloc(2 * BODY_ROOM);
    struct link link = {.fd = -1};
    if (!load.connects_each)
        link_open(&link);
    const char *token = load.tokens.items[atomic_fetch_add(&load.connected, 1) % load.tokens.count];
    long number;
    while ((number = atomic_fetch_add(&load.next, 1)) < load.count) {
        int64_t due_ns = now_ns();
        if (load.rate) {
            due_ns = load.begin_ns + number * 1000000000 / load.rate;
            if (due_ns > now_ns())
                pause_until(due_ns);
        }
        size_t length = request_make(request, 2 * BODY_ROOM, token, load.start + number);
        if (load.connects_each)
            link_open(&link);
        link_send(&link, request, length);
        int status = reply_read(&link, room);
        load.latency_ms[number] = (double)(now_ns() - due_ns) / 1e6;
        if (status < 200 || status > 299)
            atomic_fetch_add(&load.bad, 1);
        if (load.connects_each)
            link_close(&link);
    }
    if (!load.connects_each)
        link_close(&link);
    free(room);
    free(request);
    return NULL;
}

static double cpu_s(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void percentiles(double *latency_ms, long count)
{
    qsort(latency_ms, (size_t)count, sizeof *latency_ms, compare);
    printf("\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"max_ms\":%.3f", latency_ms[count / 2],
           latency_ms[count * 99 / 100], latency_ms[count - 1]);
}

/* What each of several targets took. */
static void targets_print(void)
{
    double *own = calloc((size_t)load.count, sizeof *own);
    printf(",\"targets\":[");
    for (long target = 0; target < load.targets.count; target++) {
        long count = 0;
        for (long number = 0; number < load.count; number++)
            if ((load.start + number) % load.targets.count == target)
                own[count++] = load.latency_ms[number];
        printf("%s{\"count\":%ld", target ? "," : "", count);
        if (count) {
            printf(",");
            percentiles(own, count);
        }
        printf("}");
    }
    printf("]");
    free(own);
}

/* A port, a path, or tls:PORT:FILE. */
static void where_read(char *word, const char *usage)
{
    struct sockaddr_un local;
    load.is_tls = strncmp(word, "tls:", 4) == 0;
    if (word[0] == '/') {
        if (strlen(word) >= sizeof local.sun_path) {
            fprintf(stderr, "%s: too long for the path of a socket\n%s", word, usage);
            exit(2);
        }
        load.path = word;
        return;
    }
    if (load.is_tls) {
        word += 4;
        char *file = strchr(word, ':');
        if (!file) {
            fprintf(stderr, "%s: tls:PORT:FILE names the certificates, too\n%s", word, usage);
            exit(2);
        }
        *file++ = '\0';
        gnutls_certificate_allocate_credentials(&load.trusted);
        const int count =
            gnutls_certificate_set_x509_trust_file(load.trusted, file, GNUTLS_X509_FMT_PEM);
        if (count <= 0)
            fail_tls(file, count);
    }
    load.port = (int)argument_number(word, 1, 65535, usage);
}

int main(int argc, char **argv)
{
    static const char usage[] =
        "usage: load WHERE TOKEN CONNECTIONS COUNT RATE METHOD TARGET [BODY-FILE]\n"
        "WHERE: PORT, /PATH/OF/A/SOCKET, or tls:PORT:FILE with the certificates to trust\n"
        "environment: CONNECT=each: a connection for each request; START=N: its first number\n";
    arguments_check(argc, argv, 7, 8, 1, usage); /* a token may begin with a dash */
    int connections = (int)argument_number(argv[3], 1, 10000, usage);
    where_read(argv[1], usage);
    const char *connect_mode = getenv("CONNECT");
    load.connects_each = connect_mode && strcmp(connect_mode, "each") == 0;
    words_cut(&load.tokens, argv[2]);
    load.count = (long)argument_number(argv[4], 1, 100000000, usage);
    load.rate = (int)argument_number(argv[5], 0, 1000000, usage);
    load.method = argv[6];
    words_cut(&load.targets, argv[7]);
    if (!load.tokens.count || !load.targets.count)
        fail(usage);
    const char *start = getenv("START");
    load.start = start ? strtol(start, NULL, 10) : 0;
    if (argc > 8) {
        FILE *file = fopen(argv[8], "re");
        if (!file)
            fail(argv[8]);
        load.body[fread(load.body, 1, BODY_ROOM - 64, file)] = '\0';
        fclose(file);
    }
    load.latency_ms = calloc((size_t)load.count, sizeof *load.latency_ms);
    pthread_t *threads = calloc((size_t)connections, sizeof *threads);
    load.begin_ns = now_ns();
    for (int i = 0; i < connections; i++)
        if (pthread_create(&threads[i], NULL, client_run, NULL))
            fail("thread");
    for (int i = 0; i < connections; i++)
        pthread_join(threads[i], NULL);
    double seconds = (double)(now_ns() - load.begin_ns) / 1e9;
    const double used_s = cpu_s();
    printf("{\"count\":%ld,\"bad\":%ld,\"seconds\":%.3f,\"per_second\":%.0f,\"kib\":%.1f,"
           "\"cpu_s\":%.3f",
           load.count, atomic_load(&load.bad), seconds, (double)load.count / seconds,
           (double)atomic_load(&load.bytes) / 1024 / (double)load.count, used_s);
    if (load.targets.count > 1)
        targets_print(); /* before the numbers lose their places */
    printf(",");
    percentiles(load.latency_ms, load.count);
    printf("}\n");
    free(load.latency_ms);
    free(threads);
    if (load.is_tls)
        gnutls_certificate_free_credentials(load.trusted);
    return 0;
}
