/* What comes of one mail, and of one POST, by what the other side answers. */
#include "folder.h"
#include "peer.h"
#include "peer_tls.h"
#include "unit.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "notify/send.h"

static const struct text mail = {"Subject: x\r\n\r\nhello\r\n.dot\r\n", 27};

static enum notify_result send_to(const struct peer *peer, const char *user,
                                  char why[NOTIFY_WHY_SIZE])
{
    const struct notify_smtp smtp = {.url = peer->url,
                                     .is_plain = true,
                                     .user = user,
                                     .password = user ? "secret" : NULL,
                                     .from = "skep@example.org"};
    return notify_mail(&smtp, "alice@example.org", mail, NULL, why);
}

static void a_mail_is_taken_whole(void **state)
{
    struct peer peer;
    char why[NOTIFY_WHY_SIZE] = "";
    (void)state;
    peer_begin(&peer, PEER_SMTP);
    assert_int_equal(send_to(&peer, "skep", why), NOTIFY_TAKEN);
    const struct peer_message *message = peer_await(&peer, 1);
    assert_non_null(message);
    assert_string_equal(message->recipient, "<alice@example.org>");
    assert_string_equal(message->login, "AHNrZXAAc2VjcmV0"); /* \0skep\0secret */
    assert_string_equal(buf_cstr(&message->text), "Subject: x\n\nhello\n.dot\n");
    peer_end(&peer);
}

/* What is about this recipient or this text hinders no other, and is given up or tried again as
 * they say; all else is tried again. */
static void a_refusal_is_of_the_message_or_of_the_server(void **state)
{
    static const struct {
        int greeting, mail, recipient, data;
        enum notify_result result;
    } cases[] = {
        {0, 0, 550, 0, NOTIFY_REFUSED}, {0, 0, 0, 554, NOTIFY_REFUSED},
        {0, 0, 450, 0, NOTIFY_LATER},   {0, 0, 0, 451, NOTIFY_LATER},
        {0, 0, 421, 0, NOTIFY_UNSURE},  {0, 0, 0, 421, NOTIFY_UNSURE},
        {0, 550, 0, 0, NOTIFY_AWAY},    {0, 451, 0, 0, NOTIFY_AWAY},
        {554, 0, 0, 0, NOTIFY_AWAY},    {421, 0, 0, 0, NOTIFY_AWAY},
    };
    struct peer peer;
    (void)state;
    peer_begin(&peer, PEER_SMTP);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char why[NOTIFY_WHY_SIZE] = "";
        peer_answers(&peer, cases[i].greeting, cases[i].mail, cases[i].recipient, cases[i].data, 0);
        assert_int_equal(send_to(&peer, NULL, why), cases[i].result);
        assert_non_null(strstr(why, "as the test says"));
    }
    peer_end(&peer);
}

/* Silence in the middle may be of the recipient, or of the text, as well as of the server. */
static void who_hangs_up_leaves_it_open(void **state)
{
    static const struct {
        int greeting, mail, recipient, data;
        enum notify_result result;
    } cases[] = {{-1, 0, 0, 0, NOTIFY_AWAY},
                 {0, -1, 0, 0, NOTIFY_AWAY},
                 {0, 0, -1, 0, NOTIFY_UNSURE},
                 {0, 0, 0, -1, NOTIFY_UNSURE}};
    struct peer peer;
    char why[NOTIFY_WHY_SIZE] = "";
    (void)state;
    peer_begin(&peer, PEER_SMTP);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        peer_answers(&peer, cases[i].greeting, cases[i].mail, cases[i].recipient, cases[i].data, 0);
        assert_int_equal(send_to(&peer, NULL, why), cases[i].result);
    }
    peer_end(&peer);
}

static void a_server_that_is_not_there_is_away(void **state)
{
    struct peer peer;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    char why[NOTIFY_WHY_SIZE] = "";
    (void)state;
    /* nobody else can listen there */
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    snprintf(peer.url, sizeof peer.url, "smtp://127.0.0.1:%u", ntohs(at.sin_port));
    assert_int_equal(send_to(&peer, NULL, why), NOTIFY_AWAY);
    assert_true(why[0] != '\0');
    close(fd);
}

static enum notify_result send_by_tls(const struct peer *peer, const char *scheme,
                                      const char *ca_file, char why[NOTIFY_WHY_SIZE])
{
    char url[64];
    snprintf(url, sizeof url, "%s://localhost:%u", scheme, peer->port);
    const struct notify_smtp smtp = {.url = url,
                                     .user = "skep",
                                     .password = "secret",
                                     .ca_file = ca_file,
                                     .from = "skep@example.org"};
    return notify_mail(&smtp, "alice@example.org", mail, NULL, why);
}

