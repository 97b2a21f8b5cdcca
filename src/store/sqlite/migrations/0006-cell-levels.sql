-- Level of the preassigned cell that a task is counted in (1: a leaf; 0: not known, or
-- opportunistic), so that a restart gives it back the same part of its virtual cluster's quota.
ALTER TABLE tasks ADD COLUMN cell_level INTEGER NOT NULL DEFAULT 0;
ALTER TABLE task_attempts ADD COLUMN cell_level INTEGER NOT NULL DEFAULT 0;
