-- What a job's user is told of, as its file says (server/notices.h); -1: submitted to an older version, its file says it.
ALTER TABLE jobs ADD COLUMN notices INTEGER NOT NULL DEFAULT -1;
