/* portal.h — replies that are files of the portal.
 *
 * Private to api.
 */
#ifndef API_PORTAL_H
#define API_PORTAL_H

struct call;

/* The file of the call's path; of a page, with this Content-Security-Policy. NoApiError. */
int portal_reply(struct call *call, const char *policy);

#endif
