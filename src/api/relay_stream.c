#include "api/relay_stream.h"
#include "api/http_tls.h"
#include "base/err.h"
#include "base/memory.h"
#include <errno.h>
#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct relay_tls {
    gnutls_certificate_credentials_t credentials;
    gnutls_priority_t priorities;
};

struct relay_stream {
    int fd;
    gnutls_session_t session; /* NULL: in the clear */
    bool is_greeted;          /* the handshake is over */
};

int relay_tls_new(struct relay_tls **out, struct err *err)
{
    struct relay_tls *tls = mem_zero(1, sizeof *tls);
    int answer = gnutls_certificate_allocate_credentials(&tls->credentials);
    if (answer >= 0)
        answer = gnutls_priority_init(&tls->priorities, HTTP_TLS_PRIORITIES, NULL);
    if (answer < 0) {
        relay_tls_free(tls);
        return err_fail(err, ERR_INTERNAL, "", "TLS for ports of tasks: %s",
                        gnutls_strerror(answer));
    }
    gnutls_certificate_retrieve_function2 *retrieve;
    void *const given = http_tls_retrieve();
    memcpy(&retrieve, &given, sizeof retrieve); /* as POSIX has it, and ISO C has not */
    gnutls_certificate_set_retrieve_function2(tls->credentials, retrieve);
    *out = tls;
    return 0;
}

void relay_tls_free(struct relay_tls *tls)
{
    if (!tls)
        return;
    if (tls->priorities)
        gnutls_priority_deinit(tls->priorities);
    if (tls->credentials)
        gnutls_certificate_free_credentials(tls->credentials);
    mem_free(tls);
}

struct relay_stream *relay_stream_new(int fd, const struct relay_tls *tls)
{
    struct relay_stream *stream = mem_zero(1, sizeof *stream);
    stream->fd = fd;
    stream->is_greeted = !tls;
    if (!tls)
        return stream;
    if (gnutls_init(&stream->session, GNUTLS_SERVER | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL) < 0 ||
        gnutls_priority_set(stream->session, tls->priorities) < 0 ||
        gnutls_credentials_set(stream->session, GNUTLS_CRD_CERTIFICATE, tls->credentials) < 0) {
        relay_stream_free(stream);
        return NULL;
    }
    gnutls_transport_set_int(stream->session, fd);
    return stream;
}

void relay_stream_free(struct relay_stream *stream)
{
    if (!stream)
        return;
    if (stream->session)
        gnutls_deinit(stream->session);
    close(stream->fd);
    mem_free(stream);
}

int relay_stream_fd(const struct relay_stream *stream)
{
    return stream->fd;
}

static ssize_t plain_answer(ssize_t length)
{
    return length >= 0 ? length : errno == EAGAIN || errno == EINTR ? RELAY_LATER : RELAY_BROKEN;
}

static ssize_t tls_answer(ssize_t length)
{
    return length >= 0                                                  ? length
           : length == GNUTLS_E_AGAIN || length == GNUTLS_E_INTERRUPTED ? RELAY_LATER
           : length == GNUTLS_E_PREMATURE_TERMINATION                   ? 0
           : gnutls_error_is_fatal((int)length)                         ? RELAY_BROKEN
                                                                        : RELAY_LATER;
}

/* 0 when it is over. */
static ssize_t greet(struct relay_stream *stream)
{
    int answer = stream->is_greeted ? 0 : gnutls_handshake(stream->session);
    stream->is_greeted = answer == GNUTLS_E_SUCCESS;
    return stream->is_greeted ? 0 : gnutls_error_is_fatal(answer) ? RELAY_BROKEN : RELAY_LATER;
}

ssize_t relay_stream_read(struct relay_stream *stream, void *bytes, size_t size)
{
    if (!stream->session)
        return plain_answer(recv(stream->fd, bytes, size, 0));
    ssize_t answer = greet(stream);
    return answer ? answer : tls_answer(gnutls_record_recv(stream->session, bytes, size));
}

ssize_t relay_stream_write(struct relay_stream *stream, const void *bytes, size_t size)
{
    if (!stream->session)
        return plain_answer(send(stream->fd, bytes, size, MSG_NOSIGNAL));
    ssize_t answer = greet(stream);
    return answer ? answer : tls_answer(gnutls_record_send(stream->session, bytes, size));
}

bool relay_stream_has_more(const struct relay_stream *stream)
{
    return stream->session && gnutls_record_check_pending(stream->session);
}

bool relay_stream_is_behind(const struct relay_stream *stream)
{
    return stream->session && !stream->is_greeted && gnutls_record_get_direction(stream->session);
}

void relay_stream_finish(struct relay_stream *stream)
{
    if (stream->session && stream->is_greeted)
        gnutls_bye(stream->session, GNUTLS_SHUT_WR); /* who has gone need not hear it */
    shutdown(stream->fd, SHUT_WR);
}
