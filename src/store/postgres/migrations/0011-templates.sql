-- Job files that users keep as templates, some of them shared with others, and who marked which with a star.
CREATE TABLE templates (
    id TEXT COLLATE "C" PRIMARY KEY,
    author TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL, -- each author has one of a name
    summary TEXT NOT NULL,
    description TEXT NOT NULL,
    protocol TEXT NOT NULL, -- the job file, secrets masked
    categories TEXT NOT NULL, -- a line each, as the next two
    tags TEXT NOT NULL,
    shared_groups TEXT NOT NULL,
    is_public BIGINT NOT NULL, -- shared with everyone, once it is approved
    status BIGINT NOT NULL, -- enum template_status
    reason TEXT NOT NULL, -- why an administrator rejected it
    reviewer TEXT NOT NULL,
    use_count BIGINT NOT NULL, -- jobs that were submitted from it
    used_ms BIGINT NOT NULL, -- the last of them, 0: none
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL
);
CREATE UNIQUE INDEX templates_name ON templates (author, name);
CREATE TABLE template_stars (
    template TEXT COLLATE "C" NOT NULL,
    user_name TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (template, user_name)
);
