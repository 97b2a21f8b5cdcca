/* etag.h — a reply that the client has already is not sent again (RFC 9110, 13.1.2).
 *
 * The tag is a hash of the body: it costs the server as much to make the reply, and spares the
 * network. Of streams there is none.
 */
#ifndef API_ETAG_H
#define API_ETAG_H
struct exchange;

/* After a GET was answered with 200: give the reply its tag; when If-None-Match names it, the reply
 * becomes a 304 without a body. */
void etag_reply(struct exchange *exchange);

#endif
