-- Virtual clusters of which nothing starts: who asked for that, why, and when (Unix ms). No row: it is open.
CREATE TABLE cluster_closings (
    name TEXT PRIMARY KEY,
    closed_by TEXT NOT NULL,
    closed_why TEXT NOT NULL,
    closed_ms INTEGER NOT NULL
);
