#include "model/request.h"
#include <assert.h>
#include <stddef.h>

static const char *const kinds[REQUEST_KINDS] = {
    [REQUEST_CLUSTER] = "virtualCluster",
    [REQUEST_ACCOUNT] = "account",
};

static const char *const states[REQUEST_STATES] = {
    [REQUEST_OPEN] = "open",
    [REQUEST_ACCEPTED] = "accepted",
    [REQUEST_REFUSED] = "refused",
    [REQUEST_WITHDRAWN] = "withdrawn",
};

const char *request_kind_name(enum request_kind kind)
{
    assert((unsigned)kind < REQUEST_KINDS);
    return kinds[kind];
}

const char *request_state_name(enum request_state state)
{
    assert((unsigned)state < REQUEST_STATES);
    return states[state];
}

bool request_state_find(struct text name, enum request_state *state)
{
    assert(state);
    for (int i = 0; i < REQUEST_STATES; i++) {
        if (text_is(name, states[i])) {
            *state = (enum request_state)i;
            return true;
        }
    }
    return false;
}

bool request_step(enum request_state state, enum request_act act, enum request_state *next)
{
    static const enum request_state becomes[] = {
        [REQUEST_ACCEPT] = REQUEST_ACCEPTED,
        [REQUEST_REFUSE] = REQUEST_REFUSED,
        [REQUEST_WITHDRAW] = REQUEST_WITHDRAWN,
    };
    assert(next && (unsigned)act <= REQUEST_WITHDRAW);
    *next = state;
    switch (state) {
    case REQUEST_OPEN:
        *next = becomes[act];
        return true;
    case REQUEST_WITHDRAWN: /* once more is no other decision */
        return act == REQUEST_WITHDRAW;
    case REQUEST_ACCEPTED:
    case REQUEST_REFUSED:
        return false;
    }
    return false;
}
