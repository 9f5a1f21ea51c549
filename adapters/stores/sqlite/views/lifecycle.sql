-- The tables of the document "lifecycle": the states of tasks, and their moves.
CREATE TEMP VIEW task_states AS
SELECT id AS task_id, workstream_id, {task_state} AS state, previous_state,
    coalesce(json_extract(snapshot, '$.attempts'), 0) AS attempt_count,
    datetime(created_at / 1000000, 'unixepoch') AS created_at,
    datetime(json_extract(snapshot, '$.started_at') / 1000000, 'unixepoch') AS started_at,
    datetime(json_extract(snapshot, '$.completed_at') / 1000000, 'unixepoch') AS completed_at,
    CASE WHEN state = 'failed' THEN datetime(updated_at / 1000000, 'unixepoch') END AS failed_at,
    json_extract(snapshot, '$.last_error') AS last_error, retry_count AS error_count,
    CASE state WHEN 'circuit_open' THEN 'OPEN' WHEN 'half_open' THEN 'HALF_OPEN' ELSE 'CLOSED' END AS circuit_state,
    (SELECT sum(ended_at - started_at) / 1000 FROM main.attempts WHERE task_id = t.id) AS execution_duration_ms,
    (json_extract(snapshot, '$.completed_at') - created_at) / 1000 AS total_duration_ms,
    (SELECT sum(output_bytes) FROM main.attempts WHERE task_id = t.id) AS output_size_bytes,
    json_extract(snapshot, '$.exit_code') AS exit_code
FROM main.tasks t;

CREATE TEMP VIEW state_transitions AS
SELECT id, task_id, from_state, to_state, timestamp, reason, metadata FROM (
    SELECT sequence AS id, record_id AS task_id, {task_from} AS from_state, {task_to} AS to_state,
        datetime(at / 1000000, 'unixepoch') AS timestamp, coalesce(reason, "trigger") AS reason, metadata
    FROM (SELECT *, lag(from_state) OVER (PARTITION BY record_id ORDER BY sequence) AS before
        FROM main.state_transitions WHERE entity = 'task')
    WHERE from_state <> '*')
WHERE from_state <> to_state;
