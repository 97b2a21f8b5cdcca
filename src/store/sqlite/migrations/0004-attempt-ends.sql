-- What is kept of an attempt's end beside its row: the rule by which it was recognised and the last
-- lines that it wrote. An attempt of which there is neither has no row here.
ALTER TABLE attempt_tails RENAME TO attempt_ends;
ALTER TABLE attempt_ends ADD COLUMN rule_code INTEGER NOT NULL DEFAULT 0;
ALTER TABLE attempt_ends ADD COLUMN rule_phrase TEXT NOT NULL DEFAULT '';
ALTER TABLE attempt_ends ADD COLUMN rule_number INTEGER NOT NULL DEFAULT 0; -- 0: no rule matched
ALTER TABLE attempt_ends ADD COLUMN rule_pattern INTEGER NOT NULL DEFAULT 0;
ALTER TABLE attempt_ends ADD COLUMN rule_line INTEGER NOT NULL DEFAULT 0;
ALTER TABLE attempt_ends ADD COLUMN rule_file TEXT NOT NULL DEFAULT ''; -- '': the built-in table
ALTER TABLE attempt_ends ADD COLUMN matched_log TEXT NOT NULL DEFAULT ''; -- user, platform
ALTER TABLE attempt_ends ADD COLUMN matched_text TEXT NOT NULL DEFAULT '';

-- Exits that were told again after their job had been deleted had left lines that nothing names.
DELETE FROM attempt_ends WHERE attempt NOT IN
    (SELECT attempt FROM tasks UNION SELECT attempt FROM task_attempts);

-- The blame of a node is a number as of a time: without it a restart had pardoned every node.
ALTER TABLE nodes ADD COLUMN blame_ms INTEGER NOT NULL DEFAULT 0;
UPDATE nodes SET blame_ms = CAST(strftime('%s', 'now') AS INTEGER) * 1000;