/* By STARTTLS, and from the start; never to one of whom nobody vouches. */
static void a_mail_goes_by_tls(void **state)
{
    static const char *const schemes[] = {"smtp", "smtps"};
    (void)state;
    char ca_file[100];
    snprintf(ca_file, sizeof ca_file, "%s/ca.pem", in_folder(""));
    for (size_t i = 0; i < COUNT_OF(schemes); i++) {
        struct peer peer;
        char why[NOTIFY_WHY_SIZE] = "";
        peer_begin(&peer, PEER_SMTP);
        struct peer_tls *tls = peer_tls_new(ca_file);
        pthread_mutex_lock(&peer.lock);
        peer.tls = tls;
        peer.is_tls = i == 1;
        pthread_mutex_unlock(&peer.lock);
        assert_int_equal(send_by_tls(&peer, schemes[i], NULL, why), NOTIFY_AWAY);
        assert_non_null(strstr(why, "certificate"));
        assert_int_equal(send_by_tls(&peer, schemes[i], ca_file, why), NOTIFY_TAKEN);
        const struct peer_message *message = peer_await(&peer, 1);
        assert_string_equal(message->login, "AHNrZXAAc2VjcmV0");
        assert_string_equal(buf_cstr(&message->text), "Subject: x\n\nhello\n.dot\n");
        peer_end(&peer);
        assert_int_equal(peer.count, 1);
        peer_tls_free(tls);
    }
}

/* A password, and all mails of who wants TLS, never go without. */
static void tls_is_not_done_without(void **state)
{
    struct peer peer;
    char why[NOTIFY_WHY_SIZE] = "";
    (void)state;
    peer_begin(&peer, PEER_SMTP);
    const struct notify_smtp smtp = {
        .url = peer.url, .user = "skep", .password = "secret", .from = "skep@example.org"};
    assert_int_equal(notify_mail(&smtp, "alice@example.org", mail, NULL, why), NOTIFY_AWAY);
    peer_end(&peer);
    assert_int_equal(peer.count, 0);
}

static void who_ends_waits_for_nobody(void **state)
{
    struct peer peer;
    char why[NOTIFY_WHY_SIZE] = "";
    atomic_bool is_ending = true;
    (void)state;
    peer_begin(&peer, PEER_HTTP);
    pthread_mutex_lock(&peer.lock);
    peer.holds = true; /* it answers when it ends */
    pthread_mutex_unlock(&peer.lock);
    const struct notify_hook hook = {.url = peer.url};
    assert_int_equal(notify_post(&hook, TEXT("{}"), &is_ending, why), NOTIFY_AWAY);
    peer_end(&peer);
}

static void a_post_by_its_status(void **state)
{
    static const struct {
        int status;
        enum notify_result result;
    } cases[] = {
        {200, NOTIFY_TAKEN}, {204, NOTIFY_TAKEN},   {302, NOTIFY_AWAY},   {400, NOTIFY_REFUSED},
        {401, NOTIFY_AWAY},  {403, NOTIFY_AWAY},    {404, NOTIFY_AWAY},   {408, NOTIFY_AWAY},
        {429, NOTIFY_AWAY},  {413, NOTIFY_REFUSED}, {500, NOTIFY_UNSURE}, {502, NOTIFY_UNSURE},
        {503, NOTIFY_AWAY},
    };
    struct peer peer;
    (void)state;
    peer_begin(&peer, PEER_HTTP);
    const struct notify_hook hook = {.url = peer.url, .token = "abc"};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char why[NOTIFY_WHY_SIZE] = "";
        peer_answers(&peer, 0, 0, 0, 0, cases[i].status);
        assert_int_equal(notify_post(&hook, TEXT("{\"a\":1}"), NULL, why), cases[i].result);
        assert_true((cases[i].result == NOTIFY_TAKEN) == (why[0] == '\0'));
    }
    const struct peer_message *message = peer_await(&peer, 2);
    assert_string_equal(buf_cstr(&message->text), "{\"a\":1}");
    assert_string_equal(message->login, "Bearer abc");
    peer_end(&peer);
}

static void urls_that_are_used(void **state)
{
    (void)state;
    assert_true(notify_url_is_good("smtps://mail.example.org", "smtp", "smtps"));
    assert_true(notify_url_is_good("smtp://[::1]:25", "smtp", "smtps"));
    assert_true(notify_url_is_good("https://hooks.example.org/a/b?c=d", "http", "https"));
    assert_false(notify_url_is_good("", "http", "https"));
    assert_false(notify_url_is_good("mail.example.org", "smtp", "smtps"));
    assert_false(notify_url_is_good("ftp://example.org", "http", "https"));
    assert_false(notify_url_is_good("file:///etc/passwd", "http", "https"));
    assert_false(notify_url_is_good("https://a:b@example.org", "http", "https"));
    assert_false(notify_url_is_good("https://a@example.org", "http", "https"));
    assert_false(notify_url_is_good("https://example.org/\r\nX: y", "http", "https"));
    assert_true(notify_url_is_loopback("http://127.0.0.5:80/x"));
    assert_true(notify_url_is_loopback("smtp://localhost"));
    assert_true(notify_url_is_loopback("smtp://[::1]:25"));
    assert_false(notify_url_is_loopback("http://example.org"));
    assert_false(notify_url_is_loopback("http://128.0.0.1"));
    assert_false(notify_url_is_loopback("?"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_mail_is_taken_whole),
    cmocka_unit_test(a_refusal_is_of_the_message_or_of_the_server),
    cmocka_unit_test(who_hangs_up_leaves_it_open),
    cmocka_unit_test(a_server_that_is_not_there_is_away),
    cmocka_unit_test(a_mail_goes_by_tls),
    cmocka_unit_test(tls_is_not_done_without),
    cmocka_unit_test(who_ends_waits_for_nobody),
    cmocka_unit_test(a_post_by_its_status),
    cmocka_unit_test(urls_that_are_used),
};
UNIT_FILE(tests, folder_setup, folder_teardown);
