-- Jobs that are deleted, of which rows of tasks, attempts and stories may be left: store/deletions.c.
CREATE TABLE deleted_jobs (
    job INTEGER PRIMARY KEY
);
