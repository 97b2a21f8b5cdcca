-- The account was made of a visitor's request: its password is one that a stranger chose.
ALTER TABLE users ADD COLUMN is_requested BIGINT NOT NULL DEFAULT 0;
UPDATE users SET is_requested = 1 WHERE name IN
    (SELECT user_name FROM requests WHERE kind = 1 AND state = 1);
