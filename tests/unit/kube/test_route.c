/* Where a request goes: names, and proxies that the test plays. */
#include "unit.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "kube/access.h"
#include "kube/plugin.h"
#include "kube/route.h"

static struct {
    int listener;
    char address[64], request[2048];
} proxy;

static int setup(void **state)
{
    (void)state;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    proxy.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(proxy.listener, (struct sockaddr *)&address, length) < 0 ||
        listen(proxy.listener, 4) < 0 ||
        getsockname(proxy.listener, (struct sockaddr *)&address, &length) < 0)
        return -1;
    snprintf(proxy.address, sizeof proxy.address, "http://127.0.0.1:%u", ntohs(address.sin_port));
    proxy.request[0] = '\0';
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unsetenv("HTTPS_PROXY");
    return close(proxy.listener);
}

/* Takes one request, and refuses it. */
static void *proxy_run(void *argument)
{
    static const char answer[] = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
    size_t length = 0;
    int fd = accept(proxy.listener, NULL, NULL);
    while (fd >= 0 && !strstr(proxy.request, "\r\n\r\n")) {
        const ssize_t got = read(fd, proxy.request + length, sizeof proxy.request - 1 - length);
        if (got <= 0)
            break;
        length += (size_t)got;
        proxy.request[length] = '\0';
    }
    const bool is_written = write(fd, answer, sizeof answer - 1) > 0;
    close(fd);
    return is_written ? argument : NULL;
}

static void asked_by(struct kube_access *access, const char *line)
{
    struct kube_route route;
    const struct kube_credential nobody = {0};
    pthread_t thread;
    struct err err = {0};
    assert_int_equal(kube_route_init(&route, access, &err), 0);
    CURL *easy = kube_route_easy(&route, &nobody, "/version");
    assert_int_equal(pthread_create(&thread, NULL, proxy_run, NULL), 0);
    assert_int_not_equal(curl_easy_perform(easy), CURLE_OK);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(strncmp(proxy.request, line, strlen(line)), 0);
    curl_easy_cleanup(easy);
    kube_route_release(&route);
}

static void a_proxy_is_that_of_the_kubeconfig(void **state)
{
    (void)state;
    struct kube_access access = {
        .server = "https://cluster.test:6443", .server_name = "", .proxy = proxy.address};
    setenv("HTTPS_PROXY", "http://127.0.0.1:1", 1);
    asked_by(&access, "CONNECT cluster.test:6443 HTTP/1.1\r\n");
}

static void or_that_of_the_environment(void **state)
{
    (void)state;
    struct kube_access access = {
        .server = "https://cluster.test:6443", .server_name = "", .proxy = ""};
    setenv("HTTPS_PROXY", proxy.address, 1);
    asked_by(&access, "CONNECT cluster.test:6443 HTTP/1.1\r\n");
}

static void this_machine_is_asked_without_one(void **state)
{
    (void)state;
    static const char *const servers[] = {"https://127.0.0.1:6443", "https://localhost:6443",
                                          "https://[::1]:6443"};
    for (size_t i = 0; i < sizeof servers / sizeof *servers; i++) {
        const struct kube_access access = {.server = servers[i], .server_name = "", .proxy = ""};
        struct kube_route route;
        assert_int_equal(kube_route_init(&route, &access, NULL), 0);
        assert_non_null(route.proxy);
        assert_string_equal(route.proxy, "");
        kube_route_release(&route);
    }
}

static void a_certificate_may_have_another_name(void **state)
{
    (void)state;
    const struct kube_access access = {
        .server = "https://10.0.0.1:6443/k8s", .server_name = "kubernetes", .proxy = ""};
    struct kube_route route;
    assert_int_equal(kube_route_init(&route, &access, NULL), 0);
    assert_string_equal(route.base, "https://kubernetes:6443/k8s");
    assert_string_equal(route.connect_to->data, "::10.0.0.1:6443");
    kube_route_release(&route);
}

static void what_is_no_address_is_named(void **state)
{
    (void)state;
    struct kube_access access = {.server = "https://", .server_name = "", .proxy = ""};
    struct kube_route route;
    struct err err = {0};
    assert_int_equal(kube_route_init(&route, &access, &err), ERR_INVALID);
    kube_route_release(&route);
    access = (struct kube_access){.server = "https://h", .server_name = "a b", .proxy = ""};
    assert_int_equal(kube_route_init(&route, &access, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "a b"));
    kube_route_release(&route);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
static const struct CMUnitTest tests[] = {
    CASE(a_proxy_is_that_of_the_kubeconfig), CASE(or_that_of_the_environment),
    CASE(this_machine_is_asked_without_one), CASE(a_certificate_may_have_another_name),
    CASE(what_is_no_address_is_named),
};

UNIT_FILE(tests, NULL, NULL);
