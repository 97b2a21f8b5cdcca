-- Pages of nodes go by name.
CREATE INDEX nodes_by_name ON nodes (name);
