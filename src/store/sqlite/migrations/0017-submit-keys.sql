-- Submissions that were taken with an idempotency key: asked again, they are answered as before.
CREATE TABLE submit_keys (
    user_name TEXT NOT NULL,
    submit_key TEXT NOT NULL,
    digest BLOB NOT NULL, -- of the job file, by a key of the server's
    job INTEGER NOT NULL, -- which may be gone
    job_name TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    PRIMARY KEY (user_name, submit_key)
) WITHOUT ROWID;
CREATE INDEX submit_keys_at ON submit_keys (at_ms);
