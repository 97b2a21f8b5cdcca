/* Doors: connections come in by an address or a socket file, when there is room for them.
 *
 * Covers: src/api/http_door.c */
#include "unit.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "api/http_door.h"
#include "base/err.h"

static atomic_bool has_room;
static atomic_int asked, taken, family;
static sem_t was_asked, was_taken;

static bool room(void *context)
{
    (void)context;
    atomic_fetch_add(&asked, 1);
    bool is_there = atomic_load(&has_room);
    sem_post(&was_asked);
    return is_there;
}

static void take(void *context, int fd, const struct sockaddr *from, socklen_t length)
{
    (void)context;
    assert_true(length >= sizeof from->sa_family);
    atomic_store(&family, from->sa_family);
    atomic_fetch_add(&taken, 1);
    close(fd);
    sem_post(&was_taken);
}

static const struct http_door_ops OPS = {.has_room = room, .take = take};

static int setup(void **state)
{
    (void)state;
    atomic_store(&has_room, true);
    atomic_store(&asked, 0);
    atomic_store(&taken, 0);
    return sem_init(&was_asked, 0, 0) || sem_init(&was_taken, 0, 0);
}

static int client_of_port(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static struct http_door *door_listen(uint16_t *port)
{
    struct http_door *door = NULL;
    struct err err;
    assert_int_equal(http_door_listen("127.0.0.1:0", &OPS, &door, port, &err), 0);
    assert_int_not_equal(*port, 0);
    return door;
}

/* Until the other side closes. */
static void closed_await(int fd)
{
    char byte;
    while (recv(fd, &byte, 1, 0) > 0)
        continue;
    close(fd);
}

static void test_of_an_address(void **state)
{
    (void)state;
    uint16_t port = 0;
    struct http_door *door = door_listen(&port);
    closed_await(client_of_port(port));
    assert_int_equal(atomic_load(&taken), 1);
    assert_int_equal(atomic_load(&family), AF_INET);
    http_door_close(door);
}

/* Without room a client waits in the queue of the kernel, and is taken when there is room. */
static void test_waits_for_room(void **state)
{
    (void)state;
    uint16_t port = 0;
    atomic_store(&has_room, false);
    struct http_door *door = door_listen(&port);
    int fd = client_of_port(port);
    for (int i = 0; i < 2; i++) /* it looks again by itself */
        while (sem_wait(&was_asked) < 0)
            continue;
    assert_int_equal(atomic_load(&taken), 0);
    assert_int_equal(poll(&(struct pollfd){.fd = fd, .events = POLLIN | POLLRDHUP}, 1, 0), 0);
    atomic_store(&has_room, true);
    closed_await(fd);
    assert_int_equal(atomic_load(&taken), 1);
    http_door_close(door);
}

/* It ends also while somebody waits for room. */
static void test_closes_without_room(void **state)
{
    (void)state;
    uint16_t port = 0;
    atomic_store(&has_room, false);
    struct http_door *door = door_listen(&port);
    int fd = client_of_port(port);
    while (sem_wait(&was_asked) < 0)
        continue;
    http_door_close(door);
    closed_await(fd);
    assert_int_equal(atomic_load(&taken), 0);
}

/* The path of a socket may be longer than an address of the kernel holds. */
static void test_of_a_file(void **state)
{
    (void)state;
    char folder[] = "/tmp/test_http_door_XXXXXX", deep[256], path[300];
    struct http_door *door;
    struct stat found;
    struct err err;
    assert_non_null(mkdtemp(folder));
    snprintf(deep, sizeof deep, "%s/%0120d", folder, 0);
    assert_int_equal(mkdir(deep, 0700), 0);
    for (int i = 0; i < 2; i++) { /* the second replaces what the first has left */
        assert_int_equal(http_door_open(deep, "api", &OPS, &door, &err), 0);
        snprintf(path, sizeof path, "%s/api", deep);
        assert_int_equal(lstat(path, &found), 0);
        assert_true(S_ISSOCK(found.st_mode));
        assert_int_equal(found.st_mode & 0777, 0666);
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        assert_int_equal(chdir(deep), 0);
        snprintf(address.sun_path, sizeof address.sun_path, "api");
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
        assert_int_equal(chdir("/"), 0);
        closed_await(fd);
        assert_int_equal(atomic_load(&taken), i + 1);
        assert_int_equal(atomic_load(&family), AF_UNIX);
        http_door_close(door);
    }
    unlink(path);
    rmdir(deep);
    assert_int_equal(http_door_open(deep, "api", &OPS, &door, &err), ERR_IO);
    rmdir(folder);
}

/* Without a thread there is no door, and its socket is gone. */
static void test_without_a_thread(void **state)
{
    (void)state;
    pthread_attr_t before, huge;
    struct http_door *door = NULL;
    struct err err = {0};
    uint16_t port = 0;
    assert_int_equal(pthread_getattr_default_np(&before), 0);
    pthread_attr_init(&huge);
    assert_int_equal(pthread_attr_setstacksize(&huge, (size_t)1 << 47), 0); /* all addresses */
    assert_int_equal(pthread_setattr_default_np(&huge), 0);
    const int code = http_door_listen("127.0.0.1:0", &OPS, &door, &port, &err);
    pthread_setattr_default_np(&before);
    pthread_attr_destroy(&before);
    pthread_attr_destroy(&huge);
    assert_int_equal(code, ERR_UNAVAILABLE);
    assert_non_null(strstr(err.text, "no thread can be made"));
    assert_null(door);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(test_of_an_address, setup),
    cmocka_unit_test_setup(test_waits_for_room, setup),
    cmocka_unit_test_setup(test_closes_without_room, setup),
    cmocka_unit_test_setup(test_of_a_file, setup),
    cmocka_unit_test_setup(test_without_a_thread, setup),
};
UNIT_FILE(tests, NULL, NULL);
