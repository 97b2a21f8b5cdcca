-- What OpenPAI's groups have besides, and groups that make their members admins of the platform.
ALTER TABLE groups ADD COLUMN external_name TEXT NOT NULL DEFAULT '';
ALTER TABLE groups ADD COLUMN is_admin BIGINT NOT NULL DEFAULT 0;
ALTER TABLE groups ADD COLUMN extension_json TEXT NOT NULL DEFAULT '{}';
CREATE INDEX groups_admin ON groups (name) WHERE is_admin <> 0;
-- A user who may neither log in nor use a token.
ALTER TABLE users ADD COLUMN is_inactive BIGINT NOT NULL DEFAULT 0;
CREATE INDEX users_admin ON users (name) WHERE is_admin <> 0;
-- What an application token is good for (enum auth_scope).
ALTER TABLE tokens ADD COLUMN scope BIGINT NOT NULL DEFAULT 0;
