-- The last lines that an attempt wrote, for its history: they stay when its log is gone.
CREATE TABLE attempt_tails (
    attempt INTEGER PRIMARY KEY,
    tail BLOB NOT NULL
);
