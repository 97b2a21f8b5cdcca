-- What templates say now, and said before each of their latest changes; and which of them an administrator calls official.
ALTER TABLE templates ADD COLUMN is_official BIGINT NOT NULL DEFAULT 0;
CREATE TABLE template_versions (
    template TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL, -- the largest one is what it says now
    editor TEXT COLLATE "C" NOT NULL,
    saved_ms BIGINT NOT NULL,
    summary TEXT NOT NULL,
    description TEXT NOT NULL,
    protocol TEXT NOT NULL, -- the job file, secrets masked
    categories TEXT NOT NULL, -- a line each, as the next one
    tags TEXT NOT NULL,
    PRIMARY KEY (template, number)
);
INSERT INTO template_versions (template, number, editor, saved_ms, summary, description, protocol, categories, tags)
    SELECT id, 1, author, updated_ms, summary, description, protocol, categories, tags FROM templates;
