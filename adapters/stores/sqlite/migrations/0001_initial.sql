-- The first schema. Instants are microseconds since 1970. A snapshot is JSON with the CRC-32 of its bytes,
-- and the columns beside it are copies for searching.

CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE workstreams (
    id TEXT PRIMARY KEY,
    state TEXT NOT NULL,
    previous_state TEXT,
    generation INTEGER NOT NULL,
    parent_id TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    snapshot TEXT NOT NULL,
    checksum INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX workstreams_by_state ON workstreams (state, id);
CREATE INDEX workstreams_by_parent ON workstreams (parent_id, id) WHERE parent_id IS NOT NULL;

CREATE TABLE tasks (
    id TEXT PRIMARY KEY,
    workstream_id TEXT NOT NULL,
    state TEXT NOT NULL,
    previous_state TEXT,
    generation INTEGER NOT NULL,
    retry_count INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    snapshot TEXT NOT NULL,
    checksum INTEGER NOT NULL
) WITHOUT ROWID;
-- The id of a task begins with that of its workstream, and so do those of its attempts: that is the index.
-- Of the states, only those are indexed that a task which succeeds at once never passes through.
CREATE INDEX tasks_by_state ON tasks (state, id) WHERE state NOT IN ('pending', 'queued', 'running', 'validating', 'completed');

CREATE TABLE workers (
    id TEXT PRIMARY KEY,
    state TEXT NOT NULL,
    previous_state TEXT,
    generation INTEGER NOT NULL,
    has_run INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    snapshot TEXT NOT NULL,
    checksum INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE breakers (
    id TEXT PRIMARY KEY,
    state TEXT NOT NULL,
    previous_state TEXT,
    generation INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    snapshot TEXT NOT NULL,
    checksum INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE state_transitions (
    sequence INTEGER PRIMARY KEY,
    entity TEXT NOT NULL,
    record_id TEXT NOT NULL,
    generation INTEGER NOT NULL,
    from_state TEXT NOT NULL,
    to_state TEXT NOT NULL,
    "trigger" TEXT NOT NULL,
    at INTEGER NOT NULL,
    severity TEXT NOT NULL,
    workstream_id TEXT,
    reason TEXT,
    who TEXT,
    worker_id TEXT,
    attempt INTEGER,
    correlation_id TEXT,
    metadata TEXT,
    checksum INTEGER NOT NULL
);
CREATE INDEX transitions_by_record ON state_transitions (record_id, entity, sequence);

CREATE TABLE attempts (
    task_id TEXT NOT NULL,
    generation INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    workstream_id TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at INTEGER NOT NULL,
    success INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    worker_id TEXT,
    correlation_id TEXT,
    exit_code INTEGER,
    error TEXT,
    output_bytes INTEGER NOT NULL,
    cause TEXT,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (task_id, generation, attempt, outcome)
) WITHOUT ROWID;
CREATE INDEX attempts_by_time ON attempts (started_at);
CREATE INDEX attempts_by_worker ON attempts (worker_id, started_at) WHERE worker_id IS NOT NULL;
CREATE INDEX attempts_by_correlation ON attempts (correlation_id, started_at) WHERE correlation_id IS NOT NULL;
CREATE INDEX attempts_that_failed ON attempts (started_at) WHERE success = 0;

CREATE TABLE checks (
    task_id TEXT NOT NULL,
    generation INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    position INTEGER NOT NULL,
    name TEXT NOT NULL,
    passed INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at INTEGER NOT NULL,
    detail TEXT,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (task_id, generation, attempt, position)
) WITHOUT ROWID;

CREATE TABLE idempotency_keys (
    request_id TEXT PRIMARY KEY,
    operation TEXT NOT NULL,
    body_digest TEXT NOT NULL,
    answer TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    checksum INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at);
