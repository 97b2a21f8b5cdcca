-- Somebody asked that no task is started on the node: who, why, and when (Unix ms).
ALTER TABLE nodes ADD COLUMN is_closed BIGINT NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN closed_by TEXT NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN closed_why TEXT NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN closed_ms BIGINT NOT NULL DEFAULT 0;
