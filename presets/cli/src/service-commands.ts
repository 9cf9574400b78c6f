import type { SubCommandsDef } from "citty";

/** The commands about an instance and its running service, for `portico` and for programs that start a preset of their own. */
export const serviceCommands = {
  console: async () => (await import("./commands/console.ts")).consoleCommand,
  env: async () => (await import("./commands/env.ts")).envCommand,
  token: async () => (await import("./commands/token.ts")).tokenCommand,
  attachments: async () => (await import("./commands/attachments.ts")).attachmentsCommand,
  user: async () => (await import("./commands/user.ts")).userCommand,
  ask: async () => (await import("./commands/ask.ts")).askCommand,
  agent: async () => (await import("./commands/agent.ts")).agentCommand,
  approvals: async () => (await import("./commands/approvals.ts")).approvalsCommand,
  memory: async () => (await import("./commands/memory.ts")).memoryCommand,
  grant: async () => (await import("./commands/grant.ts")).grantCommand,
  mcp: async () => (await import("./commands/mcp.ts")).mcpCommand,
  workflow: async () => (await import("./commands/workflow.ts")).workflowCommand,
  schedule: async () => (await import("./commands/schedule.ts")).scheduleCommand,
  backup: async () => (await import("./commands/backup.ts")).backupCommand,
  restore: async () => (await import("./commands/restore.ts")).restoreCommand,
  audit: async () => (await import("./commands/audit.ts")).auditCommand,
  usage: async () => (await import("./commands/usage.ts")).usageCommand,
  config: async () => (await import("./commands/config.ts")).configCommand,
  doctor: async () => (await import("./commands/doctor.ts")).doctorCommand,
  openapi: async () => (await import("./commands/openapi.ts")).openapiCommand,
  asyncapi: async () => (await import("./commands/openapi.ts")).asyncapiCommand,
} satisfies SubCommandsDef;
