/* relay_stream.h — the bytes of a browser's connection to the relay, in the clear or by TLS.
 *
 * Edge, over GnuTLS. Nothing blocks; one thread at a time.
 */
#ifndef API_RELAY_STREAM_H
#define API_RELAY_STREAM_H
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct err;
struct relay_stream;
struct relay_tls;

enum { RELAY_LATER = -1, RELAY_BROKEN = -2 };

/* The server's certificate (http_tls.h), which must outlive it. ERR_INTERNAL. */
int relay_tls_new(struct relay_tls **tls, struct err *err);
void relay_tls_free(struct relay_tls *tls); /* after all streams; NULL is fine */

/* The descriptor, which does not block, is the stream's. `tls` NULL: in the clear. NULL: there is
 * no memory for TLS; then the descriptor is closed. */
struct relay_stream *relay_stream_new(int fd, const struct relay_tls *tls);
void relay_stream_free(struct relay_stream *stream); /* NULL is fine */
int relay_stream_fd(const struct relay_stream *stream);

/* The number of bytes; 0: at its end, by a read; RELAY_LATER, RELAY_BROKEN. */
ssize_t relay_stream_read(struct relay_stream *stream, void *bytes, size_t size);
ssize_t relay_stream_write(struct relay_stream *stream, const void *bytes, size_t size);
/* Are there bytes to be read that have left the descriptor? */
bool relay_stream_has_more(const struct relay_stream *stream);
/* Must the descriptor become writable before the read goes on? */
bool relay_stream_is_behind(const struct relay_stream *stream);
/* Nothing more will be written; the other side hears it. */
void relay_stream_finish(struct relay_stream *stream);

#endif
