-- Job files that users keep as templates, some of them shared with others, and who marked which with a star.
CREATE TABLE templates (
    id TEXT PRIMARY KEY,
    author TEXT NOT NULL,
    name TEXT NOT NULL, -- each author has one of a name
    summary TEXT NOT NULL,
    description TEXT NOT NULL,
    protocol TEXT NOT NULL, -- the job file, secrets masked
    categories TEXT NOT NULL, -- a line each, as the next two
    tags TEXT NOT NULL,
    shared_groups TEXT NOT NULL,
    is_public INTEGER NOT NULL, -- shared with everyone, once it is approved
    status INTEGER NOT NULL, -- enum template_status
    reason TEXT NOT NULL, -- why an administrator rejected it
    reviewer TEXT NOT NULL,
    use_count INTEGER NOT NULL, -- jobs that were submitted from it
    used_ms INTEGER NOT NULL, -- the last of them, 0: none
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX templates_name ON templates (author, name);
CREATE TABLE template_stars (
    template TEXT NOT NULL,
    user_name TEXT NOT NULL,
    PRIMARY KEY (template, user_name)
) WITHOUT ROWID;
