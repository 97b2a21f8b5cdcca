-- Which engine runs a node's tasks, by its name in the configuration; '' until it has said so.
ALTER TABLE nodes ADD COLUMN engine TEXT NOT NULL DEFAULT '';
-- Tasks that the node refused in a row, and until when it is taken last for that (Unix ms; 0: it is not).
ALTER TABLE nodes ADD COLUMN refusals BIGINT NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN avoid_ms BIGINT NOT NULL DEFAULT 0;
