-- Names of users who were removed: what they left in storages must not become another one's unseen.
CREATE TABLE removed_users (
    name TEXT PRIMARY KEY,
    identity TEXT NOT NULL -- whom the provider of the sign-on called so; '' = nobody
) WITHOUT ROWID;
INSERT INTO removed_users (name, identity)
    SELECT DISTINCT subject, '' FROM audit
    WHERE subject_kind = 'user' AND code = 0
        AND route IN ('DELETE /api/v2/users/:user', 'DELETE /api/v1/user')
        AND subject NOT IN (SELECT name FROM users);
