-- Submissions that were taken with an idempotency key: asked again, they are answered as before.
CREATE TABLE submit_keys (
    user_name TEXT COLLATE "C" NOT NULL,
    submit_key TEXT COLLATE "C" NOT NULL,
    digest BYTEA NOT NULL, -- of the job file, by a key of the server's
    job BIGINT NOT NULL, -- which may be gone
    job_name TEXT NOT NULL,
    at_ms BIGINT NOT NULL,
    PRIMARY KEY (user_name, submit_key)
);
CREATE INDEX submit_keys_at ON submit_keys (at_ms);
