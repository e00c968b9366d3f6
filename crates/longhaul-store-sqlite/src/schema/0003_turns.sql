-- Owners take turns in the queue of a tool: one index finds the next task of an owner, the other the next time of a tool.
CREATE INDEX task_turn ON task (tool, version, owner, not_before, created_at) WHERE not_before IS NOT NULL;
DROP INDEX task_queued;
CREATE INDEX task_queued ON task (tool, version, not_before) WHERE not_before IS NOT NULL;
