-- What was asked to be changed: when, by whom, and what became of it.
CREATE TABLE audit (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    at_ms INTEGER NOT NULL,
    user_name TEXT NOT NULL, -- '' = nobody known, or the platform
    token TEXT NOT NULL, -- its id
    address TEXT NOT NULL,
    permission TEXT NOT NULL, -- name of the right that was asked for
    route TEXT NOT NULL,
    subject_kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    code INTEGER NOT NULL, -- 0 = done, else ERR_*
    reason TEXT NOT NULL,
    before_json TEXT NOT NULL, -- the fields that differ; '' = none
    after_json TEXT NOT NULL
);
CREATE INDEX audit_user ON audit (user_name, number);
CREATE INDEX audit_subject ON audit (subject, number);
