-- Whom the user is at the provider of the sign-on; '' for users with a password of their own.
ALTER TABLE users ADD COLUMN identity TEXT NOT NULL DEFAULT '';
CREATE INDEX users_identity ON users (identity) WHERE identity <> '';
