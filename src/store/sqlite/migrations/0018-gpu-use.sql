-- GPUs times the milliseconds that tasks of a user ran with them, of attempts that have ended, by calendar month (UTC).
CREATE TABLE gpu_use (
    user_name TEXT NOT NULL,
    month INTEGER NOT NULL, -- 202611: November 2026
    gpu_ms INTEGER NOT NULL,
    PRIMARY KEY (user_name, month)
) WITHOUT ROWID;
