-- Tags of jobs that are gone: a job that was tagged in the round in which it was deleted has left its own for ever.
DELETE FROM tags WHERE job NOT IN (SELECT id FROM jobs);
