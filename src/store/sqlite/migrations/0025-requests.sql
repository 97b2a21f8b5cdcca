-- What users and visitors ask administrators for, and what became of it.
CREATE TABLE requests (
    id TEXT PRIMARY KEY,
    kind INTEGER NOT NULL, -- enum request_kind
    state INTEGER NOT NULL, -- enum request_state
    user_name TEXT NOT NULL, -- who asks; for an account: who the visitor wants to be
    virtual_cluster TEXT NOT NULL, -- '' of an account, as the next three of a virtual cluster
    email TEXT NOT NULL,
    password_hash TEXT NOT NULL, -- '' once it is decided
    address TEXT NOT NULL, -- from where a visitor asked
    why TEXT NOT NULL,
    asked_ms INTEGER NOT NULL,
    decided_ms INTEGER NOT NULL, -- or withdrawn; 0: it is open
    decider TEXT NOT NULL,
    answer TEXT NOT NULL,
    group_name TEXT NOT NULL -- by which it was granted; '': to the user alone
) WITHOUT ROWID;
CREATE INDEX requests_user ON requests (user_name);
CREATE INDEX requests_state ON requests (state);
