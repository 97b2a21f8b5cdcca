-- GPUs times the milliseconds that tasks of a user ran with them, of attempts that have ended, by calendar month (UTC).
CREATE TABLE gpu_use (
    user_name TEXT COLLATE "C" NOT NULL,
    month BIGINT NOT NULL, -- 202611: November 2026
    gpu_ms BIGINT NOT NULL,
    PRIMARY KEY (user_name, month)
);
