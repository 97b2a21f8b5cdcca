-- Messages about changes of jobs that wait to be sent, one row for each target: written with the change, removed when it has been sent.
CREATE TABLE notices (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    target TEXT NOT NULL, -- "mail", or the address of a webhook
    job INTEGER NOT NULL,
    attempt INTEGER NOT NULL, -- of the job
    kind INTEGER NOT NULL, -- enum notice_kind
    at_ms INTEGER NOT NULL,
    user_name TEXT NOT NULL,
    job_name TEXT NOT NULL,
    virtual_cluster TEXT NOT NULL,
    code INTEGER NOT NULL,
    phrase TEXT NOT NULL,
    why TEXT NOT NULL
);
