-- A KILL under way: why (enum kill_reason; 0: none, or from before it was stored) and until when its
-- grace lasts, so that a restart gives the task what is left of it.
ALTER TABLE tasks ADD COLUMN killed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN kill_by_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE task_attempts ADD COLUMN killed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE task_attempts ADD COLUMN kill_by_ms INTEGER NOT NULL DEFAULT 0;
