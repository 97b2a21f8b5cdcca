-- The first tables. Times are Unix milliseconds, 0 = not yet; states are enum life_state.

CREATE TABLE counters (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;

-- Every event that the core has stepped through, as event_encode writes it.
CREATE TABLE event_log (
    sequence INTEGER PRIMARY KEY,
    at_ms INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    body BLOB NOT NULL
);

-- The current row of each job.
CREATE TABLE jobs (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    user TEXT NOT NULL,
    virtual_cluster TEXT NOT NULL,
    priority INTEGER NOT NULL,
    has_priority INTEGER NOT NULL,
    state INTEGER NOT NULL,
    is_stop_requested INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    retries_user INTEGER NOT NULL,
    retries_platform INTEGER NOT NULL,
    retries_resource INTEGER NOT NULL,
    retry_at_ms INTEGER NOT NULL,
    submitted_ms INTEGER NOT NULL,
    attempt_created_ms INTEGER NOT NULL,
    attempt_launched_ms INTEGER NOT NULL,
    attempt_completed_ms INTEGER NOT NULL,
    launched_ms INTEGER NOT NULL,
    completed_ms INTEGER NOT NULL,
    code INTEGER NOT NULL,
    is_success INTEGER NOT NULL,
    attributes INTEGER NOT NULL,
    phrase TEXT NOT NULL,
    diagnostics TEXT NOT NULL,
    trigger_role INTEGER NOT NULL,
    trigger_index INTEGER NOT NULL,
    trigger_text TEXT NOT NULL,
    reason TEXT NOT NULL,
    task_count INTEGER NOT NULL,
    role_count INTEGER NOT NULL,
    gpu_count INTEGER NOT NULL,
    extra BLOB NOT NULL
);
-- what a restart loads
CREATE INDEX jobs_live ON jobs (id) WHERE state <> 8;

-- Apart from `jobs`, so that a restart and a change of state touch little.
CREATE TABLE job_plans (
    job INTEGER PRIMARY KEY,
    plan BLOB NOT NULL
);
CREATE TABLE job_sources (
    job INTEGER PRIMARY KEY,
    format INTEGER NOT NULL,
    spec BLOB NOT NULL,
    source TEXT NOT NULL, -- with the secrets masked
    sealed BLOB NOT NULL  -- the secrets, under the server's key
);

-- Attempts of jobs that have ended; the current one stands in `jobs`.
CREATE TABLE job_attempts (
    job INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    state INTEGER NOT NULL,
    retries_user INTEGER NOT NULL,
    retries_platform INTEGER NOT NULL,
    retries_resource INTEGER NOT NULL,
    attempt_created_ms INTEGER NOT NULL,
    attempt_launched_ms INTEGER NOT NULL,
    attempt_completed_ms INTEGER NOT NULL,
    code INTEGER NOT NULL,
    is_success INTEGER NOT NULL,
    attributes INTEGER NOT NULL,
    phrase TEXT NOT NULL,
    diagnostics TEXT NOT NULL,
    trigger_role INTEGER NOT NULL,
    trigger_index INTEGER NOT NULL,
    trigger_text TEXT NOT NULL,
    PRIMARY KEY (job, attempt)
) WITHOUT ROWID;

-- The current row of each task that has ever had a place.
CREATE TABLE tasks (
    job INTEGER NOT NULL,
    role INTEGER NOT NULL,
    task_index INTEGER NOT NULL,
    role_name TEXT NOT NULL,
    state INTEGER NOT NULL,
    is_deletion_pending INTEGER NOT NULL,
    is_held INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    job_attempt INTEGER NOT NULL,
    task_attempt INTEGER NOT NULL,
    retries INTEGER NOT NULL,
    accountable_retries INTEGER NOT NULL,
    node TEXT NOT NULL,
    address TEXT NOT NULL,
    gpus BLOB NOT NULL,  -- 16-bit indices, little-endian
    ports BLOB NOT NULL, -- label (32-bit length, bytes), first and count (32 bits each), repeated
    created_ms INTEGER NOT NULL,
    launched_ms INTEGER NOT NULL,
    completed_ms INTEGER NOT NULL,
    attempt_created_ms INTEGER NOT NULL,
    attempt_launched_ms INTEGER NOT NULL,
    attempt_completed_ms INTEGER NOT NULL,
    code INTEGER NOT NULL,
    is_success INTEGER NOT NULL,
    attributes INTEGER NOT NULL,
    phrase TEXT NOT NULL,
    diagnostics TEXT NOT NULL,
    PRIMARY KEY (job, role, task_index)
) WITHOUT ROWID;

CREATE INDEX tasks_held ON tasks (job) WHERE is_held <> 0;
CREATE INDEX tasks_attempt ON tasks (attempt) WHERE attempt <> 0;

-- Attempts of tasks that have ended; the same columns.
CREATE TABLE task_attempts (
    job INTEGER NOT NULL,
    role INTEGER NOT NULL,
    task_index INTEGER NOT NULL,
    role_name TEXT NOT NULL,
    state INTEGER NOT NULL,
    is_deletion_pending INTEGER NOT NULL,
    is_held INTEGER NOT NULL,
    attempt INTEGER PRIMARY KEY,
    job_attempt INTEGER NOT NULL,
    task_attempt INTEGER NOT NULL,
    retries INTEGER NOT NULL,
    accountable_retries INTEGER NOT NULL,
    node TEXT NOT NULL,
    address TEXT NOT NULL,
    gpus BLOB NOT NULL,
    ports BLOB NOT NULL,
    created_ms INTEGER NOT NULL,
    launched_ms INTEGER NOT NULL,
    completed_ms INTEGER NOT NULL,
    attempt_created_ms INTEGER NOT NULL,
    attempt_launched_ms INTEGER NOT NULL,
    attempt_completed_ms INTEGER NOT NULL,
    code INTEGER NOT NULL,
    is_success INTEGER NOT NULL,
    attributes INTEGER NOT NULL,
    phrase TEXT NOT NULL,
    diagnostics TEXT NOT NULL
);
CREATE INDEX task_attempts_job ON task_attempts (job, job_attempt, role, task_index);

-- Jobs' stories.
CREATE TABLE stories (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    job INTEGER NOT NULL,
    role INTEGER NOT NULL,
    task_index INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    is_warning INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    reason TEXT NOT NULL,
    message TEXT NOT NULL
);
CREATE INDEX stories_job ON stories (job);

CREATE TABLE tags (
    job INTEGER NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (job, name)
) WITHOUT ROWID;

CREATE TABLE nodes (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    address TEXT NOT NULL,
    gpu_type TEXT NOT NULL,
    cpu INTEGER NOT NULL,
    gpu_count INTEGER NOT NULL,
    memory_mib INTEGER NOT NULL,
    is_healthy INTEGER NOT NULL,
    is_cordoned INTEGER NOT NULL,
    is_lost INTEGER NOT NULL,
    blame REAL NOT NULL,
    reason TEXT NOT NULL,
    gpu_numa BLOB,  -- 16 bits a GPU, little-endian; NULL: unknown
    gpu_switch BLOB
);

CREATE TABLE users (
    name TEXT PRIMARY KEY,
    password_hash TEXT NOT NULL,
    email TEXT NOT NULL,
    is_admin INTEGER NOT NULL,
    groups_json TEXT NOT NULL,
    virtual_clusters_json TEXT NOT NULL,
    extension_json TEXT NOT NULL,
    created_ms INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE tokens (
    id TEXT PRIMARY KEY,
    user TEXT NOT NULL,
    is_application INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX tokens_user ON tokens (user);

CREATE TABLE settings (
    key TEXT PRIMARY KEY,
    value BLOB NOT NULL
) WITHOUT ROWID;
