-- Each restore of a copy begins an epoch: numbers of jobs and attempts go on where no number was ever
-- given, and keys are derived with the epoch's id. The first has number 0.
CREATE TABLE epochs (
    number INTEGER PRIMARY KEY,
    id INTEGER NOT NULL, -- random
    first_job INTEGER NOT NULL,
    first_attempt INTEGER NOT NULL,
    began_ms INTEGER NOT NULL,
    reason TEXT NOT NULL
);
