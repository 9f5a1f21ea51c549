-- Every statement of the store, by name.

-- name: put_workstream
-- The last snapshot of a workstream.
INSERT OR REPLACE INTO workstreams (id, state, previous_state, generation, parent_id, created_at, updated_at, snapshot, checksum)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: put_task
-- The last snapshot of a task.
INSERT OR REPLACE INTO tasks (id, workstream_id, state, previous_state, generation, retry_count, created_at, updated_at, snapshot, checksum)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: put_worker
-- The last snapshot of a worker.
INSERT OR REPLACE INTO workers (id, state, previous_state, generation, has_run, created_at, updated_at, snapshot, checksum)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: put_breaker
-- The last snapshot of a breaker.
INSERT OR REPLACE INTO breakers (id, state, previous_state, generation, created_at, updated_at, snapshot, checksum)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)

-- name: add_transition
-- One line of the audit trail.
INSERT INTO state_transitions (sequence, entity, record_id, generation, from_state, to_state, "trigger", at, severity,
    workstream_id, reason, who, worker_id, attempt, correlation_id, metadata, checksum)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: add_attempt
-- How an attempt ended. The same attempt can end once, and once more as late.
INSERT OR REPLACE INTO attempts (task_id, generation, attempt, workstream_id, started_at, ended_at, success, outcome,
    worker_id, correlation_id, exit_code, error, output_bytes, cause, checksum)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: add_check
-- How a check ended.
INSERT OR REPLACE INTO checks (task_id, generation, attempt, position, name, passed, started_at, ended_at, detail, checksum)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: checks
-- The results of a task's checks, oldest first.
SELECT * FROM checks WHERE task_id = ? ORDER BY generation, attempt, position

-- name: page_of_checks
-- Every result, in pages: after (task, generation, attempt, position).
SELECT * FROM checks WHERE (task_id, generation, attempt, position) > (?, ?, ?, ?)
ORDER BY task_id, generation, attempt, position LIMIT ?

-- name: put_answer
-- What a request was answered.
INSERT OR REPLACE INTO idempotency_keys (request_id, operation, body_digest, answer, created_at, expires_at)
VALUES (?, ?, ?, ?, ?, ?)

-- name: select_workstream
-- The start of every query for a workstream; its conditions follow.
SELECT id, state, generation, snapshot, checksum FROM workstreams

-- name: select_task
-- The start of every query for a task; its conditions follow.
SELECT id, state, generation, snapshot, checksum FROM tasks

-- name: select_worker
-- The start of every query for a worker; its conditions follow.
SELECT id, state, generation, snapshot, checksum FROM workers

-- name: select_breaker
-- The start of every query for a breaker; its conditions follow.
SELECT id, state, generation, snapshot, checksum FROM breakers

-- name: select_attempts
-- The start of every query for attempts; its conditions follow.
SELECT * FROM attempts

-- name: last_sequence
-- The newest line of the trail.
SELECT max(sequence) FROM state_transitions

-- name: history
-- One record's moves in order.
SELECT * FROM state_transitions WHERE record_id = ? AND entity = ? AND sequence > ? ORDER BY sequence LIMIT ?

-- name: trail
-- Everybody's moves in order.
SELECT * FROM state_transitions WHERE sequence > ? ORDER BY sequence LIMIT ?

-- name: answer_to
-- A stored answer whose time is not over.
SELECT * FROM idempotency_keys WHERE request_id = ? AND expires_at > ?

-- name: forget_answers
-- Answers whose time is over.
DELETE FROM idempotency_keys WHERE expires_at <= ?

-- name: remove_moves_of_tasks
-- What an archived workstream leaves in the trail.
DELETE FROM state_transitions WHERE record_id IN (SELECT id FROM tasks WHERE workstream_id = ?1)

-- name: remove_moves_of_workstream
DELETE FROM state_transitions WHERE record_id = ?1 AND entity = 'workstream'

-- name: remove_attempts
DELETE FROM attempts WHERE workstream_id = ?1

-- name: remove_checks
DELETE FROM checks WHERE task_id = ?1 OR task_id IN (SELECT id FROM tasks WHERE workstream_id = ?1)

-- name: remove_tasks
DELETE FROM tasks WHERE workstream_id = ?1

-- name: remove_workstream
DELETE FROM workstreams WHERE id = ?1

-- name: trail_by_record
-- Every record's moves, record by record, in pages: after (record, entity, sequence).
SELECT * FROM state_transitions WHERE (record_id, entity, sequence) > (?, ?, ?)
ORDER BY record_id, entity, sequence LIMIT ?

-- name: page_of_attempts
-- Every attempt, in pages: after (task, generation, attempt, outcome).
SELECT * FROM attempts WHERE (task_id, generation, attempt, outcome) > (?, ?, ?, ?)
ORDER BY task_id, generation, attempt, outcome LIMIT ?

-- name: page_of_workstream
-- Whole rows in pages: after an id.
SELECT * FROM workstreams WHERE id > ?1 ORDER BY id LIMIT ?3

-- name: page_of_worker
-- Whole rows in pages: after an id.
SELECT * FROM workers WHERE id > ?1 ORDER BY id LIMIT ?3

-- name: page_of_breaker
-- Whole rows in pages: after an id.
SELECT * FROM breakers WHERE id > ?1 ORDER BY id LIMIT ?3

-- name: page_of_task
-- Whole rows in pages: after an id.
SELECT * FROM tasks WHERE id > ?1 ORDER BY id LIMIT ?3

-- name: page_of_task_in_workstream
-- Whole rows in pages: after an id, of one workstream.
SELECT * FROM tasks WHERE workstream_id = ?2 AND id > ?1 ORDER BY id LIMIT ?3

-- name: put_meta
-- What is to be known about the file itself.
INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)

-- name: select_meta
SELECT name, value FROM meta

-- name: count_workstreams_by_state
SELECT state, count(*) FROM workstreams GROUP BY state ORDER BY state

-- name: count_tasks_by_state
SELECT state, count(*) FROM tasks GROUP BY state ORDER BY state

-- name: state_of_task
SELECT state FROM tasks WHERE id = ?

-- name: orphans
-- Tasks of workstreams that are not there.
SELECT id FROM tasks WHERE workstream_id NOT IN (SELECT id FROM workstreams) LIMIT 100
