-- The account was made of a visitor's request: its password is one that a stranger chose.
ALTER TABLE users ADD COLUMN is_requested INTEGER NOT NULL DEFAULT 0;
-- Not of one that an administrator made anew later: an acceptance makes the account in its instant.
UPDATE users SET is_requested = 1 WHERE EXISTS
    (SELECT 1 FROM requests r
        WHERE r.kind = 1 AND r.state = 1 AND r.user_name = users.name AND users.created_ms <= r.decided_ms);
