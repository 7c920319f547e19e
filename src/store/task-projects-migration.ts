/** The other projects that a task changes, as a JSON list of folders. */
export const TASK_PROJECTS_MIGRATION = {
  name: "0037-task-projects",
  sql: "ALTER TABLE agent_tasks ADD COLUMN with_projects TEXT NOT NULL DEFAULT '[]';",
};
