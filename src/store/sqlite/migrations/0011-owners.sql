-- PostgreSQL keeps the word `user` for itself.
ALTER TABLE jobs RENAME COLUMN user TO owner;
ALTER TABLE tokens RENAME COLUMN user TO owner;
