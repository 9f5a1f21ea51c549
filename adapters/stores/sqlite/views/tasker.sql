-- The tables of the document "tasker": the moves of its tasks and workflow steps, and the audit of results.
CREATE TEMP VIEW task_transitions AS
SELECT sequence AS task_transition_uuid, record_id AS task_uuid, {workstream_to} AS to_state,
    CASE WHEN from_state <> '*' THEN {workstream_from} END AS from_state, who AS processor_uuid, metadata,
    row_number() OVER (PARTITION BY record_id ORDER BY sequence) AS sort_key,
    sequence = max(sequence) OVER (PARTITION BY record_id) AS most_recent,
    datetime(at / 1000000, 'unixepoch') AS created_at, datetime(at / 1000000, 'unixepoch') AS updated_at
FROM (SELECT *, lag(from_state) OVER (PARTITION BY record_id ORDER BY sequence) AS before
    FROM main.state_transitions WHERE entity = 'workstream');

CREATE TEMP VIEW workflow_step_transitions AS
SELECT sequence AS workflow_step_transition_uuid, record_id AS workflow_step_uuid, {task_to} AS to_state,
    CASE WHEN from_state <> '*' THEN {task_from} END AS from_state, metadata,
    row_number() OVER (PARTITION BY record_id ORDER BY sequence) AS sort_key,
    sequence = max(sequence) OVER (PARTITION BY record_id) AS most_recent,
    datetime(at / 1000000, 'unixepoch') AS created_at, datetime(at / 1000000, 'unixepoch') AS updated_at
FROM (SELECT *, lag(from_state) OVER (PARTITION BY record_id ORDER BY sequence) AS before
    FROM main.state_transitions WHERE entity = 'task');

CREATE TEMP VIEW workflow_step_result_audit AS
SELECT task_id || '/' || generation || '/' || attempt AS workflow_step_result_audit_uuid, task_id AS workflow_step_uuid,
    NULL AS workflow_step_transition_uuid, workstream_id AS task_uuid,
    datetime(ended_at / 1000000, 'unixepoch') AS recorded_at, worker_id AS worker_uuid, correlation_id, success,
    (ended_at - started_at) / 1000 AS execution_time_ms
FROM main.attempts;
