-- Pages of nodes go by name, whose order is that of its bytes.
ALTER TABLE nodes ALTER COLUMN name TYPE TEXT COLLATE "C";
CREATE INDEX nodes_by_name ON nodes (name);
