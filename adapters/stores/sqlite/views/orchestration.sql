-- The document "orchestration" has no tables but an event log: its lines, and the states of what it names.
CREATE TEMP VIEW transitions AS
SELECT strftime('%Y-%m-%dT%H:%M:%fZ', at / 1000000.0, 'unixepoch') AS timestamp,
    entity || '_state_transition' AS event_type, severity, record_id AS entity_id,
    CASE entity WHEN 'task' THEN {task_from} WHEN 'workstream' THEN {workstream_from} ELSE {worker_from} END AS from_state,
    CASE entity WHEN 'task' THEN {task_to} WHEN 'workstream' THEN {workstream_to} ELSE {worker_to} END AS to_state,
    "trigger", coalesce(metadata, '{{}}') AS metadata
FROM (SELECT *, lag(from_state) OVER (PARTITION BY record_id, entity ORDER BY sequence) AS before, 1 AS has_run
    FROM main.state_transitions WHERE entity <> 'breaker' AND from_state <> '*');

CREATE TEMP VIEW tasks AS
SELECT id, workstream_id, {task_state} AS state, retry_count, datetime(updated_at / 1000000, 'unixepoch') AS updated_at
FROM main.tasks;

CREATE TEMP VIEW workstreams AS
SELECT id, {workstream_state} AS state, datetime(updated_at / 1000000, 'unixepoch') AS updated_at
FROM main.workstreams;

CREATE TEMP VIEW workers AS
SELECT id, {worker_state} AS state, datetime(updated_at / 1000000, 'unixepoch') AS updated_at
FROM main.workers;
