-- The exit code as the container gave it, beside the code that the rules made of it.
ALTER TABLE jobs ADD COLUMN exit_code INTEGER NOT NULL DEFAULT 0;
ALTER TABLE job_attempts ADD COLUMN exit_code INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN exit_code INTEGER NOT NULL DEFAULT 0;
ALTER TABLE task_attempts ADD COLUMN exit_code INTEGER NOT NULL DEFAULT 0;
