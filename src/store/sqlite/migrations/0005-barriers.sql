-- Barriers that all tasks of a job attempt have passed: who asks later goes on at once.
CREATE TABLE barriers (
    job INTEGER NOT NULL,
    kind INTEGER NOT NULL, -- enum barrier_kind
    attempt INTEGER NOT NULL, -- of the job; an earlier one's is of no use
    PRIMARY KEY (job, kind)
) WITHOUT ROWID;
