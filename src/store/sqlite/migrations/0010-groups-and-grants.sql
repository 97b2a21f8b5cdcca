-- Groups, their members, and what users and groups were granted, in rows instead of JSON texts.
CREATE TABLE groups (
    name TEXT PRIMARY KEY,
    description TEXT NOT NULL,
    created_ms INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE members (
    user_name TEXT NOT NULL,
    group_name TEXT NOT NULL,
    is_admin INTEGER NOT NULL, -- of the group
    PRIMARY KEY (user_name, group_name)
) WITHOUT ROWID;
CREATE INDEX members_group ON members (group_name);

CREATE TABLE grants (
    is_group INTEGER NOT NULL, -- the holder is a group, or else a user
    holder TEXT NOT NULL,
    kind INTEGER NOT NULL, -- enum store_grant_kind
    subject TEXT NOT NULL,
    PRIMARY KEY (is_group, holder, kind, subject)
) WITHOUT ROWID;

-- What the texts hold: lists of names. Anything else has never given a right, and is left out.
CREATE TEMP TABLE old_rights AS
    SELECT u.name AS user_name, 0 AS is_group, j.value AS subject FROM users u,
        json_each(CASE WHEN NOT json_valid(u.virtual_clusters_json) THEN '[]'
                       WHEN json_type(u.virtual_clusters_json) <> 'array' THEN '[]'
                       ELSE u.virtual_clusters_json END) j WHERE j.type = 'text' AND j.value <> ''
    UNION SELECT u.name, 1, j.value FROM users u,
        json_each(CASE WHEN NOT json_valid(u.groups_json) THEN '[]'
                       WHEN json_type(u.groups_json) <> 'array' THEN '[]'
                       ELSE u.groups_json END) j WHERE j.type = 'text' AND j.value <> '';
INSERT INTO groups (name, description, created_ms)
    SELECT DISTINCT subject, '', CAST(strftime('%s', 'now') AS INTEGER) * 1000
    FROM old_rights WHERE is_group <> 0;
INSERT INTO members (user_name, group_name, is_admin)
    SELECT user_name, subject, 0 FROM old_rights WHERE is_group <> 0;
INSERT INTO grants (is_group, holder, kind, subject)
    SELECT 0, user_name, 1, subject FROM old_rights WHERE is_group = 0;
DROP TABLE old_rights;

ALTER TABLE users DROP COLUMN groups_json;
ALTER TABLE users DROP COLUMN virtual_clusters_json;
