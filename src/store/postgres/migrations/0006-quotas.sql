-- How much users may have and do: their own quotas, and those of groups.
CREATE TABLE quotas (
    is_group BIGINT NOT NULL, -- the holder is a group, or else a user
    holder TEXT COLLATE "C" NOT NULL,
    kind BIGINT NOT NULL, -- enum quota_kind
    value BIGINT NOT NULL,
    PRIMARY KEY (is_group, holder, kind)
);
