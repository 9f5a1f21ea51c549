-- The tables of the document "supervisor": workers, jobs, their moves, and idempotency keys.
CREATE TEMP VIEW workers AS
SELECT id, NULL AS workspace_id, {worker_state} AS status, datetime(created_at / 1000000, 'unixepoch') AS created_at,
    datetime(updated_at / 1000000, 'unixepoch') AS updated_at, snapshot AS metadata
FROM main.workers;

CREATE TEMP VIEW worker_state_transitions AS
SELECT id, worker_id, from_state, to_state, reason, timestamp FROM (
    SELECT sequence AS id, record_id AS worker_id, {worker_from} AS from_state, {worker_to} AS to_state,
        coalesce(reason, "trigger") AS reason, datetime(at / 1000000, 'unixepoch') AS timestamp
    FROM (SELECT *, lag(from_state) OVER one AS before, lag(has_run, 1, 0) OVER one AS ran_before
        FROM (SELECT *, max(to_state IN ('busy', 'paused', 'unresponsive')) OVER one AS has_run
            FROM main.state_transitions WHERE entity = 'worker' WINDOW one AS (PARTITION BY record_id ORDER BY sequence))
        WINDOW one AS (PARTITION BY record_id ORDER BY sequence))
    WHERE from_state <> '*')
WHERE from_state <> to_state;

CREATE TEMP VIEW jobs AS
SELECT id, parent_id AS parent_job_id, coalesce(json_extract(snapshot, '$.depth'), 0) AS depth,
    {workstream_state} AS status, coalesce(json_extract(snapshot, '$.reserved_workers'), 1) AS worker_count,
    datetime(created_at / 1000000, 'unixepoch') AS created_at,
    datetime(json_extract(snapshot, '$.started_at') / 1000000, 'unixepoch') AS started_at,
    datetime(json_extract(snapshot, '$.completed_at') / 1000000, 'unixepoch') AS completed_at,
    coalesce(json_extract(snapshot, '$.name'), id) AS task_description
FROM main.workstreams;

CREATE TEMP VIEW job_state_transitions AS
SELECT id, job_id, from_state, to_state, reason, timestamp FROM (
    SELECT sequence AS id, record_id AS job_id, {workstream_from} AS from_state, {workstream_to} AS to_state,
        coalesce(reason, "trigger") AS reason, datetime(at / 1000000, 'unixepoch') AS timestamp
    FROM (SELECT *, lag(from_state) OVER (PARTITION BY record_id ORDER BY sequence) AS before
        FROM main.state_transitions WHERE entity = 'workstream')
    WHERE from_state <> '*')
WHERE from_state <> to_state;

CREATE TEMP VIEW idempotency_keys AS
SELECT request_id, operation AS endpoint, 200 AS response_status, answer AS response_body,
    datetime(created_at / 1000000, 'unixepoch') AS created_at, datetime(expires_at / 1000000, 'unixepoch') AS expires_at
FROM main.idempotency_keys;
