-- What a reason says stands beside it as a value, so that a restart need not read the words.
-- jobs: a number for what the reason is about; 0: not known, the reason is told once more.
ALTER TABLE jobs ADD COLUMN reason_topic INTEGER NOT NULL DEFAULT 0;
-- nodes: whether the reason is the blame for failures of the platform, or else the engine's words.
ALTER TABLE nodes ADD COLUMN is_reason_blame INTEGER NOT NULL DEFAULT 0;
UPDATE nodes SET is_reason_blame = 1 WHERE is_cordoned OR reason LIKE 'taken last %';
