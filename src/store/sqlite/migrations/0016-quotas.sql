-- How much users may have and do: their own quotas, and those of groups.
CREATE TABLE quotas (
    is_group INTEGER NOT NULL, -- the holder is a group, or else a user
    holder TEXT NOT NULL,
    kind INTEGER NOT NULL, -- enum quota_kind
    value INTEGER NOT NULL,
    PRIMARY KEY (is_group, holder, kind)
) WITHOUT ROWID;
